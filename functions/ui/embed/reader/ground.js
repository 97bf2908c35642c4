/** What is behind an element, since grey text alone does not say whether its page is dark. */

/** Tells the first sheet of a tree the colour of the nearest place that has one which hides all behind it. @param {any} root */
export function showGround({ host, adoptedStyleSheets: [ground] }) {
  let colour
  do colour = getComputedStyle(host).backgroundColor
  while (/a\(|\//.test(colour) && (host = host.assignedSlot ?? host.parentElement ?? host.getRootNode().host))
  ground.replaceSync(`:host > * { --under: ${host ? colour : 'Canvas'} }`)
}
