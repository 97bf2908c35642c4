/**
 * Holds decisions until they can no longer be undone, and groups them into requests.
 * @import { Action, Batch, Choice, Decision, Grounds, Item } from '../types.d.ts'
 */

import { ApiError } from '../kit/api.js'
import { UNDO } from '../kit/decisions.js'

/** Milliseconds between deliveries. A request covers up to fifty identical decisions, so this pause keeps a fast moderator below 60 writes a minute. */
export const PAUSE = 4_000

/** Maximum comments in one request. */
const BULK = 50

/** Milliseconds to wait for the moderator to sign in: a timer's longest delay. The sign-in ends the wait. */
const UNTIL_SIGNED_IN = 2 ** 31 - 1

/** @param {unknown} error */
const statusOf = (error) => (error instanceof ApiError ? error.status : 0)

/** Whether a request would be refused again. @param {unknown} error */
export const isFinal = (error) => statusOf(error) >= 400 && statusOf(error) < 500 && ![401, 429].includes(statusOf(error))

/** Returns the milliseconds to wait before a failed request is sent again. @param {unknown} error */
export const pauseAfter = (error) => ({ 401: UNTIL_SIGNED_IN, 429: 15_000 })[statusOf(error)] ?? 5_000

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
   * @param {(due: Decision[]) => Promise<{ again: Decision[], after: number }>} deliver returns the decisions to send again,
   *   and the milliseconds to wait
   */
  constructor(deliver) {
    this.#deliver = deliver
  }

  /** All undelivered decisions. */
  get open() {
    return [...this.#sending, ...this.waiting]
  }

  /** @param {number} id */
  has(id) {
    return this.open.some(({ choices }) => choices.some(({ item }) => item.id === id))
  }

  /** Returns the newest undelivered decision about this version of a comment, or else the newest one in `before`. @param {Item} item @param {Decision[]} before */
  about({ id, updated_at }, before) {
    const made = [...before, ...this.open].flatMap(({ choices, grounds }) => choices.map(({ item, action }) => ({ item, action, grounds })))
    return made.findLast(({ item }) => item.id === id && item.updated_at === updated_at)
  }

  /** Whether these decisions are being sent, and `takeAll` hasn't removed them. @param {Decision[]} due */
  isSending(due) {
    return this.#sending === due
  }

  /** @param {Choice[]} choices @param {Decision['toggle']} [toggle] @returns {Decision} */
  add(choices, toggle) {
    const decision = { choices, toggle, at: Date.now(), grounds: { reason: null, note: null } }
    this.waiting.push(decision)
    this.#schedule()
    return decision
  }

  /** Removes and returns the newest unsent decision. */
  undo() {
    const decision = this.waiting.pop()
    this.#schedule()
    return decision
  }

  /** Holds the newest decision until `ask` is done, then restarts its undo period. @param {Decision} decision @param {() => Promise<void>} ask */
  async hold(decision, ask) {
    decision.at = Infinity
    this.#schedule()
    await ask()
    decision.at = Date.now()
    this.#schedule()
  }

  takeAll() {
    const all = this.open
    this.#sending = []
    this.waiting = []
    return all
  }

  /** Puts decisions back, and waits before sending them. @param {Decision[]} decisions */
  put(decisions) {
    this.waiting.unshift(...decisions)
    this.#notBefore = Date.now() + PAUSE
    this.#schedule()
  }

  /** Ends a pause after a failure. */
  hurry() {
    this.#notBefore = 0
    this.#schedule()
  }

  #schedule() {
    clearTimeout(this.#timer)
    const [first] = this.waiting
    if (this.#delivering || !first || first.at === Infinity) return
    const due = Math.max(first.at + UNDO, this.#notBefore)
    this.#timer = setTimeout(() => this.#run(), due - Date.now())
  }

  async #run() {
    const now = Date.now()
    const due = this.waiting.filter(({ at }) => at + UNDO <= now)
    this.waiting = this.waiting.filter((decision) => !due.includes(decision))
    this.#delivering = true
    this.#sending = due
    const { again, after } = await this.#deliver(due)
    if (this.isSending(due)) this.waiting.unshift(...again)
    this.#sending = []
    this.#delivering = false
    this.#notBefore = Date.now() + after
    this.#schedule()
  }
}

/**
 * Keeps only the last decision about each comment and thread. If that decision fails, its comment returns as it was
 * before the first decision.
 * @param {Decision[]} decisions
 */
export function latest(decisions) {
  /** @type {Map<number, Choice>} */
  const choices = new Map()
  const threads = new Set()
  const isLast = (/** @type {Choice} */ choice) => {
    const last = choices.get(choice.item.id)
    if (last) last.item = choice.item
    else choices.set(choice.item.id, choice)
    return !last
  }
  return decisions.toReversed().flatMap((decision) => {
    const { type, id } = decision.toggle?.thread ?? {}
    const name = JSON.stringify([type, id])
    if (id != null && threads.has(name)) return []
    threads.add(name)
    return [{ ...decision, choices: decision.choices.filter(isLast) }]
  }).reverse()
}

/** Groups decisions into requests by action, reason and note, with at most `BULK` comments each. @param {Decision[]} decisions @returns {Batch[]} */
export function batches(decisions) {
  /** @type {Map<string, Batch>} */
  const groups = new Map()
  for (const { choices, grounds } of decisions) {
    for (const choice of choices) {
      const { action } = choice
      const name = JSON.stringify([action, grounds.reason, grounds.note])
      const group = groups.get(name) ?? { action, grounds, choices: [] }
      group.choices.push(choice)
      groups.set(name, group)
    }
  }
  return [...groups.values()].flatMap((group) => pieces(group))
}

/** @param {Batch} batch */
function pieces({ choices, ...alike }) {
  const count = Math.ceil(choices.length / BULK)
  return Array.from({ length: count }, (_, at) => ({ ...alike, choices: choices.slice(at * BULK, (at + 1) * BULK) }))
}

/** @param {Batch} batch */
export const bulkBody = ({ action, choices, grounds }) => ({
  ids: choices.map(({ item }) => item.id),
  action,
  ...(action === 'reject' && grounds),
  seen: Object.fromEntries(choices.map(({ item }) => [item.id, item.updated_at])),
})
