/**
 * Shows decisions at once, sends them when they can no longer be undone, and restores comments if a decision fails.
 * @import { Action, Batch, Choice, Decision, Grounds, Item, RecordThread, State } from '../types.d.ts'
 * @import { Client } from '../kit/api.js'
 * @import { App } from './app.js'
 * @import { CardList } from './queue.js'
 */

import { UNDO } from '../kit/decisions.js'
import { commentNow } from './comments.js'
import { replyAll, replyOnce, sendBatch, sendNow } from './flush.js'
import { Handled } from './handled.js'
import { Others, decidedAs } from './others.js'
import { Outbox, PAUSE, batches, isFinal, latest, pauseAfter } from './outbox.js'
import { askNote, reasonSwitches } from './reasons.js'
import { setClosed, showClosed, titleOf } from './threads.js'
import { applies, belongs, decided, rejectionBy } from './verdicts.js'

export class Decisions {
  #outbox = new Outbox((due) => this.#deliver(due))
  #handled = new Handled()

  /** @param {App} app */
  constructor(app) {
    this.app = app
    this.others = new Others(app, (id) => this.#handled.has(id), (id) => this.#outbox.has(id))
  }

  /** @param {Choice[]} choices of one list */
  decide(choices) {
    for (const { item, action } of choices) {
      this.#handled.add(item, action)
      this.others.take(item.id)
    }
    const decision = this.#outbox.add(choices)
    this.#show(choices, decision.grounds, choices[0].list)
    this.#tell(decision)
    this.app.tallies.show()
  }

  /** Closes a thread, or reopens a closed one. @param {RecordThread} thread */
  toggle(thread) {
    const closed = !thread.closed
    showClosed(this.app, thread, closed)
    this.#tell(this.#outbox.add([], { thread, closed }))
  }

  /** Returns the number of comments that undelivered decisions will remove from a queue. @param {State} state */
  waitingIn(state) {
    return this.#outbox.open.flatMap(({ choices }) => choices).filter(({ item }) => belongs(item, state)).length
  }

  /** Marks comments that the service rejects after a ban, and takes them out of queues. @param {Item[]} items */
  showRejected(items) {
    const open = items.filter((item) => applies(item, 'reject'))
    this.#show(open.map((item) => ({ item, action: 'reject' })), { reason: null, note: null })
    for (const list of this.app.lists) {
      const { state } = list
      const gone = list.cards.filter(({ item }) => state && items.includes(item) && !belongs(item, state))
      if (gone.length) list.drop(gone, false)
    }
  }

  /**
   * Updates the decided comments in lists that keep them, and removes them from all others except `made`, the list of the decision.
   * @param {{ item: Item, action: Action }[]} choices @param {Grounds} grounds @param {CardList} [made]
   */
  #show(choices, grounds, made) {
    const rejection = rejectionBy(this.app.me, grounds)
    for (const list of this.app.lists) {
      const cards = choices.flatMap(({ item }) => list.find(item.id) ?? [])
      if (!list.keeps && list !== made && cards.length) list.drop(cards, false)
      if (list.keeps) for (const { item, action } of choices) list.find(item.id)?.update(decided(item, action, rejection))
    }
  }

