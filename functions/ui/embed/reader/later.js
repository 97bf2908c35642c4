/** Loads the writer, the code that only writing needs. */

import { button } from '../kit/dom.js'

/** @typedef {typeof import('../writer/index.js')} Writer */

/** @type {Promise<Writer> | undefined} */
let loading

/** The writer. A failed load is retried at the next use. */
export function writer() {
  loading ??= import('../writer/index.js').catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

const come = () => void writer().catch(() => {})

/** A button of a menu, which the writer shows. @param {import('../types.d.ts').Child} content @param {import('../types.d.ts').Attributes} attributes @param {() => any} act */
export function menuButton(content, attributes, act) {
  const click = (event) => {
    event.preventDefault()
    act()
  }
  return button(content, { 'aria-haspopup': 'menu', 'aria-expanded': 'false', ...ahead, ...attributes, click })
}

/** Attributes of elements that lead to the writer. Pointer or focus on one of them loads it early. */
export const ahead = { pointerenter: come, focus: come }
