/**
 * @import { Card } from './card.js'
 */

/** A column of cards. The current card has the focus while the keyboard is used. */
export class Cards {
  /** In page order. @type {Card[]} */
  cards = []
  /** @type {Card | null} */
  current = null

  /** @param {number} id */
  find(id) {
    return this.cards.find(({ item }) => item.id === id)
  }

  /** @param {Card} card */
  setCurrent(card) {
    if (this.current === card) return
    this.current?.element.classList.remove('current')
    this.current?.element.removeAttribute('aria-current')
    this.current?.element.setAttribute('tabindex', '-1')
    this.current = card
    card.element.classList.add('current')
    card.element.setAttribute('aria-current', 'true')
    card.element.setAttribute('tabindex', '0')
  }

  /** @param {Card} card */
  focus(card) {
    this.setCurrent(card)
    card.element.focus({ preventScroll: true })
    this.reveal(card)
  }

  refocus() {
    if (this.current) this.focus(this.current)
  }

  /** Scrolls the card into view: a tall card to its start, any other no further than needed. @param {Card} card */
  reveal({ element }) {
    element.scrollIntoView({ block: element.offsetHeight > innerHeight * 0.7 ? 'start' : 'nearest' })
  }
}
