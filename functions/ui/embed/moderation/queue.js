/**
 * A list of comments.
 * @import { Item, ListPage, State, Verdict } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { h } from '../kit/dom.js'
import { Card } from './card.js'
import { Cards } from './cards.js'
import { emptyPanel } from './empty.js'
import { focusLate } from './focus.js'
import { filtersOf, searchField } from './search.js'
import { Selection } from './selection.js'
import { actionOf, applies } from './verdicts.js'

/** A search loads more pages until it has `FOUND` new cards, or has sent `REQUESTS` requests. */
const FOUND = 20
const REQUESTS = 5

export class CardList extends Cards {
  /** @type {string | null} */
  #cursor = ''
  /** The id of the newest comment that was loaded. */
  #newest = 0
  /** Identifies the current load, which a reload replaces. */
  #turn = 0
  /** @type {Promise<void> | null} */
  #loading = null
  #feed = h('div', { role: 'feed', class: 'cards' })
  #end = h('div', { class: 'after' })
  selection = new Selection(this)
  #sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#measures.get(target)?.()))
  /** @type {WeakMap<Element, () => void>} */
  #measures = new WeakMap()
  #nearEnd
  /** The search filters, as query parameters of the API. @type {Record<string, string>} */
  #filters = {}
  /** The number of cards to load in total, and the number of requests left to load them. */
  #goal = { cards: 0, requests: 0 }

