/**
 * Bans users and guests' networks, lifts their bans, and remembers who is banned.
 * @import { Author, Ban, Item, Rejects } from '../types.d.ts'
 * @import { Card } from './card.js'
 * @import { App } from './app.js'
 * @import { CardList } from './queue.js'
 */

import { inFull } from '../kit/dates.js'
import { json } from '../kit/json.js'
import { banDialog } from './ban_dialog.js'
import { applies, standing } from './verdicts.js'

/** A ban can reject all of the writer's comments from this many milliseconds before it, and all pending ones. */
const LATELY = 7 * 86_400_000

/** Maximum milliseconds that the service takes to reject the comments. */
const SWEEP = 120_000

/** Returns the key of a writer, or null for guests without a known network. @param {Author} author */
const keyOf = ({ id, network }) => id ?? network ?? null

/** @param {Item} item @returns {Author} */
export const authorOf = ({ id, user, network }) => ({ ...user, network, comment_id: id })

/** @param {Author} author */
const banPath = ({ id, comment_id }) => (id == null ? `comments/${comment_id}/ban` : `users/${id}/ban`)

export class Bans {
  /** Bans by the key of their author. @type {Map<unknown, Ban>} */
  #known = new Map()
  /** The times of bans that reject recent comments, by the key of the author. @type {Map<unknown, number>} */
  #sweeps = new Map()
  /** The moderator's last choice of comments to reject. @type {Rejects} */
  #rejects = 'these'

  /** @param {App} app */
  constructor(app) {
    this.app = app
  }

  /** @param {Author} author */
  of(author) {
    return this.#known.get(keyOf(author))
  }

  /** Remembers whether an author is banned. @param {Author & Ban} author */
  learn(author) {
    if (author.banned) this.#known.set(keyOf(author), author)
    else this.#known.delete(keyOf(author))
  }

  /** Whether this author can be banned. Moderators can't ban themselves, or guests without a known network. @param {Author} author */
  isBannable(author) {
    return keyOf(author) != null && !this.app.isMe(author)
  }

  /** Whether the service is rejecting the comment because its writer was banned. @param {Item} item */
  sweeps(item) {
    const at = this.#sweeps.get(keyOf(authorOf(item)))
    const isLate = standing(item) === 'waiting' || Date.parse(item.created_at) > (at ?? 0) - LATELY
    return at != null && Date.now() - at < SWEEP && isLate
  }

  /** Asks for the length of a ban, and bans the writers of the chosen comments. @param {CardList} list @param {Card[]} cards */
  async banWriters(list, cards) {
    const { t } = this.app
    const theirs = cards.filter(({ item }) => this.isBannable(authorOf(item)))
    const authors = new Map(theirs.map(({ item }) => [keyOf(authorOf(item)), authorOf(item)]))
    if (!authors.size) return cards.length && this.app.tell(t(cards.some(({ item }) => this.app.isMe(item.user)) ? 'no_ban' : 'guests_no_ban'))
    const rejectable = theirs.filter(({ item }) => applies(item, 'reject'))
    const rejects = await this.ask([...authors.values()], rejectable.length)
    if (rejects === 'these') list.decide('reject', rejectable)
    else if (!list.selection.clear()) list.refocus()
  }

  /**
   * Asks for the length of a ban, and bans the authors.
   * @param {Author[]} authors
   * @param {number} [comments] the number of their comments that may be rejected with the ban
   * @returns {Promise<Rejects | null>} null if not all were banned
   */
  async ask(authors, comments = 0) {
    let rejects = comments ? this.#rejects : 'none'
    const left = [...authors]
    const dialog = banDialog(this.app, authors, { comments, rejects }, async (ban) => {
      rejects = ban.rejects
      for (const author of [...left]) {
        await this.#ban(author, ban)
        left.shift()
      }
    })
    await this.app.open(dialog)
    const banned = authors.slice(0, authors.length - left.length)
    if (!banned.length) return null
    if (comments) this.#rejects = rejects
    this.#tell(banned)
    if (rejects === 'recent') this.#sweep(banned)
    return left.length ? null : rejects
  }

  /** @param {Author} author @param {{ until: string | null, reason: string | null, rejects: Rejects }} ban */
  async #ban(author, { until, reason, rejects }) {
    const body = { until, reason, reject_recent: rejects === 'recent' }
    const { data } = await this.app.client.request('PUT', banPath(author), json(body))
    this.learn({ ...author, banned: true, banned_until: data.banned_until, reason: data.reason })
    this.#renderCardsOf(author)
  }

  /** @param {Author[]} banned */
  #tell(banned) {
    const [first] = banned
    const text = banned.length > 1 ? 'many_banned' : first.id == null ? 'now_blocked' : 'now_banned'
    this.app.tell(this.app.t(text, { name: this.nameOf(first), n: banned.length }))
  }

  /** @param {Author[]} banned */
  #sweep(banned) {
    for (const author of banned) this.#sweeps.set(keyOf(author), Date.now())
    const items = this.app.cards.map(({ item }) => item)
    this.app.decisions.showRejected(items.filter((item) => this.sweeps(item)))
  }

  /** @param {Author} author */
  async lift(author) {
    const path = author.id == null ? `moderation/networks/${author.network}/ban` : banPath(author)
    try {
      await this.app.client.request('DELETE', path)
      this.#known.delete(keyOf(author))
      this.#sweeps.delete(keyOf(author))
      this.app.tell(this.app.t(author.id == null ? 'now_unblocked' : 'now_unbanned', { name: this.nameOf(author) }))
      this.#renderCardsOf(author)
    } catch (error) {
      this.app.fail(error)
    }
  }

  /** @param {Author} author */
  #renderCardsOf(author) {
    for (const card of this.app.cards) if (keyOf(authorOf(card.item)) === keyOf(author)) card.update(card.item, card.note)
  }

  /** @param {Author} author */
  nameOf({ name }) {
    return name || (this.app.labels.guest ?? '')
  }

  /** @param {Ban} ban */
  textOf({ banned_until: until, reason }) {
    const length = until ? this.app.t('banned_until', { time: inFull(until, this.app.language) }) : this.app.t('banned_forever')
    return [length, reason].filter(Boolean).join(' · ')
  }
}
