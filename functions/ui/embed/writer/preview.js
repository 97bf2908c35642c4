/**
 * Shows a text as readers will see it.
 * @import { Editor } from '../types.d.ts'
 */

import { button, drawing, h } from '../kit/dom.js'
import { showHtml } from '../kit/html.js'
import { json } from '../kit/json.js'

const EYE = 'M1 8q7-9 14 0-7 9-14 0M8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4'

/** @param {Editor} editor */
export function previewer({ thread, text, fallible }) {
  const element = h('div', { class: 'body preview', dir: 'auto', tabindex: 0, hidden: true })
  const label = thread.say('preview')
  const toggle = button(h('span', {}, label), { class: 'eye', 'aria-label': label, 'aria-pressed': 'false', click: () => fallible(show) })
  toggle.append(drawing(EYE))

  async function show() {
    const body = text.value
    if (text.hidden) return turn(false)
    const { data } = await thread.api.request('POST', 'markdown/preview', json({ body }))
    // Meanwhile the text may have been changed or sent.
    if (text.value !== body || !toggle.checkVisibility()) return
    showHtml(element, data.html, body)
    turn(true)
  }

  function turn(isOn) {
    toggle.ariaPressed = `${isOn}`
    element.hidden = !isOn
    text.hidden = isOn
  }

  return { element, toggle, close: () => turn(false) }
}
