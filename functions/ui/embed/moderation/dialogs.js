/**
 * Shows dialogs, one above the other.
 * @import { App } from './app.js'
 * @import { CardList } from './queue.js'
 */

import { h } from '../kit/dom.js'


/**
 * Shows a dialog until it is closed, then restores the focus.
 * @param {App} app
 * @param {HTMLDialogElement} dialog
 */
export function showDialog(app, dialog) {
  const before = /** @type {HTMLElement | null} */ (app.root.activeElement)
  app.frame.append(dialog)
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove()
      // A key press may have moved the focus already.
      if (before?.isConnected && !app.root.activeElement) before.focus({ preventScroll: true })
      resolve(dialog.returnValue)
    }, { once: true })
  })
}

/** Keeps a dialog open while its form is sent. @param {HTMLDialogElement} dialog @param {() => Promise<void>} send */
export async function keepOpen(dialog, send) {
  const stay = (/** @type {Event} */ event) => event.preventDefault()
  const set = (/** @type {boolean} */ isBusy) => {
    dialog.setAttribute('aria-busy', `${isBusy}`)
    dialog.setAttribute('closedby', isBusy ? 'none' : 'closerequest')
    for (const button of dialog.querySelectorAll('button')) button.disabled = isBusy
  }
  dialog.addEventListener('cancel', stay)
  set(true)
  await send()
  set(false)
  dialog.removeEventListener('cancel', stay)
}

/**
 * Creates a side dialog with a list of comments.
 * @param {App} app
 * @param {string} title
 * @param {HTMLElement | null} about
 * @param {CardList} list
 */
export function drawer({ t }, title, about, list) {
  const dialog = h('dialog', { class: 'drawer', 'aria-labelledby': 'drawer-title' },
    h('div', { class: 'drawer-head' },
      h('h2', { id: 'drawer-title', dir: 'auto', tabindex: '-1', autofocus: true }, title),
      h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('close'))),
    about, list.element)
  return dialog
}
