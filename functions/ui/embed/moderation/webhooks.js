/**
 * Adds and changes webhooks, and shows what was sent to each.
 * @import { Delivery, Webhook } from '../types.d.ts'
 * @import { Desk } from './desk.js'
 */

import { ApiError } from '../kit/api.js'
import { inFull } from '../kit/dates.js'
import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { ago } from './ago.js'
import { below } from './below.js'
import { icon } from './icons.js'
import { webhookDialog } from './webhook_dialog.js'


export class WebhooksPanel {
  #add = h('button', { type: 'button', class: 'outlined', click: () => this.#edit(null) })
  #rows = h('ul', { class: 'rows webhooks' })
  #end = h('div', { class: 'after' })

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
    const { t } = desk
    const refresh = h('button', { type: 'button', class: 'quiet end', click: () => this.reload() }, icon('refresh'), t('refresh'))
    this.#add.textContent = t('add_webhook')
    this.element = h('div', {}, h('div', { class: 'toolbar' }, this.#add, refresh), this.#rows, this.#end)
  }

  focusFirst() {
    this.#add.focus()
  }

  async reload() {
    const { desk } = this
    const { t } = desk
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data } = await desk.client.get('moderation/webhooks')
      this.#add.hidden = false
      this.#rows.replaceChildren(...data.map((/** @type {Webhook} */ webhook) => this.#row(webhook)))
      this.#end.replaceChildren(below(desk, this.#rows, null, () => {}, 'empty_webhooks'))
    } catch (error) {
      const isOff = error instanceof ApiError && error.status === 404
      this.#rows.replaceChildren()
      this.#add.hidden = isOff
      this.#end.replaceChildren(isOff ? h('p', { class: 'muted centred' }, t('webhooks_off')) : desk.problem(error, () => this.reload()))
    }
  }

  /** @param {Webhook} webhook */
  #row(webhook) {
    const { t } = this.desk
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
   * Sends a change, tells what became of it and shows the list anew.
   * @param {string} method @param {string} path @param {object} [body] @param {string} [done] key of a text
   */
  async #send(method, path, body, done = 'saved') {
    const { desk } = this
    try {
      await desk.client.request(method, path, body && json(body))
      desk.tell(desk.t(done))
    } catch (error) {
      desk.tell(desk.explain(error))
    }
    await this.reload()
    this.#add.focus()
  }

  /** @param {Webhook} webhook */
  async #remove(webhook) {
    const { desk } = this
    const { t } = desk
    const dialog = h('dialog', { 'aria-labelledby': 'remove-title' },
      h('form', { method: 'dialog' },
        h('h2', { id: 'remove-title' }, t('remove_webhook')),
        h('p', { class: 'muted', dir: 'ltr' }, webhook.url),
        h('div', { class: 'buttons' },
          h('button', { class: 'outlined', value: '', autofocus: true }, t('cancel')),
          h('button', { class: 'primary danger', value: 'remove' }, t('remove')))))
    if ((await desk.open(dialog)) === 'remove') await this.#send('DELETE', pathOf(webhook))
  }

  /** The dialog that adds a webhook, or changes this one. @param {Webhook | null} webhook */
  async #edit(webhook) {
    const { desk } = this
    const dialog = webhookDialog(desk, webhook, async (fields) => {
      const method = webhook ? 'PATCH' : 'POST'
      return (await desk.client.request(method, webhook ? pathOf(webhook) : 'moderation/webhooks', json(fields))).data.secret
    })
    await desk.open(dialog)
    if (dialog.returnValue === 'saved') await this.reload()
  }

  /** @param {Webhook} webhook */
  #deliveries(webhook) {
    const { desk } = this
    const { t, language } = desk
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
          delivery.comment_id != null && h('button', { type: 'button', class: 'quiet', click: () => desk.side.showComment(delivery.comment_id ?? 0) }, t('show')),
          webhook.enabled && again))
    }
    const load = async (/** @type {string} */ cursor) => {
      end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
      try {
        const { data, meta } = await desk.client.get(`${pathOf(webhook)}/deliveries`, { cursor, per_page: 50 })
        if (!cursor) rows.replaceChildren()
        rows.append(...data.map(row))
        end.replaceChildren(below(desk, rows, meta.next_cursor, load, 'empty_deliveries'))
      } catch (error) {
        end.replaceChildren(desk.problem(error, () => load(cursor)))
      }
    }
    load('')
    const dialog = h('dialog', { class: 'drawer', 'aria-labelledby': 'drawer-title' },
      h('div', { class: 'drawer-head' },
        h('h2', { id: 'drawer-title', tabindex: '-1', autofocus: true }, t('deliveries')),
        h('button', { type: 'button', class: 'quiet', click: () => load('') }, icon('refresh'), t('refresh')),
        h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('close'))),
      h('p', { class: 'about muted', dir: 'ltr' }, webhook.url), rows, end)
    desk.open(dialog)
  }

  /** @param {Webhook} webhook @param {string} message */
  async #redeliver(webhook, message) {
    const { desk } = this
    try {
      await desk.client.request('POST', `${pathOf(webhook)}/deliveries/${message}/redeliver`)
      desk.tell(desk.t('test_sent'))
    } catch (error) {
      desk.tell(desk.explain(error))
    }
  }

  close() {}
}

/** @param {Webhook} webhook */
const pathOf = ({ id }) => `moderation/webhooks/${id}`
