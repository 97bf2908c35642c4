/**
 * Keyboard shortcuts, and the dialog that explains them.
 * @import { App } from './app.js'
 * @import { CardList } from './queue.js'
 */

import { h } from '../kit/dom.js'

const KEYS = /** @type {const} */ ([
  ['j k', 'help_move'], ['a', 'help_approve'], ['r', 'reject'], ['1–6', 'help_reason'], ['b', 'help_ban'],
  ['c', 'help_close'], ['Enter', 'help_reply'], ['x', 'help_select'], ['X', 'help_range'], ['*', 'select_all'], ['u', 'help_undo'], ['?', 'help_help'], ['Esc', 'help_clear'],
])

/** The storage key of the flag that turns letter shortcuts off. */
const LETTERS = 'comment-moderation-letters'

/** @param {Keys} keys */
function helpDialog(keys) {
  const { t } = keys.app
  const box = h('input', { type: 'checkbox', change: () => keys.use(box.checked) })
  box.checked = keys.letters
  const rows = KEYS.flatMap(([letters, text]) => [
    h('dt', {}, ...letters.split(' ').map((letter) => h('kbd', {}, letter))),
    h('dd', {}, t(text)),
  ])
  return h('dialog', { class: 'help-dialog', 'aria-labelledby': 'help-title' },
    h('form', { method: 'dialog' },
      h('h2', { id: 'help-title' }, t('help')),
      h('dl', {}, ...rows),
      h('p', { class: 'muted' }, t('help_selection')),
      h('label', { class: 'check' }, box, t('letters')),
      h('div', { class: 'buttons' }, h('button', { class: 'outlined', autofocus: true }, t('close')))))
}

/** @param {EventTarget | undefined} target */
const isField = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('textarea, select, input:not([type=checkbox])'))

function lettersWanted() {
  try {
    return localStorage.getItem(LETTERS) !== 'off'
  } catch {
    return true
  }
}

export class Keys {
  /** Whether letters are shortcuts. */
  letters = lettersWanted()

  /** @param {App} app */
  constructor(app) {
    this.app = app
    app.frame.classList.toggle('no-letters', !this.letters)
  }

  help() {
    return this.app.open(helpDialog(this))
  }

  /** @param {KeyboardEvent} event */
  take(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isField(event.composedPath()[0])) return
    const top = this.app.top ?? null
    if (top && !top.classList.contains('drawer')) return
    const list = this.app.lists.find(({ element }) => element.closest('dialog') === top)
    if (event.key === 'Escape') {
      if (!top && list?.selection.clear()) event.preventDefault()
      return
    }
    const card = list?.current
    if (event.key === 'Enter' && card && event.composedPath()[0] === card.element) {
      event.preventDefault()
      return this.app.replies.open(card)
    }
    if (!this.letters || !this.app.isOpen) return
    const letter = event.shiftKey ? event.key : event.key.toLowerCase()
    if (this.#press(letter, event.repeat, list)) event.preventDefault()
  }

  /** @param {string} letter @param {boolean} repeated @param {CardList | undefined} list @returns {boolean} whether the letter is a shortcut */
  #press(letter, repeated, list) {
    const { app } = this
    const selection = list?.selectable ? list.selection : undefined
    const card = list?.current
    /** @type {Record<string, () => unknown>} */
    const acts = {
      j: () => list?.move(1),
      k: () => list?.move(-1),
      a: () => list?.decide('approve', list.chosen),
      r: () => list?.decide('reject', list.chosen),
      b: () => list && app.bans.banWriters(list, list.chosen),
      c: () => card && app.decisions.toggle(card.item.thread),
      x: () => card && selection?.select(card, !card.selected),
      X: () => selection?.selectRange(),
      '*': () => selection?.selectAll(),
      u: () => app.decisions.undo(),
      '?': () => this.help(),
    }
    if (!Object.hasOwn(acts, letter)) return !repeated && app.notices.press(letter)
    if (!repeated || 'jk'.includes(letter)) acts[letter]()
    return true
  }

  /** @param {boolean} letters */
  use(letters) {
    this.letters = letters
    this.app.frame.classList.toggle('no-letters', !letters)
    try {
      if (letters) localStorage.removeItem(LETTERS)
      else localStorage.setItem(LETTERS, 'off')
    } catch {
      // Without storage, the choice lasts as long as the page.
    }
  }
}
