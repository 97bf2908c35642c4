/**
 * Sanitizes the HTML of comments with an allow-list, using whichever API the browser has.
 */

import { parts } from './addresses.js'
import { h } from './dom.js'

/** Elements allowed without attributes, and other allowed elements with their allowed attributes. */
const PLAIN = /^(p|[bht]r|em|strong|del|h[1-6]|blockquote|ul|li|pre|table|thead|tbody)$/
const ALLOWED = { __proto__: null, a: ['href', 'rel', 'title'], img: ['src', 'alt', 'title'], ol: ['start'], code: ['class'], th: ['align'], td: ['align'] }

/** Shows HTML in an element, or `text` if the page forbids HTML or parsing fails. */
export function showHtml(target, html, text) {
  /** @type {any} */
  let tree
  try {
    const body = inertBody(html)
    tree = body && clean(body)
  } catch (error) {
    console.error(error)
  }
  target.classList.toggle('plain', !tree)
  target.replaceChildren(...(tree?.childNodes ?? [text]))
}

/** @type {any} */
let policy

/** Parses HTML without loading anything. Returns the body, or null if the page's policy forbids parsing. */
export function inertBody(html) {
  /** @type {any} */
  const { body } = document.implementation.createHTMLDocument()
  if (body.setHTML) {
    body.setHTML(html, { sanitizer: {} })
    return body
  }
  const rules = { createHTML: (html) => html }
  try {
    policy ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy('comment-thread', rules) ?? rules
  } catch {
    policy = {}
  }
  return policy.createHTML ? new DOMParser().parseFromString(policy.createHTML(`<!doctype html><body>${html}`), 'text/html').body : null
}

function clean(parent) {
  for (const node of [...parent.childNodes]) {
    if (node instanceof Text) continue
    const attributes = ALLOWED[node.localName] ?? (PLAIN.test(node.localName) && [])
    if (node instanceof HTMLElement && attributes) {
      for (const name of node.getAttributeNames()) if (!attributes.includes(name)) node.removeAttribute(name)
      tidy(node)
      clean(node)
    } else node.remove()
  }
  parent.normalize()
  for (const node of [...parent.childNodes]) if (node instanceof Text) tidyText(node)
  return parent
}

function tidy(element) {
  const keep = (name, pattern, of = (value) => value) => {
    if (!pattern.test(of(element.getAttribute(name)))) element.removeAttribute(name)
  }
  keep('class', /^language-\S+$/)
  keep('href', /^(https?|mailto):$/, schemeOf)
  keep('src', /^https?:$/, schemeOf)
  if (element.matches('pre, table')) element.tabIndex = 0
  if (element.matches('img')) {
    Object.assign(element, { loading: 'lazy', referrerPolicy: 'no-referrer' })
    // Reserves space before the image loads. The name of an upload ends in its dimensions, and the height is limited to
    // 384 pixels.
    for (const [, width, height] of element.src.matchAll(/-(\d+)x(\d+)\.\w+$/g)) {
      const share = Math.min(1, 384 / height)
      Object.assign(element, { width: width * share, height: height * share })
    }
  }
}

const schemeOf = (href) => h('a', { href }).protocol

/** Whether the node is missing or a block. */
const isEdge = (node) => !node || node.matches?.(':not(a, br, code, del, em, img, strong)')

/**
 * Removes insignificant line breaks, which would otherwise be visible: after `br`, and between blocks. Turns addresses
 * in other texts into links.
 */
function tidyText(text) {
  const { previousSibling: before, nextSibling: after, parentElement: parent } = text
  if (parent.closest('pre')) return
  if (before?.nodeName === 'BR') text.data = text.data.replace(/^\n/, '')
  if (!text.data.trim() && (isEdge(before) || isEdge(after))) text.remove()
  else if (!parent.closest('a, code')) link(text)
}

/** Turns the addresses in a text into links. */
const link = (text) => text.replaceWith(...parts(text.data).map((part, place) => (place % 2 ? linkTo(part, part) : part)))

/** Creates a link with the same attributes as in the API's HTML. */
const linkTo = (href, content) => h('a', { href, rel: 'nofollow ugc noopener' }, content)

/** Links images to their full size, unless the writer has linked them elsewhere. */
export function linkImages(root) {
  root.querySelectorAll('img').forEach((image) => {
    if (!image.src || image.closest('a')) return
    const link = linkTo(image.src, '')
    image.replaceWith(link)
    link.append(image)
    if (!image.alt) link.ariaLabel = image.src.split('/').at(-1)
  })
}
