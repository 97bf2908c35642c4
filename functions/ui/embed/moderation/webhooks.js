/**
 * Adds and changes webhooks, and shows their deliveries.
 * @import { Delivery, Webhook } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { ApiError } from '../kit/api.js'
import { inFull } from '../kit/dates.js'
import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { ago } from './ago.js'
import { below } from './below.js'
import { focusLate } from './focus.js'
import { icon } from './icons.js'
import { webhookDialog } from './webhook_dialog.js'


export class WebhooksPanel {
  #add = h('button', { type: 'button', class: 'outlined', click: () => this.#edit(null) })
  #rows = h('ul', { class: 'rows webhooks' })
  #end = h('div', { class: 'after' })

  /** @param {App} app */
  constructor(app) {
    this.app = app
    const { t } = app
    const refresh = h('button', { type: 'button', class: 'quiet end', click: () => this.reload() }, icon('refresh'), t('refresh'))
    this.#add.textContent = t('add_webhook')
    this.element = h('div', {}, h('div', { class: 'toolbar' }, this.#add, refresh), this.#rows, this.#end)
  }

  focusFirst() {
    this.#add.focus()
  }

  async reload() {
    const { app } = this
    const { t } = app
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data } = await app.client.get('moderation/webhooks')
      this.#add.hidden = false
      this.#rows.replaceChildren(...data.map((/** @type {Webhook} */ webhook) => this.#row(webhook)))
      this.#end.replaceChildren(below(app, this.#rows, null, () => {}, 'empty_webhooks'))
    } catch (error) {
      const isOff = error instanceof ApiError && error.status === 404
      this.#rows.replaceChildren()
      this.#add.hidden = isOff
      this.#end.replaceChildren(isOff ? h('p', { class: 'muted centred' }, t('webhooks_off')) : app.problem(error, () => this.reload()))
    }
  }

  /** @param {Webhook} webhook */
  #row(webhook) {
    const { t } = this.app
    const { enabled } = webhook
    const act = (/** @type {string} */ label, /** @type {() => unknown} */ click) => h('button', { type: 'button', class: 'quiet', click }, t(label))
    return h('li', { class: 'row' },
      h('div', { class: 'by' },
        h('strong', { dir: 'ltr' }, webhook.url),
        h('span', { class: 'muted' }, webhook.events.join(', ')),
        !enabled && h('span', { class: 'ban' }, t('disabled'))),
      h('div', { class: 'actions' },
        act('deliveries', () => this.#deliveries(webhook)),
        enabled && act('send_test', () => this.#send('POST', `${pathOf(webhook)}/test`, undefined, 'test_sent')),
        act('edit', () => this.#edit(webhook)),
        act(enabled ? 'disable' : 'enable', () => this.#send('PATCH', pathOf(webhook), { enabled: !enabled })),
        act('remove', () => this.#remove(webhook))))
  }

  /**
   * Sends a change, reports the result and refreshes the list.
   * @param {string} method @param {string} path @param {object} [body] @param {string} [done] key of a text
   */
  #send(method, path, body, done = 'saved') {
    const { app } = this
    const send = async () => {
      try {
        await app.client.request(method, path, body && json(body))
        app.tell(app.t(done))
      } catch (error) {
        app.tell(app.explain(error))
      }
      await this.reload()
    }
    return focusLate(app, this.element, send, () => this.focusFirst())
  }

  /** @param {Webhook} webhook */
  async #remove(webhook) {
    const { app } = this
    const { t } = app
    const dialog = h('dialog', { 'aria-labelledby': 'remove-title' },
      h('form', { method: 'dialog' },
        h('h2', { id: 'remove-title' }, t('remove_webhook')),
        h('p', { class: 'muted', dir: 'ltr' }, webhook.url),
        h('div', { class: 'buttons' },
          h('button', { class: 'outlined', value: '', autofocus: true }, t('cancel')),
          h('button', { class: 'primary danger', value: 'remove' }, t('remove')))))
    if ((await app.open(dialog)) === 'remove') await this.#send('DELETE', pathOf(webhook))
  }

  /** Shows the dialog that adds a webhook, or changes `webhook`. @param {Webhook | null} webhook */
  async #edit(webhook) {
    const { app } = this
    const dialog = webhookDialog(app, webhook, async (fields) => {
      const method = webhook ? 'PATCH' : 'POST'
      return (await app.client.request(method, webhook ? pathOf(webhook) : 'moderation/webhooks', json(fields))).data.secret
    })
    await app.open(dialog)
    if (dialog.returnValue === 'saved') await this.reload()
  }

  /** @param {Webhook} webhook */
  #deliveries(webhook) {
    const { app } = this
    const { t, language } = app
    const rows = h('ol', { class: 'rows' })
    const end = h('div', { class: 'after' })
    const row = (/** @type {Delivery} */ delivery) => {
      const last = delivery.attempts.at(-1)
      const said = last && (last.status ? `${last.status}` : t('no_answer'))
      const again = h('button', { type: 'button', class: 'quiet', click: async () => {
        again.disabled = true
        await this.#redeliver(webhook, delivery.id)
        await load('')
      } }, t('send_again'))
      return h('li', { class: 'row' },
        h('div', { class: 'by' },
          h('span', {}, h('strong', {}, delivery.event), ' ', h('span', { class: delivery.status === 'failed' ? 'ban' : 'muted' }, t(`delivery_${delivery.status}`))),
          h('span', { class: 'muted' }, [said, last && `${last.ms} ms`, delivery.attempts.length > 1 && t('attempts', { n: delivery.attempts.length })].filter(Boolean).join(' · '),
            last ? h('time', { datetime: last.at, title: inFull(last.at, language) }, ` · ${ago(last.at, language)}`) : '')),
        h('div', { class: 'actions' },
          delivery.comment_id != null && h('button', { type: 'button', class: 'quiet', click: () => app.side.showComment(delivery.comment_id ?? 0) }, t('show')),
          webhook.enabled && again))
    }
    const load = async (/** @type {string} */ cursor) => {
      end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
      try {
        const { data, meta } = await app.client.get(`${pathOf(webhook)}/deliveries`, { cursor, per_page: 50 })
        if (!cursor) rows.replaceChildren()
        rows.append(...data.map(row))
        end.replaceChildren(below(app, rows, meta.next_cursor, load, 'empty_deliveries'))
      } catch (error) {
        end.replaceChildren(app.problem(error, () => load(cursor)))
      }
    }
    load('')
    const dialog = h('dialog', { class: 'drawer', 'aria-labelledby': 'drawer-title' },
      h('div', { class: 'drawer-head' },
        h('h2', { id: 'drawer-title', tabindex: '-1', autofocus: true }, t('deliveries')),
        h('button', { type: 'button', class: 'quiet', click: () => load('') }, icon('refresh'), t('refresh')),
        h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('close'))),
      h('p', { class: 'about muted', dir: 'ltr' }, webhook.url), rows, end)
    app.open(dialog)
  }

  /** @param {Webhook} webhook @param {string} message */
  async #redeliver(webhook, message) {
    const { app } = this
    try {
      await app.client.request('POST', `${pathOf(webhook)}/deliveries/${message}/redeliver`)
      app.tell(app.t('test_sent'))
    } catch (error) {
      app.tell(app.explain(error))
    }
  }

  close() {}
}

/** @param {Webhook} webhook */
const pathOf = ({ id }) => `moderation/webhooks/${id}`
