/**
 * Reads other moderators' decisions from the log.
 * @import { Action, Item, LogEntry } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { decided } from './verdicts.js'

/** Returns the comment after a decision from the log, which contains no reasons. @param {Item} item @param {LogEntry} entry */
export const decidedAs = (item, { action, moderator, created_at }) =>
  decided(item, /** @type {Action} */ (action), { reason: null, note: null, moderator, created_at })

export class Others {
  /** Other moderators' decisions about comments that no list shows, or that have an undelivered decision. @type {Map<number, LogEntry>} */
  #heard = new Map()
  /**
   * The id of the newest log entry: null if the log was empty, undefined before the first check.
   * @type {LogEntry['id'] | null | undefined}
   */
  #newest
  #isHandled
  #isWaiting

  /**
   * @param {App} app
   * @param {(id: number) => boolean} isHandled whether a comment was decided here
   * @param {(id: number) => boolean} isWaiting whether that decision is undelivered
   */
  constructor(app, isHandled, isWaiting) {
    this.app = app
    this.#isHandled = isHandled
    this.#isWaiting = isWaiting
  }

  /** Reads the decisions since the last check from the log. */
  async watch() {
    const newest = async (/** @type {number} */ n) => /** @type {{ data: LogEntry[] }} */ (await this.app.client.get('moderation/log', { cursor: '', per_page: n })).data
    const last = this.#newest
    let data = await newest(10)
    if (last !== undefined && data.length === 10 && !data.some(({ id }) => id === last)) data = await newest(50)
    this.#newest = data[0]?.id ?? null
    if (last === undefined) return
    const known = data.findIndex(({ id }) => id === last)
    for (const entry of data.slice(0, known < 0 ? undefined : known).reverse()) this.#hear(entry)
  }

  /** @param {LogEntry} entry */
  #hear(entry) {
    const { comment_id: id, action } = entry
    if (id == null || !['approve', 'reject', 'dismiss'].includes(action)) return
    const own = entry.moderator.id === this.app.me?.id
    if (own && this.#isHandled(id)) return
    const cards = this.app.cards.filter(({ item }) => item.id === id)
    for (const card of cards) card.update(decidedAs(card.item, entry), own && this.app.bans.sweeps(card.item) ? '' : this.words(entry))
    if ((!cards.length || this.#isWaiting(id)) && !own) this.#heard.set(id, entry)
  }

  /** @param {LogEntry} entry */
  words({ moderator, action }) {
    return this.app.t(`${moderator.id === this.app.me?.id ? 'by_you' : 'by_other'}_${action}`, { name: moderator.name })
  }

  /** @param {number} id */
  take(id) {
    const entry = this.#heard.get(id)
    this.#heard.delete(id)
    return entry
  }

  /** Discards decisions about these comments, which a list now shows in their current state. @param {Item[]} items */
  show(items) {
    for (const { id } of items) if (!this.#isWaiting(id)) this.#heard.delete(id)
  }

  /** Discards others' decisions, so that the next check starts anew. */
  leave() {
    this.#newest = undefined
    this.#heard.clear()
  }
}
