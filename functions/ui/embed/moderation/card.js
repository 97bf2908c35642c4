/**
 * A comment, with everything that a moderator needs for a decision.
 * @import { Check, Comment, Item, User, Verdict } from '../types.d.ts'
 * @import { CardList } from './queue.js'
 */

import { avatar } from '../kit/avatar.js'
import { inFull } from '../kit/dates.js'
import { h } from '../kit/dom.js'
import { showHtml } from '../kit/html.js'
import { ago } from './ago.js'
import { authorOf } from './bans.js'
import { focusLate } from './focus.js'
import { icon, sign } from './icons.js'
import { mark } from './marks.js'
import { takesReplies } from './replies.js'
import { titleOf } from './threads.js'
import { actionOf, applies, standing } from './verdicts.js'


/** An inert document, in which the texts of comments are built without loading their images. */
const inert = document.implementation.createHTMLDocument()

export class Card {
  element = h('article', { class: 'card', tabindex: '-1' })
  selected = false
  /** A note to read before deciding, for example that the text has changed. */
  note = ''

  /** @param {CardList} list @param {Item} item */
  constructor(list, item) {
    this.list = list
    this.item = item
    this.render()
  }

  /** @param {Item} item @param {string} [note] */
  update(item, note = '') {
    this.item = item
    this.note = note
    const focused = this.element.matches(':focus-within')
    const field = /** @type {HTMLElement | null} */ (this.element.querySelector('textarea:focus'))
    this.render()
    if (focused) (field?.isConnected ? field : this.element).focus({ preventScroll: true })
  }

  /** @param {boolean} selected */
  select(selected) {
    this.selected = selected
    this.element.classList.toggle('selected', selected)
    const box = this.element.querySelector('input')
    if (box) box.checked = selected
  }

