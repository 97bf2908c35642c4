/**
 * @import { Author, Rejects } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { ApiError } from '../kit/api.js'
import { h } from '../kit/dom.js'
import { keepOpen } from './dialogs.js'

const DAY = 86_400_000

/** Lengths of bans in days. 0 is permanent. */
const LENGTHS = /** @type {const} */ ([['ban_day', 1], ['ban_week', 7], ['ban_month', 30], ['ban_forever', 0]])

/** Maximum days of a network ban. It's short, because addresses are reassigned to other people. The service allows one more day, because its clock may differ. */
const NETWORK_DAYS = 29

/** @param {number} time in milliseconds */
const apiTime = (time) => new Date(time).toISOString().replace(/\.\d+Z$/, '+00:00')

/** Returns the date this many days from now, in the format of a date field. @param {number} days */
const dayIn = (days) => new Date(Date.now() + days * DAY).toISOString().slice(0, 10)

/** @param {string} name @param {string | number} value @param {string} label @param {string | number} chosen */
function radio(name, value, label, chosen) {
  const input = h('input', { type: 'radio', name, value: `${value}` })
  input.checked = value === chosen
  return h('label', {}, input, label)
}

/** @param {App} app @param {Author[]} authors */
function banTitle({ t, bans }, authors) {
  const [first] = authors
  if (authors.length > 1) return t('ban_title_many', { n: authors.length })
  return t(first.id == null ? 'block_title' : 'ban_title', { name: bans.nameOf(first) })
}

/** @param {App} app @param {number} comments @param {Rejects} chosen */
function rejectsField({ t }, comments, chosen) {
  const these = comments ? radio('rejects', 'these', t('ban_rejects_these', { n: comments }), chosen) : ''
  const field = h('fieldset', {}, h('legend', {}, t('ban_rejects')),
    radio('rejects', 'none', t('ban_rejects_none'), chosen), these, radio('rejects', 'recent', t('ban_rejects_recent'), chosen))
  field.querySelector('input:checked')?.setAttribute('autofocus', '')
  return field
}

/** @param {App} app @param {boolean} isNetwork @param {HTMLInputElement} date */
function lengthField({ t }, isNetwork, date) {
  const lengths = LENGTHS.filter(([, days]) => !isNetwork || (days && days < NETWORK_DAYS))
  const other = radio('length', 'date', t('ban_date'), '')
  other.append(date)
  date.addEventListener('focus', () => other.querySelector('input')?.click())
  return h('fieldset', {}, h('legend', {}, t('ban_length')), ...lengths.map(([label, days]) => radio('length', days, t(label), isNetwork ? 1 : 7)), other)
}

/** Returns the end of the chosen ban in milliseconds, or null if the ban is permanent. @param {FormData} data */
function endOf(data) {
  const length = `${data.get('length')}`
  if (length === 'date') return new Date(`${data.get('date')}T00:00`).getTime()
  return length === '0' ? null : Date.now() + Number(length) * DAY
}

/**
 * Creates the ban dialog. `submit` sends the ban. If it fails, the dialog shows the error and stays open.
 * @param {App} app
 * @param {Author[]} authors
 * @param {{ comments: number, rejects: Rejects }} offer the number of comments that may be rejected with the ban, and the initial choice
 * @param {(ban: { until: string | null, reason: string | null, rejects: Rejects }) => Promise<void>} submit
 */
export function banDialog(app, authors, { comments, rejects }, submit) {
  const { t } = app
  const isNetwork = authors.some(({ id }) => id == null)
  const isUser = authors.some(({ id }) => id != null)
  const date = h('input', { type: 'date', name: 'date', 'aria-label': t('ban_date'), min: dayIn(1), max: isNetwork && dayIn(NETWORK_DAYS) })
  const error = h('p', { role: 'alert', class: 'error', hidden: true })
  const send = h('button', { class: 'primary danger' }, t(isUser ? 'ban_confirm' : 'block_confirm'))
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'ban-title', dir: 'auto' }, banTitle(app, authors)),
    isUser && h('p', { class: 'muted' }, t('ban_effect')),
    isNetwork && h('p', { class: 'muted' }, t('block_effect')),
    rejectsField(app, comments, rejects),
    lengthField(app, isNetwork, date),
    h('label', { class: 'field' }, t('ban_reason'), h('input', { name: 'reason', maxlength: '500', autocomplete: 'off' })),
    error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')), send))
  const dialog = h('dialog', { class: 'ban-dialog', 'aria-labelledby': 'ban-title' }, form)
  const refuse = (/** @type {string} */ text) => {
    error.textContent = text
    error.hidden = false
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const data = new FormData(form)
    const end = endOf(data)
    error.hidden = true
    if (end != null && !(end > Date.now())) {
      refuse(t('error_date'))
      return date.focus()
    }
    await keepOpen(dialog, async () => {
      try {
        const until = end == null ? null : apiTime(end)
        await submit({ until, reason: `${data.get('reason')}`.trim() || null, rejects: /** @type {Rejects} */ (data.get('rejects')) })
        dialog.close('banned')
      } catch (refusal) {
        const isForbidden = refusal instanceof ApiError && refusal.code === 'forbidden'
        refuse(isForbidden ? t('no_ban') : app.explain(refusal))
      }
    })
  })
  return dialog
}