  /** Shows a decision, and offers to undo it or to give a reason. @param {Decision} decision */
  #tell(decision) {
    const { choices, grounds, toggle } = decision
    const { app } = this
    const undo = { label: app.t('undo'), key: 'u', act: () => this.undo(), for: UNDO }
    if (toggle) return app.notices.tell(app.t(toggle.closed ? 'now_closed' : 'now_open', { thread: titleOf(toggle.thread) }), undo)
    const [{ item, action, reply }] = choices
    const same = choices.every((choice) => choice.action === action)
    const text = choices.length > 1 ? `many_${same ? action : 'approve'}` : reply ? 'done_approve_reply' : `done_${action}`
    const changed = () => this.#show(choices, grounds, choices[0].list)
    const ask = () => this.#outbox.hold(decision, async () => {
      app.notices.hide()
      await askNote(app, grounds)
      changed()
      this.#tell(decision)
    })
    const why = action === 'reject' ? { label: app.t('why'), switches: reasonSwitches(app, grounds, { changed, askNote: ask }) } : undefined
    app.notices.tell(app.t(text, { name: app.nameOf(item), n: choices.length }), undo, why)
  }

  undo() {
    const decision = this.#outbox.undo()
    if (!decision) return this.app.tell(this.app.t('nothing_to_undo'))
    const { choices, toggle } = decision
    if (toggle) showClosed(this.app, toggle.thread, !toggle.closed)
    else this.#bringBack(choices)
    this.app.tallies.show()
    this.app.tell(this.app.t('undone'))
  }

  /**
   * Returns decided comments to their lists. The first comment gets the focus, unless there is a note.
   * @param {Choice[]} choices
   * @param {string} [note]
   */
  #bringBack(choices, note = '') {
    for (const { item, reply } of choices) {
      this.#handled.delete(item.id)
      if (reply) this.app.replies.reopen(item.id, reply)
    }
    for (const list of this.app.lists) {
      const { state } = list
      const made = (/** @type {Choice} */ choice) => choice.list === list || (state && choice.list.state === state)
      const shown = choices.filter((choice) => made(choice) || (state ? belongs(choice.item, state) : list.find(choice.item.id)))
      if (shown.length) list.restore(shown.map(({ item }) => item), note, !note && shown.some(made))
    }
  }

  /** Whether a list omits a comment after a decision or a ban. @param {Item} item @param {State} [state] */
  isHandled(item, state) {
    if (!state || state === 'all') return false
    if (state !== 'rejected' && this.app.bans.sweeps(item)) return true
    return this.#handled.hides(item, state)
  }

  undelivered = () => this.#outbox.open

  /** Applies a decision to a comment from a response, which may be older than the decision. @param {Item} item @param {Decision[]} before undelivered at the time of the request */
  asDecided(item, before) {
    const last = this.#handled.has(item.id) && this.#outbox.about(item, before)
    return last ? decided(item, last.action, rejectionBy(this.app.me, last.grounds)) : item
  }

  /**
   * Sends decisions as the moderator who made them. Stops once `flush` or `drop` has removed them.
   * @param {Decision[]} due @returns {Promise<{ again: Decision[], after: number }>}
   */
  async #deliver(due) {
    // The host page may sign in another moderator before the responses arrive, so the client is kept.
    const { client, replies } = this.app
    const isTaken = () => !this.#outbox.isSending(due)
    await this.others.watch().catch(() => {})
    /** @type {Decision[]} */
    const again = []
    let after = PAUSE
    const last = latest(due)
    for (const decision of last) {
      if (!decision.toggle) continue
      if (isTaken()) break
      const { thread, closed } = decision.toggle
      try {
        await setClosed(client, thread, closed)
        if (!isTaken()) showClosed(this.app, thread, closed)
      } catch (error) {
        if (isTaken()) break
        if (isFinal(error)) {
          showClosed(this.app, thread, !closed)
          this.app.tell(this.app.t('failed', { why: this.app.explain(error) }))
        } else {
          after = this.#failed(error)
          again.push(decision)
        }
      }
    }
    const open = isTaken() ? [] : last.map((decision) => ({ ...decision, choices: decision.choices.filter((choice) => !this.#clashes(choice)) }))
    for (const batch of batches(open)) {
      if (isTaken()) break
      let left = batch.choices
      try {
        const failed = await sendBatch(client, batch)
        if (isTaken()) {
          replyAll(batch, failed, client, replies).catch(() => {})
          break
        }
        left = await this.#settle(batch, failed, client)
      } catch (error) {
        if (isTaken()) break
        if (isFinal(error)) {
          this.#refused(batch, error)
          continue
        }
        after = this.#failed(error)
      }
      for (const { item } of batch.choices) this.#handled.touch(item.id)
      if (left.length) again.push({ choices: left, at: due[0].at, grounds: batch.grounds })
    }
    if (!isTaken()) this.#tellWaiting(again)
    this.app.recount().catch(() => {})
    return { again, after }
  }

  /**
   * Handles the result of a request.
   * @param {Batch} batch @param {{ id: number, code: string }[]} failed @param {Client} client
   * @returns {Promise<Choice[]>} the choices to send again
   */
  async #settle({ choices }, failed, client) {
    const codes = new Map(failed.map(({ id, code }) => [id, code]))
    for (const choice of choices) {
      const code = codes.get(choice.item.id)
      if (code === 'not_found') this.app.tell(this.app.t('deleted', { name: this.app.nameOf(choice.item) }))
      else if (code === 'comment_changed') this.#bringBackChanged(choice)
      else if (!code && choice.reply) await this.#reply(choice, client)
    }
    return choices.filter(({ item }) => codes.get(item.id) === 'unavailable')
  }

  /** Sends the reply that waited for its comment's approval. If that fails, shows the comment again with its reply box. @param {Choice} choice @param {Client} client */
  async #reply(choice, client) {
    const { reply } = choice
    try {
      await replyOnce(choice, client, this.app.replies)
    } catch (error) {
      if (client !== this.app.client) return
      const text = this.app.t('not_replied', { why: this.app.explain(error) })
      const item = await commentNow(client, choice.item.id).catch(() => choice.item)
      this.#bringBack([{ ...choice, item, reply }], text)
      this.app.tell(text)
    }
  }

  /** @param {Choice} choice */
  async #bringBackChanged(choice) {
    const name = this.app.nameOf(choice.item)
    try {
      this.#bringBack([{ ...choice, item: await commentNow(this.app.client, choice.item.id) }], this.app.t('changed'))
      this.app.tell(this.app.t('returned', { name }))
    } catch {
      this.app.tell(this.app.t('deleted', { name }))
    }
  }

  /** Handles an error that a retry can't fix. @param {Batch} batch @param {unknown} error */
  #refused({ choices }, error) {
    const text = this.app.t('failed', { why: this.app.explain(error) })
    this.#bringBack(choices, text)
    this.app.tell(text)
  }

  /** Handles an error after which the request will be sent again. @param {unknown} error @returns {number} after this many milliseconds */
  #failed(error) {
    if (/** @type {any} */ (error).status === 401) this.app.entry.askAgain()
    return pauseAfter(error)
  }

  /** @param {Decision[]} again */
  #tellWaiting(again) {
    const n = again.reduce((sum, { choices, toggle }) => sum + (toggle ? 1 : choices.length), 0)
    if (n && !this.app.entry.isAsking) this.app.tell(this.app.t('not_sent', { n }), { label: this.app.t('retry'), act: () => this.#outbox.hurry() })
    else if (!n && this.app.notices.stays) this.app.notices.hide()
  }

  /** Sends all waiting decisions immediately, even while the page is being closed. @returns those that couldn't be sent */
  flush() {
    const { client, replies } = this.app
    this.app.notices.hide()
    return sendNow(this.#take(), client, replies)
  }

  /** Puts back decisions that couldn't be sent. @param {Decision[]} unsent */
  resume(unsent) {
    this.#outbox.put(unsent)
    for (const { item, action } of unsent.flatMap(({ choices }) => choices)) this.#handled.add(item, action)
    this.#tellWaiting(unsent)
  }

  /** Whether another moderator has decided on the comment meanwhile. If that decision differs, the comment returns to its list. @param {Choice} choice */
  #clashes(choice) {
    const entry = this.others.take(choice.item.id)
    if (!entry) return false
    if (entry.action !== choice.action) {
      this.#bringBack([{ ...choice, item: decidedAs(choice.item, entry) }], this.others.words(entry))
      this.app.tell(this.others.words(entry))
    } else if (choice.reply) this.#reply(choice, this.app.client)
    return true
  }

  /** Discards waiting decisions. */
  drop() {
    this.#take()
  }

  /** Removes and returns the waiting decisions. Lists no longer omit their comments. */
  #take() {
    this.#handled.clear()
    return latest(this.#outbox.takeAll())
  }

  /** Sends decisions that wait for a sign-in. */
  hurry() {
    this.#outbox.hurry()
  }
}