  /** Shows the comment, or only its text and actions if that fails, so that the other cards still appear. */
  render() {
    try {
      this.#render()
    } catch (error) {
      console.error(error)
      this.element.replaceChildren(h('p', { class: 'body', dir: 'auto' }, this.item.body), this.#actions())
    }
  }

  #render() {
    const { item } = this
    const { t } = this.list.app
    const where = titleOf(item.thread)
    const label = [t('comment_by', { name: this.list.app.nameOf(item) }), `${t('on')} ${where}`, this.#reason()]
    this.element.setAttribute('aria-label', label.filter(Boolean).join(', '))
    this.element.classList.toggle('noted', !!this.note)
    const body = this.#text('body', item, standing(item) === 'visible', item.verdicts)
    const children = [this.#head(where), item.parent && this.#parent(item.parent), body, this.#showAll(body), this.#checks(), this.#rejection()]
    this.element.replaceChildren(...children.filter((child) => child != null), ...this.#reports(), this.#note(), this.list.app.replies.formIn(this) ?? '', this.#actions())
  }

  /** Returns why the comment is held, or else its state. The rejected and reported queues don't show states. */
  #reason() {
    const { t } = this.list.app
    const { item, list } = this
    if (item.held_for) return t(`held_${item.held_for}`)
    if (list.state === 'rejected' || list.state === 'reported') return ''
    return t(`is_${standing(item)}`)
  }

  /** @param {string} where */
  #head(where) {
    const { app } = this.list
    const { t, language } = app
    const { item } = this
    const name = app.nameOf(item)
    const labels = app.labels
    const box = h('input', { type: 'checkbox', 'aria-label': t('select', { name }), change: () => this.list.selection.select(this, box.checked) })
    box.checked = this.selected
    const badges = [item.is_guest && labels.guest, item.is_moderator && labels.moderator, item.is_author && labels.author]
    const banned = app.bans.of(authorOf(item))
    const address = item.thread.url && /^https?:/.test(item.thread.url) && `${item.thread.url.split('#')[0]}#comment-${item.id}`
    const reason = this.#reason()
    return h('header', {},
      this.list.selectable && box,
      avatar(item.user),
      h('div', { class: 'by' },
        h('span', { class: 'name' }, h('strong', { dir: 'auto' }, name),
          ...badges.map((badge) => badge && h('span', { class: 'badge' }, badge)),
          item.looks_like && h('span', { class: 'badge bad', dir: 'auto' }, labels.looks_like.replace('{name}', () => item.looks_like?.name ?? '')),
          banned && h('span', { class: 'badge bad' }, t('is_banned'))),
        h('span', { class: 'muted where' },
          h('time', { datetime: item.created_at, title: inFull(item.created_at, language) }, ago(item.created_at, language)),
          ' · ',
          address
            ? h('a', { href: address, target: '_blank', rel: 'noopener', dir: 'auto' }, where, icon('open'), h('span', { class: 'visually-hidden' }, ` (${t('new_tab')})`))
            : h('span', { dir: 'auto' }, where),
          item.thread.closed && h('span', { class: 'closed' }, icon('lock'), t('is_closed')),
          this.#writer())),
      reason && h('span', { class: `why ${item.held_for ?? standing(item)}` }, item.held_for && icon(item.held_for === 'approval' ? 'clock' : 'warning'), reason))
  }

  /** Shows how many of the writer's comments moderators have approved and rejected. */
  #writer() {
    const { t } = this.list.app
    const { approved = 0, rejected = 0 } = this.item.writer ?? {}
    const counts = [approved && t('writer_approved', { n: approved }), rejected && t('writer_rejected', { n: rejected })].filter(Boolean)
    return counts.length ? h('span', { class: 'record' }, ` · ${counts.join(', ')}`) : ''
  }

  /** @param {Comment} parent */
  #parent(parent) {
    const { app } = this.list
    return h('blockquote', { class: 'parent' },
      h('span', { class: 'muted' }, icon('reply'), app.t('in_reply_to', { name: app.nameOf(parent) })),
      this.#text('quoted', parent, parent.is_approved))
  }

  /**
   * Creates the comment's text, with the findings of checks marked. Links open in a new tab, because following a link
   * to `#token=` here would sign the moderator out. Images of unapproved comments load only when a button is pressed.
   * @param {string} name of a class @param {Comment} comment @param {boolean} approved @param {Check[]} [checks]
   */
  #text(name, { html, body }, approved, checks = []) {
    const text = inert.adoptNode(h('div', { class: name, dir: 'auto' }))
    showHtml(text, html, body)
    for (const link of text.querySelectorAll('a')) Object.assign(link, { target: '_blank', rel: 'noopener noreferrer' })
    mark(text, checks.flatMap(({ match }) => match ?? []))
    if (!approved) text.querySelectorAll('img').forEach((image) => image.replaceWith(this.#load(image)))
    return text
  }

  /** Creates a button that is replaced by its image when pressed. @param {HTMLImageElement} image */
  #load(image) {
    const { t } = this.list.app
    const { alt: name } = image
    const button = h('button', { type: 'button', class: 'load', title: image.getAttribute('src') }, icon('image'), name ? t('load_image_of', { name }) : t('load_image'))
    button.addEventListener('click', (event) => {
      // The button may be inside a link.
      event.preventDefault()
      button.replaceWith(image)
      this.element.focus({ preventScroll: true })
    })
    return button
  }

  /** @param {HTMLElement} body */
  #showAll(body) {
    const button = h('button', { type: 'button', class: 'show-all link', hidden: true }, this.list.app.t('show_all'))
    button.addEventListener('click', () => {
      body.classList.add('whole')
      button.hidden = true
      this.element.focus({ preventScroll: true })
    })
    this.list.measure(body, () => (button.hidden = body.scrollHeight <= body.clientHeight + 2))
    return button
  }

  /** Lists the reasons why the text is held. */
  #checks() {
    const { t } = this.list.app
    const { verdicts } = this.item
    if (!verdicts.length) return null
    const says = (/** @type {Check} */ { rule, match, detail }) => {
      const n = detail?.count ?? detail?.rejected ?? 0
      return t(detail?.failure ? 'check_no_answer' : `check_${rule}`, { words: match ?? '', limit: detail?.limit ?? 0, n })
    }
    return h('ul', { class: 'checks', 'aria-label': t('checks') }, ...verdicts.map((check) => h('li', { dir: 'auto' }, icon('warning'), says(check))))
  }

