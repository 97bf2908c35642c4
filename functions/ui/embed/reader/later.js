/** Loads the writer, the module that only visitors who write need. */

import { button } from '../kit/dom.js'

/** @typedef {typeof import('../writer/index.js')} Writer */

/** @type {Promise<Writer> | undefined} */
let loading

/** A failed load is retried at the next use. */
export function writer() {
  loading ??= import('../writer/index.js').catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

const come = () => void writer().catch(() => {})

/**
 * Creates a button that opens a menu, which the writer shows.
 * @param {import('../types.d.ts').Child} content @param {import('../types.d.ts').Attributes} attributes
 * @param {() => any} act
 */
export function menuButton(content, attributes, act) {
  const click = (event) => {
    event.preventDefault()
    act()
  }
  return button(content, { 'aria-haspopup': 'menu', 'aria-expanded': 'false', ...ahead, ...attributes, click })
}

/** Attributes of elements that need the writer. Pointing at or focusing one of them preloads it. */
export const ahead = { pointerenter: come, focus: come }
