/**
 * Comments' HTML through an allow-list, by whichever way the browser offers.
 */

const ALLOWED = { __proto__: null, a: ['href', 'rel', 'title'], img: ['src', 'alt', 'title'], ol: ['start'], code: ['class'] }
for (const name of 'p br hr em strong del h1 h2 h3 h4 h5 h6 blockquote ul li pre table thead tbody tr th td'.split(' ')) {
  ALLOWED[name] = []
}

export function showHtml(target, html, text) {
  const tree = parse(html)
  target.classList.toggle('plain', !tree)
  if (tree) target.replaceChildren(...tree.childNodes)
  else target.textContent = text
}

function parse(html) {
  /** @type {any} */
  let body = document.implementation.createHTMLDocument().body
  if (body.setHTML) {
    const elements = Object.entries(ALLOWED).map(([name, attributes]) => ({ name, attributes }))
    body.setHTML(html, { sanitizer: { elements, attributes: [] } })
  } else {
    const trusted = trust(`<!doctype html><body>${html}`)
    if (trusted == null) return null
    body = new DOMParser().parseFromString(trusted, 'text/html').body
    prune(body)
  }
  body.querySelectorAll('*').forEach(tidy)
  return body
}

/** @type {any} */
let policy

function trust(html) {
  const { trustedTypes } = /** @type {any} */ (globalThis)
  if (!trustedTypes) return html
  try {
    if (policy === undefined) policy = trustedTypes.createPolicy('comment-thread', { createHTML: (html) => html })
  } catch {
    policy = null
  }
  return policy && policy.createHTML(html)
}

function prune(parent) {
  for (const node of [...parent.childNodes]) {
    if (node instanceof Text) continue
    const attributes = ALLOWED[node.nodeName.toLowerCase()]
    if (node instanceof HTMLElement && attributes) {
      for (const name of node.getAttributeNames()) if (!attributes.includes(name)) node.removeAttribute(name)
      prune(node)
    } else node.remove()
  }
}

function tidy(element) {
  const keep = (name, pattern, of = (value) => value) => {
    if (!pattern.test(of(element.getAttribute(name)))) element.removeAttribute(name)
  }
  keep('class', /^language-\S+$/)
  keep('href', /^(https?|mailto):$/, schemeOf)
  keep('src', /^https?:$/, schemeOf)
  if (element.matches('pre, table')) element.tabIndex = 0
  if (element.matches('img')) Object.assign(element, { loading: 'lazy', referrerPolicy: 'no-referrer' })
}

const schemeOf = (address) => (URL.canParse(address, document.baseURI) ? new URL(address, document.baseURI).protocol : '')
