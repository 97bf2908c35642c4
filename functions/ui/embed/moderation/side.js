/**
 * The drawer at the side: what a user wrote, or one comment.
 * @import { ListPage, User } from '../types.d.ts'
 * @import { Desk } from './desk.js'
 */

import { avatar } from '../kit/avatar.js'
import { h } from '../kit/dom.js'
import { commentNow } from './comments.js'
import { drawer } from './dialogs.js'
import { CardList } from './queue.js'

export class Side {
  /** The list that is shown. @type {CardList | null} */
  list = null

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
  }

  /** All that a user wrote, at the side. @param {User} user */
  async showWriter(user) {
    const { t } = this.desk
    const list = this.#sideList((cursor) => this.desk.page(`users/${user.id}/comments`, { cursor }))
    const about = h('div', { class: 'about' })
    const title = user.name ? t('all_by', { name: user.name }) : t('user_number', { id: `${user.id}` })
    this.#showSide(title, about, list)
    await list.reload()
    const known = list.cards[0]?.item.user ?? user
    const heading = this.desk.top?.querySelector('#drawer-title')
    if (heading && known.name) heading.textContent = t('all_by', { name: known.name })
    if (known.name) await this.#showStanding({ ...known, id: Number(user.id) }, about)
  }

  /** Whether a user is banned, with the button for it. @param {User & { id: number }} user @param {HTMLElement} about */
  async #showStanding(user, about) {
    const { t } = this.desk
    try {
      const { data } = await this.desk.client.get('moderation/users', { q: [...user.name].slice(0, 50).join('') })
      for (const known of data) this.desk.bans.learn(known)
    } catch {
      // What is known already is shown.
    }
    const again = () => this.#showStanding(user, about)
    const ban = this.desk.bans.of(user)
    about.replaceChildren(avatar(user),
      h('div', { class: 'by' }, h('span', { class: 'muted' }, `#${user.id}`), ban && h('span', { class: 'ban' }, this.desk.bans.textOf(ban))),
      ban
        ? h('button', { type: 'button', class: 'outlined', click: () => this.desk.bans.lift(user).then(again) }, t('unban'))
        : this.desk.isMe(user) ? '' : h('button', { type: 'button', class: 'outlined', click: () => this.desk.bans.ask([user]).then(again) }, t('ban')))
  }

  /** One comment, at the side. @param {number} id */
  async showComment(id) {
    const list = this.#sideList(async () => ({ data: [await commentNow(this.desk.client, id)], next: null }))
    this.#showSide(this.desk.t('one'), null, list)
    await list.reload()
  }

  /** @param {(cursor: string) => Promise<ListPage>} load */
  #sideList(load) {
    return new CardList(this.desk, { label: this.desk.t('written'), empty: 'empty_written', load })
  }

  /** @param {string} title @param {HTMLElement | null} about @param {CardList} list */
  #showSide(title, about, list) {
    const outer = this.list
    this.list = list
    this.desk.open(drawer(this.desk, title, about, list), () => {
      list.close()
      this.list = outer
    })
  }
}
