/**
 * Holds decisions until they can no longer be undone, and makes requests of them.
 * @import { Action, Batch, Choice, Decision } from '../types.d.ts'
 */

/** Milliseconds that a decision waits for an undo. */
export const UNDO = 5_000

/** Milliseconds between deliveries, each of at most one request for each action. Keeps quick work below 60 writes a minute. */
export const PAUSE = 4_000

/** Comments in one request. */
const BULK = 50

/** Holds decisions until they can no longer be undone, then delivers those that are due together. */
export class Outbox {
  /** Oldest first. @type {Decision[]} */
  waiting = []
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  #delivering = false
  /** Decisions that are being sent. @type {Decision[]} */
  #sending = []
  #notBefore = 0
  #deliver

  /**
   * @param {(due: Decision[]) => Promise<{ again: Decision[], after: number }>} deliver answers what has to be sent again,
   *   and after how many milliseconds
   */
  constructor(deliver) {
    this.#deliver = deliver
  }

  /** @param {Choice[]} choices */
  add(choices) {
    this.waiting.push({ choices, at: Date.now() })
    this.#schedule()
  }

  /** Takes back the newest decision that has not been sent. */
  undo() {
    const decision = this.waiting.pop()
    this.#schedule()
    return decision
  }

  /** Takes all that waits, to be sent elsewhere or forgotten. */
  takeAll() {
    const all = [...this.#sending, ...this.waiting]
    this.#sending = []
    this.waiting = []
    return all
  }

  /** Forgets a pause that a failure has set. */
  hurry() {
    this.#notBefore = 0
    this.#schedule()
  }

  #schedule() {
    clearTimeout(this.#timer)
    if (this.#delivering || !this.waiting.length) return
    const due = Math.max(this.waiting[0].at + UNDO, this.#notBefore)
    this.#timer = setTimeout(() => this.#run(), due - Date.now())
  }

  async #run() {
    const now = Date.now()
    const due = this.waiting.filter(({ at }) => at + UNDO <= now)
    this.waiting = this.waiting.filter((decision) => !due.includes(decision))
    this.#delivering = true
    this.#sending = due
    const { again, after } = await this.#deliver(due)
    // Unless they were taken meanwhile.
    if (this.#sending === due) this.waiting.unshift(...again)
    this.#sending = []
    this.#delivering = false
    this.#notBefore = Date.now() + after
    this.#schedule()
  }
}

/** The decisions as requests: the comments of each action, at most `BULK` at a time. @param {Decision[]} decisions */
export function batches(decisions) {
  const all = decisions.flatMap(({ choices }) => choices)
  /** @type {Batch[]} */
  const batches = []
  for (const action of /** @type {const} */ (['approve', 'reject', 'dismiss'])) {
    const choices = all.filter((choice) => choice.action === action)
    for (let start = 0; start < choices.length; start += BULK) batches.push({ action, choices: choices.slice(start, start + BULK) })
  }
  return batches
}

/** The body of the request. @param {Batch} batch */
export const bulkBody = ({ action, choices }) => ({
  ids: choices.map(({ item }) => item.id),
  action,
  seen: Object.fromEntries(choices.map(({ item }) => [item.id, item.updated_at])),
})
