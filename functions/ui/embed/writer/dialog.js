/** Dialogs of a thread. */

import { button, h, primary } from '../kit/dom.js'
import { dress } from './style.js'

/**
 * Asks something. The focus goes to what `act` answers, else back to where it was.
 * Without an action it can only be closed.
 * @param {any} thread @param {string} title @param {Node[]} fields @param {string} [action]
 * @param {(chosen: FormData) => Promise<any>} [act]
 */
export function ask({ root, section, say, explain }, title, fields, action, act = async () => {}) {
  /** @type {any} */
  let target = root.activeElement
  const error = h('p', { class: 'error', role: 'alert' })
  const submit = async (event) => {
    event.preventDefault()
    try {
      target = (await act(new FormData(form))) ?? target
      dialog.close()
    } catch (reason) {
      error.textContent = explain(reason)
    }
  }
  const close = () => {
    dialog.remove()
    target?.focus({ preventScroll: true })
  }
  const cancel = button(say(action ? 'cancel' : 'close'), { class: 'outlined', click: () => dialog.close() })
  const bar = h('div', { class: 'bar' }, cancel, action && primary(action))
  const form = h('form', { submit }, h('h3', {}, title), ...fields, error, bar)
  const dialog = h('dialog', { 'aria-label': title, close }, form)
  dress({ root })
  section.append(dialog)
  dialog.showModal()
}
