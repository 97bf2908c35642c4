/**
 * The form for a new comment, a reply or an edit. It takes text and keeps the draft from the start. The writer adds everything
 * else when the form gets the focus. The text field stays the same element.
 * @import { Composer, Purpose } from '../types.d.ts'
 */

import { API } from '../kit/api.js'
import { device } from '../kit/device.js'
import { button, h, primary } from '../kit/dom.js'
import { ahead, writer } from './later.js'

/** Texts since the page was loaded, by the names of their drafts. */
const typed = {}

/** @param {Purpose} purpose @returns {Composer} */
export function composer(thread, purpose) {
  const { draft, value = '', placeholder, action, cancel } = purpose
  const { say, path, ui } = thread
  const left = `${API} ${path} ${draft} guest`
  const kept = ui.auth.authenticated ? `${API} ${path} ${draft} ${ui.auth.user?.id}` : left
  let isReady = false
  let arrival

  function keep(body) {
    device.set(kept, body)
    typed[kept] = body
  }

  function input() {
    problem.textContent = ''
    keep(text.value === value ? '' : text.value)
  }

  async function enhance() {
    arrival ??= writer().then((writer) => writer.enhance(form))
    try {
      await arrival
      isReady = true
    } catch {
      arrival = undefined
      problem.textContent = say('error')
    }
    return isReady
  }

  async function submit(event) {
    event.preventDefault()
    if (!isReady && (await enhance())) element.requestSubmit()
  }

  /** Keys that the writer has not taken. */
  function keydown(event) {
    if (event.defaultPrevented || event.isComposing) return
    if (event.key === 'Escape') cancel?.()
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) element.requestSubmit()
  }

  const text = h('textarea', { 'aria-label': placeholder, placeholder, required: true, dir: 'auto', input })
  const problem = h('p', { class: 'error', role: 'alert' })
  const bar = h('div', { class: 'bar' }, cancel && button(say('cancel'), { class: 'outlined', click: cancel }), primary(action))
  const { pointerenter } = ahead
  const element = h('form', { class: 'editor', part: 'editor', pointerenter, focusin: enhance, keydown, submit }, text, problem, bar)
  // What somebody has typed as a guest becomes the draft of whoever signs in.
  if (kept !== left && typed[left]) {
    keep(typed[left])
    device.set(left, (typed[left] = ''))
  }
  text.value = device.get(kept) || value
  const focus = () => {
    text.focus()
    text.setSelectionRange(text.value.length, text.value.length)
  }
  const form = { thread, purpose, element, text, problem, bar, keep, focus }
  return form
}