  #rejection() {
    const { t, language, labels } = this.list.app
    const { rejection } = this.item
    if (!rejection) return null
    const { reason, note, moderator, created_at } = rejection
    const by = moderator.name ? t('rejected_by', { name: moderator.name }) : t('is_rejected')
    return h('p', { class: 'rejection' }, icon('reject'),
      reason && h('strong', {}, labels[reason]),
      note && h('span', { class: 'details', dir: 'auto' }, note),
      h('span', { class: 'muted' }, by, ' · ', h('time', { datetime: created_at, title: inFull(created_at, language) }, ago(created_at, language))))
  }

  #reports() {
    const { app } = this.list
    const { t } = app
    const { reports_count: count, reports = [] } = this.item
    if (!count) return []
    const rows = h('ul', {}, ...reports.map((report) => this.#report(report)))
    const all = h('button', { type: 'button', class: 'link', click: () => this.#showReports(rows, all) }, t('all_reports', { n: count }))
    return [h('div', { class: 'reports', role: 'group', 'aria-label': t('reports', { n: count }) },
      h('span', { class: 'count' }, icon('flag'), t('reports', { n: count })),
      rows, count > reports.length && all)]
  }

  /** @param {{ reason: string, created_at: string, status?: string, user?: User | null }} report */
  #report({ reason, created_at, status, user }) {
    const { t, language, labels } = this.list.app
    const [, kind, details] = /** @type {string[]} */ (/^([^:]*)(?:: ([^]*))?$/.exec(reason) ?? ['', reason])
    const about = [user?.name, ago(created_at, language), status && status !== 'pending' && t(status)]
    return h('li', {}, h('strong', {}, labels[kind] ?? kind),
      details && h('span', { class: 'details', dir: 'auto' }, details),
      h('span', { class: 'muted' }, about.filter(Boolean).join(' · ')))
  }

  /** @param {HTMLElement} rows @param {HTMLButtonElement} button */
  #showReports(rows, button) {
    const { app } = this.list
    button.disabled = true
    const load = async () => {
      try {
        const { data } = await app.client.get(`comments/${this.item.id}/reports`)
        rows.replaceChildren(...data.map((/** @type {any} */ report) => this.#report(report)))
        button.remove()
      } catch (error) {
        button.disabled = false
        app.fail(error)
      }
    }
    return focusLate(app, this.element, load, () => this.element.focus({ preventScroll: true }))
  }

  #note() {
    return h('p', { class: 'note', hidden: !this.note }, icon('warning'), this.note,
      h('button', { type: 'button', class: 'link', click: () => this.list.drop([this]) }, this.list.app.t('hide')))
  }

  #actions() {
    const { app } = this.list
    const { t } = app
    const { item } = this
    const first = actionOf(item, 'approve')
    const keep = first === 'dismiss'
    // A writer's drawer has its own ban button.
    const isBannable = this.list.state && app.bans.isBannable(authorOf(item))
    const { user: { id }, thread: { closed } } = item
    const decide = (/** @type {Verdict} */ verdict) => () => this.list.decide(verdict, [this])
    return h('div', { class: 'actions' },
      applies(item, first) && h('button', { type: 'button', class: 'approve', title: keep && t('keep_hint'), click: decide('approve') }, sign('approve', 'a'), t(keep ? 'keep' : 'approve')),
      applies(item, 'reject') && h('button', { type: 'button', class: 'reject', click: decide('reject') }, sign('reject', 'r'), t('reject')),
      takesReplies(item) && h('button', { type: 'button', class: 'quiet', 'aria-keyshortcuts': 'Enter', click: () => app.replies.open(this) }, sign('reply', '↵'), h('span', { class: 'long' }, app.labels.reply)),
      isBannable && h('button', { type: 'button', class: 'quiet', click: () => app.bans.banWriters(this.list, [this]) }, sign('ban', 'b'), h('span', { class: 'long' }, t(id == null ? 'block' : 'ban'))),
      h('button', { type: 'button', class: 'quiet', click: () => app.decisions.toggle(item.thread) }, sign('lock', 'c'), h('span', { class: 'long' }, t(closed ? 'open_thread' : 'close_thread'))),
      id != null && this.list.state && h('button', { type: 'button', class: 'quiet', click: () => app.side.showWriter(item.user) }, icon('all'), h('span', { class: 'long' }, t('all_by', { name: app.nameOf(item) }))))
  }
}
