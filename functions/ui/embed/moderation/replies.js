/**
 * The boxes in which moderators reply to comments.
 * @import { Item } from '../types.d.ts'
 * @import { App } from './app.js'
 * @import { Card } from './card.js'
 */

import { API } from '../kit/address.js'
import { newKey } from '../kit/base64url.js'
import { device } from '../kit/device.js'
import { h, isOfIme } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { standing } from './verdicts.js'

/** @typedef {{ form: HTMLFormElement, field: HTMLTextAreaElement, problem: HTMLElement, send: HTMLButtonElement, isOpen: boolean }} Box */

/** Whether a moderator may reply to a comment, which must be public or pending. @param {Item} item */
export const takesReplies = (item) => standing(item) !== 'rejected'

export class Replies {
  /** Boxes by the id of the comment. @type {Map<number, Box>} */
  #boxes = new Map()

  /** @param {App} app @param {number} [owner] the id of the moderator who writes the replies */
  constructor(app, owner) {
    this.app = app
    this.owner = owner
  }

  /** @param {number} id */
  #draftOf(id) {
    return `${API} reply ${this.owner} ${id}`
  }

  /** Returns the reply box that a card shows. @param {Card} card */
  formIn({ item }) {
    const box = this.#boxes.get(item.id)
    if (!box?.isOpen) return null
    box.send.textContent = standing(item) === 'waiting' ? this.app.t('approve_reply') : this.app.labels.reply
    return box.form
  }

  /** @param {Card} card */
  open(card) {
    const { item } = card
    if (!takesReplies(item)) return this.app.tell(this.app.t('nothing_to_do'))
    const box = this.#boxes.get(item.id) ?? this.#box(item)
    this.#boxes.set(item.id, box)
    box.isOpen = true
    card.render()
    box.field.focus()
  }

  /** Shows the box again, with a reply that wasn't sent, when the comment is next shown. @param {number} id @param {string} reply */
  reopen(id, reply) {
    const box = this.#boxes.get(id)
    if (!box) return
    const { field } = box
    box.isOpen = true
    if (field.value.includes(reply)) return
    field.value = `${reply}\n\n${field.value}`.trim()
    device.set(this.#draftOf(id), field.value)
  }

  /** @param {Item} item @returns {Box} */
  #box(item) {
    const { t, labels } = this.app
    const name = t('reply_to', { name: this.app.nameOf(item) })
    // Stores the text as a draft, because the page may be closed before the reply is sent.
    const field = h('textarea', { rows: '3', dir: 'auto', 'aria-label': name, placeholder: name, input: () => device.set(this.#draftOf(item.id), field.value) })
    field.value = device.get(this.#draftOf(item.id)) ?? ''
    const problem = h('p', { class: 'error', role: 'alert' })
    const send = h('button', { class: 'primary' }, labels.reply)
    const here = () => this.app.cards.find(({ element }) => element.contains(form))
    const form = h('form', {
      class: 'reply',
      submit: (/** @type {SubmitEvent} */ event) => {
        event.preventDefault()
        const card = here()
        if (card) this.#send(card)
      },
      keydown: (/** @type {KeyboardEvent} */ event) => {
        const sends = event.key === 'Enter' && (event.ctrlKey || event.metaKey)
        if ((!sends && event.key !== 'Escape') || isOfIme(event)) return
        event.preventDefault()
        event.stopPropagation()
        if (sends) form.requestSubmit()
        else this.#fold(here())
      },
    }, field, problem, h('div', { class: 'buttons' },
      h('button', { type: 'button', class: 'outlined', click: () => this.#fold(here()) }, t('cancel')), send))
    return { form, field, problem, send, isOpen: true }
  }

  /** Closes the box, but keeps its text. @param {Card | undefined} card */
  #fold(card) {
    const box = card && this.#boxes.get(card.item.id)
    if (!box) return
    box.isOpen = false
    card.render()
    card.list.focus(card)
  }

  /** @param {Card} card */
  async #send(card) {
    const { item, list } = card
    const box = this.#boxes.get(item.id)
    if (!box || box.send.disabled) return
    box.problem.textContent = ''
    const { value } = box.field
    // The button can't keep the focus once it's disabled.
    box.field.focus()
    if (!value.trim()) return
    if (standing(item) === 'waiting') {
      box.isOpen = false
      return list.decide('approve', [card], value)
    }
    box.send.disabled = box.field.readOnly = true
    try {
      await this.deliver(item, value)
      box.isOpen = !!box.field.value
      this.#refresh(item.id, box)
      this.app.tell(this.app.t('replied', { name: this.app.nameOf(item) }))
    } catch (error) {
      const why = this.app.explain(error)
      box.problem.textContent = why
      if (box.form.isConnected) return
      box.isOpen = true
      this.#refresh(item.id, box)
      this.app.tell(this.app.t('not_replied', { why }))
    } finally {
      box.send.disabled = box.field.readOnly = false
    }
  }

  /** Updates the card that contains a box, or else the comment's last card, which is on top. @param {number} id @param {Box} box */
  #refresh(id, { form }) {
    const cards = this.app.cards.filter(({ item }) => item.id === id)
    const card = cards.find(({ element }) => element.contains(form)) ?? cards.at(-1)
    card?.update(card.item, card.note)
  }

  /** Returns open boxes to their cards after the drawer that showed the boxes has closed. */
  regain() {
    for (const [id, box] of this.#boxes) if (box.isOpen && !box.form.isConnected) this.#refresh(id, box)
  }

  /** Posts a reply, then clears the box and the draft unless their texts have changed. @param {Item} item @param {string} body */
  async deliver({ id, thread }, body, client = this.app.client) {
    const draft = this.#draftOf(id)
    // The service may have received a text whose response was lost, even before a reload.
    const name = `${draft} sent`
    // Without the prefix, a text could be the name of an inherited property.
    const text = `text ${body}`
    const keys = () => JSON.parse(device.get(name) || '{}')
    const key = keys()[text] ?? newKey()
    device.set(name, JSON.stringify({ ...keys(), [text]: key }))
    const path = [thread.type, thread.id].map(encodeURIComponent).join('/')
    await client.request('POST', `${path}/comments`, { ...json({ body, parent_id: id }, key), keepalive: true })
    device.set(name, JSON.stringify({ ...keys(), [text]: undefined }))
    const field = this.#boxes.get(id)?.field
    if (field?.value === body) field.value = ''
    // Another tab may have stored a different draft.
    if (device.get(draft) === body) device.set(draft, '')
  }
}
