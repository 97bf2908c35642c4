/** Finds the color behind an element, because gray text alone does not show whether the page is dark. */

/** Sets `--under`, in the first style sheet of a shadow tree, to the nearest opaque color behind the host. @param {any} root */
export function showGround({ host, adoptedStyleSheets: [ground] }) {
  let colour
  do colour = getComputedStyle(host).backgroundColor
  while (/a\(|\//.test(colour) && (host = host.assignedSlot ?? host.parentElement ?? host.getRootNode().host))
  ground.replaceSync(`:host > * { --under: ${host ? colour : 'Canvas'} }`)
}
