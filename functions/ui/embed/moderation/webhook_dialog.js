/**
 * @import { Webhook } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { ApiError } from '../kit/api.js'
import { h } from '../kit/dom.js'
import { keepOpen } from './dialogs.js'

/**
 * Creates the webhook dialog. `submit` sends the fields, and returns the secret of a new webhook.
 * @param {App} app
 * @param {Webhook | null} webhook
 * @param {(fields: { url: string, events: string[] }) => Promise<string | undefined>} submit
 */
export function webhookDialog(app, webhook, submit) {
  const { t } = app
  const url = h('input', { type: 'url', required: true, maxlength: '2048', autocomplete: 'off', spellcheck: 'false', dir: 'ltr', placeholder: 'https://', autofocus: true })
  url.value = webhook?.url ?? ''
  const boxes = app.webhookEvents.map((event) => {
    const box = h('input', { type: 'checkbox', name: 'event', value: event })
    box.checked = !webhook || webhook.events.includes(event)
    return h('label', {}, box, event)
  })
  const error = h('p', { role: 'alert', class: 'error', hidden: true })
  const send = h('button', { class: 'primary' }, t('save'))
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'webhook-title' }, t(webhook ? 'edit_webhook' : 'add_webhook')),
    h('label', { class: 'field' }, t('webhook_url'), url),
    h('fieldset', {}, h('legend', {}, t('webhook_events')), ...boxes),
    error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')), send))
  const dialog = h('dialog', { class: 'webhook-dialog', 'aria-labelledby': 'webhook-title' }, form)
  const save = async () => {
    try {
      const secret = await submit({ url: url.value.trim(), events: new FormData(form).getAll('event').map(String) })
      dialog.returnValue = 'saved'
      if (!secret) return dialog.close('saved')
      const shown = h('input', { readonly: true, dir: 'ltr', value: secret, focus: () => shown.select() })
      const close = h('button', { class: 'primary', value: 'saved' }, t('close'))
      dialog.replaceChildren(h('form', { method: 'dialog' },
        h('h2', { id: 'webhook-title' }, t('webhook_secret')),
        h('p', { class: 'muted' }, t('secret_once')),
        h('label', { class: 'field' }, t('webhook_secret'), shown),
        h('div', { class: 'buttons' }, close)))
      shown.focus()
    } catch (refusal) {
      error.textContent = refusalText(app, refusal)
      error.hidden = false
    }
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    return keepOpen(dialog, save)
  })
  return dialog
}

/** Returns the service's messages about the fields, or else an explanation of the failure. @param {App} app @param {unknown} error */
function refusalText(app, error) {
  return error instanceof ApiError && error.status === 422 ? error.message : app.explain(error)
}
