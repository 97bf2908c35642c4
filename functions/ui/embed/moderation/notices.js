/**
 * Says one thing at a time, to eyes and to screen readers.
 * @import { Offer } from '../types.d.ts'
 */

import { h } from '../kit/dom.js'
import { key } from './icons.js'


export class Notices {
  #status = h('span', { role: 'status', class: 'visually-hidden' })
  #bar = h('div', { class: 'bar', hidden: true })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  element = h('div', {}, this.#status, this.#bar)
  /** Whether the present notice stays. */
  stays = false

  /** @param {string} text @param {Offer} [offer] */
  tell(text, offer) {
    clearTimeout(this.#timer)
    this.stays = !!offer && !offer.for
    this.#status.textContent = text
    this.#bar.replaceChildren(h('span', { dir: 'auto' }, text))
    if (offer) this.#bar.append(h('button', { type: 'button', click: offer.act }, offer.label, offer.key && key(offer.key)))
    if (offer?.for) this.#bar.append(h('span', { class: 'countdown', 'aria-hidden': 'true' }))
    this.#bar.hidden = false
    if (!this.stays) this.#timer = setTimeout(() => this.hide(), offer?.for ?? 6_000)
  }

  hide() {
    clearTimeout(this.#timer)
    this.stays = false
    this.#bar.hidden = true
  }
}
