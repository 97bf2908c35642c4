/**
 * Finds users by name, and lists recent writers and banned users and networks.
 * @import { Author, Ban } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { avatar } from '../kit/avatar.js'
import { h } from '../kit/dom.js'
import { below } from './below.js'


export class UsersPanel {
  #query = h('input', { type: 'search', maxlength: '50', autocomplete: 'off', input: () => this.#later() })
  /** Members who commented recently, shown until the moderator types. */
  #recent = h('div', { class: 'recent' })
  #heading = h('h2')
  #rows = h('ul', { class: 'rows' })
  #end = h('div', { class: 'after' })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** Cancels the previous request. */
  #request = new AbortController()

  /** @param {App} app */
  constructor(app) {
    this.app = app
    const { t } = app
    this.element = h('div', { class: 'users' },
      h('label', { class: 'search' }, h('span', { class: 'visually-hidden' }, t('search_users')), this.#query),
      this.#recent, this.#heading, this.#rows, this.#end)
    this.#query.placeholder = t('search_users')
  }

  focusFirst() {
    this.#query.focus()
  }

  #later() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.reload(), 200)
  }

  reload() {
    this.#rows.replaceChildren()
    return this.#load('')
  }

  /** @param {string} cursor */
  async #load(cursor) {
    const { app } = this
    const { t } = app
    const q = this.#query.value.trim()
    this.#request.abort()
    this.#request = new AbortController()
    const { signal } = this.#request
    this.#heading.textContent = t(q ? 'found' : 'banned_now')
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    if (!cursor) this.#recent.replaceChildren()
    try {
      const { data, meta } = await app.client.get('moderation/users', q ? { q } : { banned: 'true', cursor }, signal)
      for (const user of data) app.bans.learn(user)
      if (!q && !cursor) await this.#showRecent(signal)
      this.#rows.append(...data.map((/** @type {Author & Ban} */ author) => this.#row(author)))
      const load = (/** @type {string} */ next) => this.#load(next)
      this.#end.replaceChildren(below(app, this.#rows, meta?.next_cursor, load, q ? 'empty_users' : 'empty_banned'))
    } catch (error) {
      if (!signal.aborted) this.#end.replaceChildren(app.problem(error, () => this.#load(cursor)))
    }
  }

  /** Shows recent members, except banned ones, who are listed below. @param {AbortSignal} signal */
  async #showRecent(signal) {
    const { client, t } = this.app
    const { data } = await client.get('moderation/comments', { state: 'all', cursor: '', per_page: 50 }, signal)
    const members = new Map(data.flatMap(({ user }) => (user.id == null || this.app.bans.of(user) ? [] : [[user.id, user]])))
    if (members.size) this.#recent.replaceChildren(h('h2', {}, t('recent_writers')), h('ul', { class: 'rows' }, ...[...members.values()].map((user) => this.#row(user))))
  }

  /** @param {Author} author @returns {HTMLElement} */
  #row(author) {
    const { app } = this
    const { t } = app
    const { id, comment_id = 0 } = author
    const ban = app.bans.of(author)
    const show = () => (id == null ? app.side.showComment(comment_id) : app.side.showWriter(author))
    const row = h('li', { class: 'row user' }, avatar(author),
      h('div', { class: 'by' },
        h('span', { class: 'name' }, h('strong', { dir: 'auto' }, app.bans.nameOf(author)), h('span', { class: 'muted' }, id == null ? t('network') : `#${id}`)),
        ban && h('span', { class: 'ban' }, app.bans.textOf(ban))),
      h('div', { class: 'actions' },
        h('button', { type: 'button', class: 'quiet', click: show }, t(id == null ? 'show' : 'written')),
        ban
          ? h('button', { type: 'button', class: 'quiet', click: () => app.bans.lift(author).then(again) }, t('unban'))
          : app.bans.isBannable(author) && h('button', { type: 'button', class: 'quiet', click: () => app.bans.ask([author]).then(again) }, t(id == null ? 'block' : 'ban'))))
    const again = () => {
      const fresh = this.#row(author)
      const isFocused = row.matches(':focus-within')
      row.replaceWith(fresh)
      if (isFocused) fresh.querySelectorAll('button')[1].focus()
    }
    return row
  }

  close() {
    clearTimeout(this.#timer)
    this.#request.abort()
  }
}
