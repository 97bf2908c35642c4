/**
 * The reason and note of a rejection that hasn't been sent.
 * @import { Grounds, Switch } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { REASONS } from '../kit/decisions.js'
import { h } from '../kit/dom.js'

/** The key of the note. Reasons have keys 1 to 5, in order. */
const NOTE = `${REASONS.length + 1}`

/** Maximum characters of a note. */
const MAX_NOTE = 500

/**
 * Creates a switch for each reason, of which at most one is on, and a switch for a note.
 * @param {App} app @param {Grounds} grounds @param {{ changed: () => void, askNote: () => void }} actions
 * @returns {Switch[]}
 */
export function reasonSwitches({ t, labels }, grounds, { changed, askNote }) {
  const switches = REASONS.map((reason, place) => {
    const isOn = () => grounds.reason === reason
    const act = () => {
      grounds.reason = isOn() ? null : reason
      changed()
    }
    return { label: labels[reason], key: `${place + 1}`, isOn, act }
  })
  return [...switches, { label: t('note'), key: NOTE, isOn: () => !!grounds.note, act: askNote }]
}

/** Asks for a note to the writer. @param {App} app @param {Grounds} grounds */
export async function askNote(app, grounds) {
  const { t } = app
  const field = h('textarea', { rows: '4', maxlength: `${MAX_NOTE}`, dir: 'auto', 'aria-describedby': 'note-hint', autofocus: true })
  field.value = grounds.note ?? ''
  const dialog = h('dialog', { class: 'note-dialog', 'aria-labelledby': 'note-title' },
    h('form', { method: 'dialog' },
      h('h2', { id: 'note-title' }, t('note_title')),
      h('label', { class: 'field' }, h('span', { class: 'visually-hidden' }, t('note_title')), field),
      h('p', { class: 'muted small', id: 'note-hint' }, t('note_hint')),
      h('div', { class: 'buttons' },
        h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')),
        h('button', { class: 'primary', value: 'saved' }, t('save')))))
  if ((await app.open(dialog)) === 'saved') grounds.note = field.value.trim() || null
}
