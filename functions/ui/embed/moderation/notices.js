/**
 * Shows one notice at a time, and announces it to screen readers.
 * @import { Offer, Switch } from '../types.d.ts'
 */

import { h } from '../kit/dom.js'
import { key } from './icons.js'


export class Notices {
  #status = h('span', { role: 'status', class: 'visually-hidden' })
  #bar = h('div', { class: 'bar', hidden: true })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  element = h('div', {}, this.#status, this.#bar)
  /** Whether the current notice stays until the next one. */
  stays = false
  /** Switches of the current notice, by key. @type {Map<string, HTMLButtonElement>} */
  #switches = new Map()
  #left

  /** @param {() => void} left called when a notice that has the focus disappears */
  constructor(left) {
    this.#left = left
  }

  /** @param {string} text @param {Offer} [offer] @param {{ label: string, switches: Switch[] }} [choice] */
  tell(text, offer, choice) {
    clearTimeout(this.#timer)
    this.stays = !!offer && !offer.for
    this.#status.textContent = text
    this.#switches.clear()
    this.#bar.replaceChildren(h('span', { dir: 'auto' }, text))
    if (offer) this.#bar.append(h('button', { type: 'button', click: offer.act }, offer.label, offer.key && key(offer.key)))
    if (choice) this.#bar.append(this.#choice(choice))
    if (offer?.for) this.#bar.append(h('span', { class: 'countdown', 'aria-hidden': 'true' }))
    this.#bar.hidden = false
    if (!this.stays) this.#timer = setTimeout(() => this.hide(), offer?.for ?? 6_000)
  }

  /** @param {{ label: string, switches: Switch[] }} choice */
  #choice({ label, switches }) {
    const show = () => switches.forEach(({ key, isOn }) => this.#switches.get(key)?.setAttribute('aria-pressed', `${isOn()}`))
    for (const { label, key: letter, isOn, act } of switches) {
      const click = () => {
        act()
        show()
        this.#status.textContent = isOn() ? label : ''
      }
      this.#switches.set(letter, h('button', { type: 'button', click }, key(letter), label))
    }
    show()
    return h('div', { class: 'choice', role: 'group', 'aria-label': label }, ...this.#switches.values())
  }

  /** Presses the switch with this key. @param {string} letter @returns {boolean} whether there is one */
  press(letter) {
    const button = this.#bar.hidden ? null : this.#switches.get(letter)
    button?.click()
    return !!button
  }

  hide() {
    clearTimeout(this.#timer)
    const isLeft = this.#bar.matches(':focus-within')
    this.stays = false
    this.#bar.hidden = true
    if (isLeft) this.#left()
  }
}
