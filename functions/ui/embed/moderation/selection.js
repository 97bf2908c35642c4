/**
 * The selected comments of a queue, and the bar above it with their number and actions.
 * @import { Verdict } from '../types.d.ts'
 * @import { Card } from './card.js'
 * @import { CardList } from './queue.js'
 */

import { h } from '../kit/dom.js'
import { icon, sign } from './icons.js'

export class Selection {
  element = h('div', { class: 'toolbar' })
  /** The card at which a range begins. @type {Card | null} */
  #anchor = null
  #count = h('span', { class: 'muted' })
  #all = h('input', { type: 'checkbox', change: () => this.selectAll(this.#all.checked) })

  /** @param {CardList} list */
  constructor(list) {
    this.list = list
  }

  get cards() {
    return this.list.cards.filter(({ selected }) => selected)
  }

  /** @param {Card} card @param {boolean} selected */
  select(card, selected) {
    card.select(selected)
    this.#anchor = card
    this.show()
  }

  /** @param {boolean} [selected] */
  selectAll(selected = true) {
    this.list.cards.forEach((card) => card.select(selected))
    this.show()
  }

  /** Selects everything from the card that was last selected or deselected to the current one. */
  selectRange() {
    const { cards, current } = this.list
    if (!current) return
    const anchor = this.#anchor && cards.includes(this.#anchor) ? this.#anchor : current
    const [from, to] = [anchor, current].map((card) => cards.indexOf(card)).sort((a, b) => a - b)
    cards.slice(from, to + 1).forEach((card) => card.select(true))
    this.show()
  }

  /** Ends the selection. @returns {boolean} whether there was one */
  clear() {
    const chosen = this.cards
    const { current } = this.list
    chosen.forEach((card) => card.select(false))
    this.#anchor = null
    this.show()
    if (chosen.length && current) this.list.focus(current)
    return chosen.length > 0
  }

  /** Clears the range, and makes `show` create the buttons again. */
  reset() {
    this.#anchor = null
    this.element.dataset.mode = ''
  }

  show() {
    const { list } = this
    const { t } = list.app
    const chosen = this.cards
    const n = list.cards.length
    const more = list.hasMore
    this.#count.textContent = chosen.length ? t('selected', { n: chosen.length }) : n ? t(more ? 'count_more' : 'count', { n }) : ''
    this.#all.checked = n > 0 && chosen.length === n
    this.#all.indeterminate = chosen.length > 0 && chosen.length < n
    this.#all.hidden = !n
    this.#all.setAttribute('aria-label', t('select_all'))
    this.element.classList.toggle('selecting', chosen.length > 0)
    if (this.element.childElementCount && this.element.dataset.mode === `${chosen.length > 0}`) return
    this.element.dataset.mode = `${chosen.length > 0}`
    const keep = list.state === 'reported'
    const decide = (/** @type {Verdict} */ verdict) => () => list.decide(verdict, list.chosen)
    const buttons = chosen.length
      ? [
          h('button', { type: 'button', class: 'approve', click: decide('approve') }, sign('approve', 'a'), t(keep ? 'keep' : 'approve')),
          list.state !== 'rejected' && h('button', { type: 'button', class: 'reject', click: decide('reject') }, sign('reject', 'r'), t('reject')),
          h('button', { type: 'button', class: 'quiet', click: () => list.app.bans.banWriters(list, list.chosen) }, sign('ban', 'b'), t('ban')),
          h('button', { type: 'button', class: 'quiet end', 'aria-label': t('clear'), title: t('clear'), click: () => this.clear() }, icon('reject')),
        ]
      : [h('button', { type: 'button', class: 'quiet end refresh', click: () => list.refresh() }, icon('refresh'), t('refresh'))]
    this.element.replaceChildren(this.#all, this.#count, ...buttons.filter((button) => !!button))
  }

  /** Marks the button that reloads the list, because there are new comments. */
  offerNew() {
    const button = this.element.querySelector('.refresh')
    button?.classList.add('news')
    button?.replaceChildren(icon('refresh'), this.list.app.t('new_ones'))
  }
}
