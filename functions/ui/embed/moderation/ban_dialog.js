/**
 * The dialog of a ban.
 * @import { User } from '../types.d.ts'
 * @import { Desk } from './desk.js'
 */

import { ApiError } from '../kit/api.js'
import { h } from '../kit/dom.js'


const DAY = 86_400_000

/** Days that a ban lasts, 0 for good. */
const LENGTHS = /** @type {const} */ ([['ban_day', 1], ['ban_week', 7], ['ban_month', 30], ['ban_forever', 0]])

/** A time as the API takes it. @param {number} time in milliseconds */
const apiTime = (time) => new Date(time).toISOString().replace(/\.\d+Z$/, '+00:00')

/**
 * The dialog of a ban. `submit` sends it; what it refuses is told in the dialog, which stays open.
 * @param {Desk} desk
 * @param {User} user
 * @param {boolean} rejectable whether the comment could be rejected, too
 * @param {(ban: { until: string | null, reason: string | null }, reject: boolean) => Promise<void>} submit
 */
export function banDialog({ t, explain }, user, rejectable, submit) {
  const date = h('input', { type: 'date', name: 'date', 'aria-label': t('ban_date'), focus: () => (other.checked = true) })
  date.min = new Date(Date.now() + DAY).toISOString().slice(0, 10)
  const other = h('input', { type: 'radio', name: 'length', value: 'date' })
  const reason = h('input', { name: 'reason', maxlength: '500', autocomplete: 'off' })
  const reject = h('input', { type: 'checkbox' })
  reject.checked = rejectable
  const error = h('p', { role: 'alert', class: 'error', hidden: true })
  const lengths = LENGTHS.map(([label, days]) => {
    const radio = h('input', { type: 'radio', name: 'length', value: `${days}`, autofocus: days === 7 })
    radio.checked = days === 7
    return h('label', {}, radio, t(label))
  })
  const send = h('button', { class: 'primary danger' }, t('ban_confirm'))
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'ban-title', dir: 'auto' }, t('ban_title', { name: user.name })),
    h('p', { class: 'muted' }, t('ban_effect')),
    h('fieldset', {}, h('legend', {}, t('ban_length')), ...lengths, h('label', {}, other, t('ban_date'), date)),
    h('label', { class: 'field' }, t('ban_reason'), reason),
    rejectable && h('label', { class: 'check' }, reject, t('ban_and_reject')),
    error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')), send))
  const dialog = h('dialog', { class: 'ban-dialog', 'aria-labelledby': 'ban-title' }, form)
  const until = () => {
    const length = `${new FormData(form).get('length')}`
    if (length !== 'date') return length === '0' ? null : Date.now() + Number(length) * DAY
    return new Date(`${date.value}T00:00`).getTime()
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const end = until()
    const valid = end == null || end > Date.now()
    error.hidden = valid
    error.textContent = t('error_date')
    if (!valid) return date.focus()
    send.disabled = true
    try {
      await submit({ until: end == null ? null : apiTime(end), reason: reason.value.trim() || null }, reject.checked && rejectable)
      dialog.close('banned')
    } catch (refusal) {
      const isForbidden = refusal instanceof ApiError && refusal.code === 'forbidden'
      error.textContent = isForbidden ? t('no_ban') : explain(refusal)
      error.hidden = false
      send.disabled = false
    }
  })
  return dialog
}
