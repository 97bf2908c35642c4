/**
 * The numbers of pending and reported comments on their tabs.
 * @import { State } from '../types.d.ts'
 * @import { App } from './app.js'
 */

/** The highest count that the service returns. It means this many or more. */
const MANY = 100

export class Tallies {
  /** @type {Partial<Record<State, number>>} */
  #counts = {}

  /** @param {App} app */
  constructor(app) {
    this.app = app
  }

  /** Shows the counts, less the comments whose decisions are unsent. @param {Partial<Record<State, number>>} [counts] */
  show(counts = this.#counts) {
    this.#counts = counts
    for (const [name, count] of Object.entries(counts)) {
      const n = count < MANY ? Math.max(0, count - this.app.decisions.waitingIn(/** @type {State} */ (name))) : count
      const tab = this.app.root.getElementById(`tab-${name}`)
      const tally = /** @type {HTMLElement | undefined} */ (tab?.querySelector('.tally'))
      if (!tab || !tally) continue
      tally.textContent = n < MANY ? `${n || ''}` : `${MANY}+`
      tab.title = n ? this.app.t(n < MANY ? 'count' : 'count_more', { n }) : ''
    }
  }
}
