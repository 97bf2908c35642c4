/**
 * Bans and lifts bans, and remembers who is banned.
 * @import { Ban, KnownUser, User } from '../types.d.ts'
 * @import { Desk } from './desk.js'
 */

import { inFull } from '../kit/dates.js'
import { json } from '../kit/json.js'
import { banDialog } from './ban_dialog.js'

export class Bans {
  /** By the id of the user. @type {Map<number, Ban>} */
  #known = new Map()

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
  }

  /** @param {number} id of a user */
  of(id) {
    return this.#known.get(id)
  }

  /** Keeps what a list of users says. @param {KnownUser} user */
  learn(user) {
    if (user.banned) this.#known.set(user.id, user)
    else this.#known.delete(user.id)
  }

  /** @param {User & { id: number }} user @param {boolean} rejectable */
  async ask(user, rejectable) {
    let reject = false
    const dialog = banDialog(this.desk, user, rejectable, async (ban, alsoReject) => {
      const { data } = await this.desk.client.request('PUT', `users/${user.id}/ban`, json(ban))
      this.learn({ ...user, banned: true, banned_until: data.banned_until, reason: data.reason })
      reject = alsoReject
    })
    const banned = (await this.desk.open(dialog)) === 'banned'
    if (banned) {
      this.desk.tell(this.desk.t('now_banned', { name: user.name }))
      this.#renderCardsOf(user.id)
    }
    return { banned, reject }
  }

  /** @param {User & { id: number }} user */
  async lift(user) {
    try {
      await this.desk.client.request('DELETE', `users/${user.id}/ban`)
      this.#known.delete(user.id)
      this.desk.tell(this.desk.t('now_unbanned', { name: user.name }))
      this.#renderCardsOf(user.id)
    } catch (error) {
      this.desk.fail(error)
    }
  }

  /** @param {number} id of a user */
  #renderCardsOf(id) {
    for (const list of this.desk.lists) {
      for (const card of list.cards) if (card.item.user.id === id) card.update(card.item, card.note)
    }
  }

  /** @param {Ban} ban */
  textOf({ banned_until: until, reason }) {
    const length = until ? this.desk.t('banned_until', { time: inFull(until, this.desk.language) }) : this.desk.t('banned_forever')
    return [length, reason].filter(Boolean).join(' · ')
  }
}
