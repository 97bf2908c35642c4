/**
 * Shows a text as it will be read.
 * @import { Editor } from '../types.d.ts'
 */

import { button, h } from '../kit/dom.js'
import { showHtml } from '../kit/html.js'

/** @param {Editor} editor */
export function previewer({ thread, text, fallible }) {
  const element = h('div', { class: 'body preview', tabindex: 0, hidden: true })
  const toggle = button(thread.say('preview'), { 'aria-pressed': 'false', click: () => fallible(show) })

  async function show() {
    const body = text.value
    const isOn = element.hidden
    if (isOn) showHtml(element, (await thread.api.request('POST', 'markdown/preview', { body: { body } })).data.html, body)
    turn(isOn)
  }

  function turn(isOn) {
    toggle.ariaPressed = `${isOn}`
    element.hidden = !isOn
    text.hidden = isOn
  }

  return { element, toggle, close: () => turn(false) }
}
