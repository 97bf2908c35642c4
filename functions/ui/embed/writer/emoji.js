/**
 * A grid of emoji to insert.
 * @import { Editor } from '../types.d.ts'
 */

import { button, h } from '../kit/dom.js'
import { moveByArrows } from './arrows.js'
import { toggler } from './popover.js'

const EMOJI = `😀 😃 😄 😁 😅 😂 🤣 😊 🙂 😉 😍 🥰 🤔 😎 😢 😭 👍 👎 👋 👏 🙌 🙏 💪 👀 ❤️ 🔥 ✨ 🎉 💡 ✅ ❓ 🚀`.split(' ')

/** @param {Editor} editor */
export function emojis({ thread, insert }) {
  const element = h('div', { class: 'emoji sheet', popover: 'auto', role: 'group', 'aria-label': thread.say('emoji') })
  moveByArrows(element, 8)

  function pick(emoji) {
    element.hidePopover()
    insert(emoji)
  }

  /** Builds the grid when it is first opened. */
  function build() {
    if (!element.firstChild) element.append(...EMOJI.map((emoji, place) => button(emoji, { tabindex: place && -1, click: () => pick(emoji) })))
  }

  return { element, toggle: toggler(element, build) }
}
