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
  const choices = EMOJI.map((emoji, place) => {
    const click = () => {
      element.hidePopover()
      insert(emoji)
    }
    return button(emoji, { tabindex: place && -1, click })
  })
  const element = h('div', { class: 'emoji sheet', popover: 'auto', role: 'group', 'aria-label': thread.say('emoji') }, ...choices)
  moveByArrows(element, 8)
  return { element, toggle: toggler(element) }
}
