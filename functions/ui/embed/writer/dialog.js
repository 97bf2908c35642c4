/** Dialogs of a thread, and their messages about failures. */

import { ApiError } from '../kit/api.js'
import { button, h, primary } from '../kit/dom.js'
import { dress } from './style.js'

/** Explains a failure for a dialog or a form, including the end of the session. */
export const why = ({ say, explain, isOver }, error) => (isOver(error) ? say('session_ended') : explain(error))

/**
 * Shows a dialog. Closing it focuses the element that `act` returns, or else the element that had the focus before. Without an
 * action, the dialog can only be closed. When the session ends, it stays open, so that no text is lost.
 * @param {any} thread @param {string} title @param {import('../types.d.ts').Child[]} fields @param {string} [action]
 * @param {(chosen: FormData) => Promise<any>} [act]
 */
export function ask(thread, title, fields, action, act = async () => {}) {
  const { root, section, say, isOver, ui } = thread
  /** @type {any} */
  let target = root.activeElement
  /** The last failure. @type {any} */
  let refusal
  const error = h('p', { class: 'error', role: 'alert' })
  const submit = async (event) => {
    event.preventDefault()
    try {
      refusal = null
      // The page may have signed in another user meanwhile.
      if (thread.ui.auth.user?.id !== ui.auth.user?.id) throw new ApiError()
      target = (await act(new FormData(form))) ?? target
      dialog.close()
    } catch (reason) {
      refusal = reason
      error.textContent = why(thread, reason)
    }
  }
  const close = () => {
    dialog.remove()
    target?.focus({ preventScroll: true })
    if (refusal && isOver(refusal)) thread.fail(refusal)
  }
  const cancel = button(say(action ? 'cancel' : 'close'), { class: 'outlined', click: () => dialog.close() })
  const form = h('form', { submit }, h('h3', {}, title), ...fields, error, h('div', { class: 'bar' }, cancel, action && primary(action)))
  const dialog = h('dialog', { 'aria-label': title, class: section.className, close }, form)
  dress(thread)
  // Appended to the root, because rendering would remove the dialog from the section.
  root.append(dialog)
  dialog.showModal()
}
