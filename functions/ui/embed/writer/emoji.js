/**
 * Emoji at a press.
 * @import { Editor } from '../types.d.ts'
 */

import { button, h } from '../kit/dom.js'

const EMOJI = '😀 😂 😉 😍 🤔 😮 😢 👍 👎 👏 🎉 ❤️'.split(' ')

/** @param {Editor} editor */
export function emojis({ insert }) {
  const element = h('div', { hidden: true }, ...EMOJI.map((emoji) => button(emoji, { click: () => insert(emoji) })))
  return { element, toggle: () => (element.hidden = !element.hidden) }
}
