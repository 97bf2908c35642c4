/**
 * The log of moderators' actions, newest first.
 * @import { LogEntry } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { inFull } from '../kit/dates.js'
import { h } from '../kit/dom.js'
import { ago } from './ago.js'
import { below } from './below.js'
import { icon } from './icons.js'


export class LogPanel {
  #rows = h('ol', { class: 'rows log' })
  #end = h('div', { class: 'after' })

  /** @param {App} app */
  constructor(app) {
    this.app = app
    const refresh = h('button', { type: 'button', class: 'quiet end', click: () => this.reload() }, icon('refresh'), app.t('refresh'))
    this.element = h('div', {}, h('div', { class: 'toolbar' }, refresh), this.#rows, this.#end)
  }

  focusFirst() {}

  reload() {
    this.#rows.replaceChildren()
    return this.#load('')
  }

  /** @param {string} cursor */
  async #load(cursor) {
    const { t, client } = this.app
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data, meta, names = {} } = await client.get('moderation/log', { cursor, per_page: 50 })
      this.#rows.append(...data.map((/** @type {LogEntry} */ entry) => this.#row(entry, names)))
      const load = (/** @type {string} */ next) => this.#load(next)
      this.#end.replaceChildren(below(this.app, this.#rows, meta.next_cursor, load, 'empty_log'))
    } catch (error) {
      this.#end.replaceChildren(this.app.problem(error, () => this.#load(cursor)))
    }
  }

  /** @param {LogEntry} entry @param {Record<string, string>} names of users, as they are now */
  #row(entry, names) {
    const { app } = this
    const { t, language } = app
    const { comment_id: comment, user_id: user, action } = entry
    const what = t(`log_${action}`) || action
    const name = names[`${user}`] ?? ''
    const moderator = names[`${entry.moderator.id}`] ?? entry.moderator.name
    return h('li', { class: 'row' },
      h('time', { class: 'muted', datetime: entry.created_at, title: inFull(entry.created_at, language) }, ago(entry.created_at, language)),
      h('span', { class: 'did' }, h('strong', { dir: 'auto' }, moderator), ' ', h('span', { class: `deed ${action}` }, what)),
      h('span', { class: 'muted thread', dir: 'auto' }, entry.thread),
      h('span', { class: 'actions' },
        comment != null && h('button', { type: 'button', class: 'quiet', click: () => app.side.showComment(comment) }, t('show')),
        user != null && h('button', { type: 'button', class: 'quiet', click: () => app.side.showWriter({ id: user, name, avatar: '' }) }, name ? t('all_by', { name }) : t('user_number', { id: user }))),
      entry.excerpt && h('span', { class: 'excerpt', dir: 'auto' }, h('strong', {}, h('bdi', {}, entry.excerpt.name || app.labels.guest)), ' ', entry.excerpt.text))
  }

  close() {}
}