  /**
   * @param {App} app
   * @param {{
   *   label: string, empty: string, state?: State,
   *   load: (cursor: string, size?: number, filters?: Record<string, string>) => Promise<ListPage>,
   * }} options `state`: only for queues
   */
  constructor(app, { label, empty, state, load }) {
    super()
    this.app = app
    this.state = state
    /** Whether comments stay in the list after a decision. */
    this.keeps = !state || state === 'all'
    this.selectable = !!state
    this.empty = empty
    this.load = load
    this.#feed.setAttribute('aria-label', label)
    this.#nearEnd = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.more(), { rootMargin: '1200px' })
    if (state) this.#filters = /** @type {Record<string, string>} */ (filtersOf(app.searched) ?? {})
    const search = state && searchField(app, (filters, enter) => this.#search(filters, enter))
    this.element = h('div', { class: 'list' }, search, this.selectable && this.selection.element, this.#feed, this.#end)
    this.#feed.addEventListener('focusin', (event) => {
      const card = this.cards.find(({ element }) => element.contains(/** @type {Node} */ (event.target)))
      if (card) this.setCurrent(card)
    })
    this.#feed.addEventListener('click', (event) => {
      const target = /** @type {Element} */ (event.target)
      const card = this.cards.find(({ element }) => element.contains(target))
      if (card && !target.closest('a, button, input, form') && !getSelection()?.toString()) this.focus(card)
    })
    this.selection.show()
  }

  get hasMore() {
    return this.#cursor != null
  }

  async reload() {
    // Invalidates the page that is being loaded.
    this.#turn++
    this.#loading = null
    this.cards = []
    this.current = null
    this.#cursor = ''
    this.#newest = 0
    this.selection.reset()
    this.#feed.replaceChildren()
    await this.more()
    this.selection.show()
  }

  get #isFiltered() {
    return Object.keys(this.#filters).length > 0
  }

  /** @param {Record<string, string>} filters @param {boolean} enter whether the first result takes the focus */
  #search(filters, enter) {
    const load = JSON.stringify(filters) === JSON.stringify(this.#filters) ? () => this.#loading : () => this.reload()
    this.#filters = filters
    return enter ? this.#focusLate(load) : load()
  }

  /** @param {() => Promise<unknown> | null} load @param {() => void} [focus] */
  #focusLate(load, focus = () => this.focusFirst()) {
    return focusLate(this.app, this.element, load, focus)
  }

  /** Loads the next page, if there is one. */
  more() {
    if (this.#cursor == null) return Promise.resolve()
    const turn = this.#turn
    if (!this.#loading) this.#goal = { cards: this.cards.length + FOUND, requests: REQUESTS }
    this.#loading ??= this.#fetch(this.#cursor).finally(() => {
      if (turn !== this.#turn) return
      this.#loading = null
      // Restarting the observer makes it report whether the end is still near.
      this.#nearEnd.unobserve(this.#end)
      if (this.#cursor != null && this.cards.length && !this.#isFiltered) this.#nearEnd.observe(this.#end)
    })
    return this.#loading
  }

  /** @param {string} cursor */
  async #fetch(cursor) {
    const turn = this.#turn
    const first = !this.cards.length
    this.#feed.setAttribute('aria-busy', 'true')
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, this.app.t('loading')))
    try {
      const undelivered = this.app.decisions.undelivered()
      const { data, next } = await this.load(cursor, undefined, this.#filters)
      if (turn !== this.#turn) return
      this.#cursor = next
      this.#newest = Math.max(this.#newest, ...data.map(({ id }) => id))
      const open = data.filter((item) => !this.app.decisions.isHandled(item, this.state))
      this.insert(this.keeps ? open.map((item) => this.app.decisions.asDecided(item, undelivered)) : open)
      this.#end.replaceChildren()
      if (!this.cards.length && next == null) this.#showEmpty()
    } catch (error) {
      if (turn !== this.#turn) return
      this.#cursor = null
      const retry = () => {
        this.#cursor = cursor
        this.#focusLate(() => this.more(), () => this.cards.length && first && this.focus(this.cards[0]))
      }
      this.#end.replaceChildren(this.app.problem(error, retry))
    }
    this.#feed.removeAttribute('aria-busy')
    this.selection.show()
    if (this.#cursor != null && this.#wantsMore()) await this.#fetch(this.#cursor)
    else if (this.#isFiltered && !this.#end.childElementCount) this.#showFoot()
  }

  #wantsMore() {
    return this.#isFiltered ? this.cards.length < this.#goal.cards && --this.#goal.requests > 0 : !this.cards.length
  }

  /** Shows a button below the results that continues the search. */
  #showFoot() {
    const { t } = this.app
    const known = this.cards.length
    const searchOn = () => this.#focusLate(() => this.more(), () => {
      if (this.cards[known]) this.focus(this.cards[known])
      else /** @type {HTMLElement | null} */ (this.#end.querySelector('button, .panel'))?.focus()
    })
    this.#end.replaceChildren(
      this.#cursor == null ? '' : h('button', { type: 'button', class: 'outlined', click: searchOn }, t('search_on')),
      this.state === 'all' ? h('p', { class: 'muted small' }, t('search_all')) : '')
  }

  #showEmpty() {
    this.#end.replaceChildren(emptyPanel(this.app, this.#isFiltered ? 'empty_search' : this.empty, this.#isFiltered && this.state === 'all' ? 'search_all' : ''))
  }

  refresh() {
    return this.#focusLate(() => this.reload())
  }

  /** Calls `resized` whenever the size of the element has changed. @param {Element} element @param {() => void} resized */
  measure(element, resized) {
    this.#measures.set(element, resized)
    this.#sizes.observe(element)
  }

  /** Checks for newer comments, and shows the button that loads them. An empty list loads them at once. */
  async look() {
    if (!this.state || this.#loading || this.#isFiltered) return
    const { data } = await this.load('', 1)
    const known = Math.max(0, ...this.cards.map(({ item }) => item.id), this.#newest)
    const open = data.filter((item) => !this.app.decisions.isHandled(item, this.state))
    if (!this.cards.length) return open.length ? this.#refill() : undefined
    if (!open.some(({ id }) => id > known)) return
    this.selection.offerNew()
  }

  /** Inserts comments in order, newest first. @param {Item[]} items @param {string} [note] */
  insert(items, note = '') {
    for (const item of items) {
      const known = this.find(item.id)
      known?.update(item, note)
      if (known) continue
      const card = new Card(this, item)
      if (note) card.update(item, note)
      const place = this.cards.findIndex((other) => other.item.id < item.id)
      const before = place < 0 ? null : this.cards[place]
      this.#feed.insertBefore(card.element, before?.element ?? null)
      this.cards.splice(before ? place : this.cards.length, 0, card)
    }
    if (items.length) this.#end.querySelector('.panel')?.remove()
    this.selection.show()
  }

  /**
   * Removes cards. The next remaining card, or else the previous one, becomes the current one.
   * @param {Card[]} cards
   * @param {boolean} [follow] whether that card also takes the focus
   */
  drop(cards, follow = true) {
    const at = this.current ? this.cards.indexOf(this.current) : 0
    const staying = (/** @type {Card} */ card) => !cards.includes(card)
    const next = this.cards.slice(at).find(staying) ?? this.cards.slice(0, at).findLast(staying) ?? null
    const focused = follow || cards.some(({ element }) => element.matches(':focus-within'))
    this.cards = this.cards.filter(staying)
    if (next) {
      if (focused) this.focus(next)
      else this.setCurrent(next)
    }
    cards.forEach(({ element }) => element.remove())
    if (next && focused) this.reveal(next)
    this.selection.show()
    if (next) return
    if (focused) this.#focusLate(() => this.#drained())
    else this.#drained()
  }

  /** Runs after the last card is gone. Loads the next page, or shows that the list is empty. */
  async #drained() {
    this.current = null
    if (this.#cursor == null && !this.#loading) this.#showEmpty()
    else await this.more()
    if (!this.cards.length && !this.#end.childElementCount) this.#showEmpty()
  }

  /** Reloads an empty list. The new content takes the focus if the notice had it. */
  #refill() {
    return this.#end.contains(this.app.root.activeElement) ? this.refresh() : this.reload()
  }

  focusFirst() {
    if (this.cards.length) this.focus(this.cards[0])
    else /** @type {HTMLElement | null} */ (this.#end.querySelector('.panel'))?.focus()
  }

  /** @param {1 | -1} step */
  async move(step) {
    const at = this.current ? this.cards.indexOf(this.current) : -1
    const go = () => {
      const card = this.cards[at + step] ?? this.current ?? this.cards[0]
      if (card) this.focus(card)
    }
    if (step > 0 && at === this.cards.length - 1) await this.#focusLate(() => this.more(), go)
    else go()
  }

  /** The cards that shortcuts act on: the selection, or else the current card. */
  get chosen() {
    const { cards } = this.selection
    return cards.length ? cards : this.cards.filter((card) => card === this.current)
  }

  /** @param {Verdict} verdict @param {Card[]} cards @param {string} [reply] to send afterwards */
  decide(verdict, cards, reply) {
    const choices = cards.map(({ item }) => ({ item, action: actionOf(item, verdict), list: this, reply }))
    const changing = choices.filter(({ item, action }) => applies(item, action))
    // Another moderator has made the same decision, so nothing is left to send.
    const settled = cards.filter(({ item, note }) => note && !applies(item, actionOf(item, verdict)))
    if (changing.length) this.app.decisions.decide(changing)
    else if (!settled.length) return this.app.tell(this.app.t('nothing_to_do'))
    if (!this.keeps) return this.drop([...settled, ...cards.filter(({ item }) => changing.some((choice) => choice.item === item))])
    if (!this.selection.clear()) this.move(1)
  }

  /** Shows comments again as they were before a decision. @param {Item[]} items @param {string} [note] @param {boolean} [focus] */
  restore(items, note, focus = false) {
    const emptied = this.#end.querySelector('.panel')?.matches(':focus')
    this.insert(items, note)
    const card = this.find(items[0].id)
    if (card && (focus || emptied)) this.focus(card)
  }

  close() {
    this.#sizes.disconnect()
    this.#nearEnd.disconnect()
  }
}
