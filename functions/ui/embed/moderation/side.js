/**
 * The drawer at the side: a user's comments, or one comment.
 * @import { ListPage, User } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { avatar } from '../kit/avatar.js'
import { h } from '../kit/dom.js'
import { commentNow } from './comments.js'
import { drawer } from './dialogs.js'
import { CardList } from './queue.js'

export class Side {
  /** The list that is shown. @type {CardList | null} */
  list = null

  /** @param {App} app */
  constructor(app) {
    this.app = app
  }

  /** @param {User} user */
  async showWriter(user) {
    const { t } = this.app
    const list = this.#sideList((cursor) => this.app.page(`users/${user.id}/comments`, { cursor }))
    const about = h('div', { class: 'about' })
    const title = user.name ? t('all_by', { name: user.name }) : t('user_number', { id: `${user.id}` })
    this.#showSide(title, about, list)
    await list.reload()
    const known = list.cards[0]?.item.user ?? user
    const heading = this.app.top?.querySelector('#drawer-title')
    if (heading && known.name) heading.textContent = t('all_by', { name: known.name })
    if (known.name) await this.#showStanding({ ...known, id: Number(user.id) }, about)
  }

  /** Shows whether a user is banned, with a button to ban or unban them. @param {User & { id: number }} user @param {HTMLElement} about */
  async #showStanding(user, about) {
    const { t } = this.app
    try {
      const { data } = await this.app.client.get('moderation/users', { q: [...user.name].slice(0, 50).join('') })
      for (const known of data) this.app.bans.learn(known)
    } catch {
      // Falls back to the data that is already loaded.
    }
    const again = () => this.#showStanding(user, about)
    const ban = this.app.bans.of(user)
    about.replaceChildren(avatar(user),
      h('div', { class: 'by' }, h('span', { class: 'muted' }, `#${user.id}`), ban && h('span', { class: 'ban' }, this.app.bans.textOf(ban))),
      ban
        ? h('button', { type: 'button', class: 'outlined', click: () => this.app.bans.lift(user).then(again) }, t('unban'))
        : this.app.isMe(user) ? '' : h('button', { type: 'button', class: 'outlined', click: () => this.app.bans.ask([user]).then(again) }, t('ban')))
  }

  /** @param {number} id */
  async showComment(id) {
    const list = this.#sideList(async () => ({ data: [await commentNow(this.app.client, id)], next: null }))
    this.#showSide(this.app.t('one'), null, list)
    await list.reload()
  }

  /** @param {(cursor: string) => Promise<ListPage>} load */
  #sideList(load) {
    return new CardList(this.app, { label: this.app.t('written'), empty: 'empty_written', load })
  }

  /** @param {string} title @param {HTMLElement | null} about @param {CardList} list */
  #showSide(title, about, list) {
    const outer = this.list
    this.list = list
    this.app.open(drawer(this.app, title, about, list), () => {
      list.close()
      this.list = outer
      this.app.replies.regain()
    })
  }
}
