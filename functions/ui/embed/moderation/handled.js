/**
 * Remembers decisions, because the service's lists may still include their comments for a while.
 * @import { Action, Item, State } from '../types.d.ts'
 */

/** Milliseconds during which the service's lists may still include a comment after its decision was stored. */
const LAG = 60_000

export class Handled {
  /** Latest decisions by the id of the comment. @type {Map<number, { action: Action, seen: string, at: number }>} */
  #last = new Map()

  /** @param {Item} item @param {Action} action */
  add(item, action) {
    this.#last.set(item.id, { action, seen: item.updated_at, at: Date.now() })
  }

  /** @param {number} id */
  has(id) {
    return this.#last.has(id)
  }

  /** @param {number} id */
  delete(id) {
    this.#last.delete(id)
  }

  clear() {
    this.#last.clear()
  }

  /** Restarts the `LAG` of a comment's decision. @param {number} id */
  touch(id) {
    const last = this.#last.get(id)
    if (last) last.at = Date.now()
  }

  /** Whether a queue omits a comment because a decision on it was just made. @param {Item} item @param {State} state */
  hides(item, state) {
    const last = this.#last.get(item.id)
    if (!last || last.seen !== item.updated_at || Date.now() - last.at > LAG) return false
    return state !== 'rejected' || last.action === 'approve'
  }
}
