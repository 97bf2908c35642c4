/**
 * The app of the moderators' page. It shows one tab at a time, and connects the parts for sign-in, decisions, bans and keys.
 * @import { Comment, Offer, OwnUser, State, User, Webhook } from '../types.d.ts'
 */

import { ApiError, Client } from '../kit/api.js'
import { h } from '../kit/dom.js'
import { ownSession } from '../kit/session.js'
import { Bans } from './bans.js'
import { Decisions } from './decisions.js'
import { showDialog } from './dialogs.js'
import { explanation } from './explain.js'
import { focusLate } from './focus.js'
import { icon } from './icons.js'
import { Keys } from './keys.js'
import { LogPanel } from './log.js'
import { Notices } from './notices.js'
import { CardList } from './queue.js'
import { Replies } from './replies.js'
import { Side } from './side.js'
import { SignIn } from './sign_in.js'
import { Tallies } from './tallies.js'
import { FIRST_TEXTS, ownTexts, translator } from './texts.js'
import { UsersPanel } from './users.js'
import { WebhooksPanel } from './webhooks.js'

const TABS = /** @type {const} */ (['pending', 'reported', 'rejected', 'all', 'users', 'webhooks', 'log'])

/** @type {readonly string[]} */
const COUNTED = ['pending', 'reported']

/** Milliseconds between checks for new comments and other moderators' decisions. */
const WATCH = 15_000

export class App {
  client = new Client()
  /** The root of all visible content. */
  frame = h('div', { class: 'frame' })
  language = 'en'
  t = translator(FIRST_TEXTS)
  /** @type {Record<string, string>} */
  labels = {}
  /** The events that a webhook can subscribe to. @type {Webhook['events']} */
  webhookEvents = []
  /** @type {OwnUser | null} */
  me = null
  notices = new Notices(() => this.lists.at(-1)?.refocus())
  keys = new Keys(this)
  decisions = new Decisions(this)
  bans = new Bans(this)
  replies = new Replies(this)
  tallies = new Tallies(this)
  /** The text in the search field of the queues. */
  searched = ''
  side = new Side(this)
  /** Null until the first tab is chosen, which depends on pending comments. @type {typeof TABS[number] | null} */
  #tab = null
  /** The id of the comment in the page's URL, until the comment is shown. @type {number | null} */
  #wanted = null
  /** @type {CardList | UsersPanel | WebhooksPanel | LogPanel | null} */
  #panel = null
  /** Open dialogs, the topmost last. @type {HTMLDialogElement[]} */
  #dialogs = []
  #content = h('div', { tabindex: '-1', id: 'panel', class: 'content' })
  /** @type {HTMLElement} */
  #main
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #watchTimer

  /** @param {HTMLElement} host @param {ShadowRoot} root @param {ReturnType<typeof import('../kit/redirect.js').recall>} [returned] */
  constructor(host, root, returned) {
    this.host = host
    this.root = root
    this.entry = new SignIn(this, returned)
    this.standalone = host.hasAttribute('standalone')
    this.#main = h(this.standalone ? 'main' : 'div', {}, this.#content, this.notices.element)
    root.append(this.frame)
  }

  /** Sets the page's language and texts from a response. @param {Record<string, string>} labels */
  speak(labels) {
    const texts = ownTexts(labels)
    // During an upgrade, an older version may respond without these texts.
    if (!texts.language) throw new ApiError(500)
    this.labels = labels
    this.language = texts.language
    this.t = translator(texts)
    if (!this.standalone) return
    document.documentElement.lang = this.language
    document.title = this.t('title')
  }

  /** Shows only this element, without tabs and dialogs. @param {HTMLElement} content */
  screen(content) {
    this.#dialogs.forEach((dialog) => dialog.close())
    this.#content.removeAttribute('role')
    this.#content.replaceChildren(content)
    this.frame.replaceChildren(this.#main)
  }

  /** Closes the tab, and stops watching for changes. */
  leave() {
    clearInterval(this.#watchTimer)
    this.#panel?.close()
    this.#panel = null
    this.decisions.others.leave()
  }

  /** @param {boolean} readOnly */
  async show(readOnly) {
    const { t } = this
    const tabs = TABS.map((name) =>
      h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'panel', click: () => this.#showTab(name) }, t(name), COUNTED.includes(name) && h('span', { class: 'tally', 'aria-hidden': 'true' })))
    const list = h('div', { role: 'tablist', 'aria-label': t('sections'), keydown: (/** @type {KeyboardEvent} */ event) => this.#moveTab(event) }, ...tabs)
    const header = h('header', { class: 'top' },
      h('h1', {}, t('title')), list,
      ownSession()
        ? h('button', { type: 'button', class: 'me quiet', dir: 'auto', 'aria-haspopup': 'dialog', click: () => this.entry.showAccount() }, this.me?.name ?? this.labels.sign_in_name)
        : h('span', { class: 'me muted', dir: 'auto' }, this.me?.name),
      this.standalone && h('button', { type: 'button', class: 'quiet', click: () => this.entry.signOut() }, t('sign_out')),
      h('button', { type: 'button', class: 'quiet round', 'aria-label': t('help'), title: t('help'), click: () => this.keys.help() }, '?'))
    this.#content.setAttribute('role', 'tabpanel')
    this.frame.replaceChildren(header, this.#main)
    this.#main.querySelector('.banner')?.remove()
    if (readOnly) this.#main.prepend(h('p', { class: 'banner' }, icon('warning'), t('read_only')))
    this.#watchTimer = setInterval(() => document.visibilityState === 'visible' && this.#look(), WATCH)
    this.decisions.others.watch().catch(() => {})
    const counts = await this.recount().catch(() => null)
    if (!header.isConnected) return
    // The moderator may have chosen a tab while the counts loaded.
    if (!this.isOpen) await this.#showTab(this.#tab ?? (counts?.pending === 0 ? 'all' : 'pending'), !this.root.activeElement)
    if (this.#wanted) this.showComment(this.#wanted)
  }

  /** Shows a comment in the side panel once a moderator has signed in. @param {number} id */
  showComment(id) {
    this.#wanted = this.isOpen ? null : id
    if (this.isOpen) this.side.showComment(id)
  }

  /** Loads and shows the current numbers of pending and reported comments. */
  async recount() {
    const { meta } = await this.client.get('moderation/comments', { state: 'pending', cursor: '', per_page: 1 })
    this.tallies.show(meta.counts)
    return meta.counts
  }

  /** Arrow keys, Home and End move between tabs. @param {KeyboardEvent} event */
  #moveTab(event) {
    const at = TABS.indexOf(this.#tab ?? 'pending')
    const forward = getComputedStyle(this.frame).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight'
    const step = { Home: -at, End: TABS.length - 1 - at, ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step == null) return
    event.preventDefault()
    const by = event.key.startsWith('Arrow') ? (event.key === forward ? 1 : -1) : step
    this.#showTab(TABS[(at + by + TABS.length) % TABS.length], false)
    this.root.getElementById(`tab-${this.#tab}`)?.focus()
  }

  /** @param {typeof TABS[number]} name @param {boolean} [enter] whether to focus the tab's content */
  async #showTab(name, enter = true) {
    this.#tab = name
    for (const tab of this.root.querySelectorAll('[role=tab]')) {
      const selected = tab.id === `tab-${name}`
      tab.setAttribute('aria-selected', `${selected}`)
      tab.setAttribute('tabindex', selected ? '0' : '-1')
      if (selected) tab.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    }
    this.#panel?.close()
    const panel = this.#panelOf(name)
    this.#panel = panel
    this.#content.setAttribute('aria-labelledby', `tab-${name}`)
    this.#content.replaceChildren(panel.element)
    if (enter) await focusLate(this, panel.element, () => panel.reload(), () => panel.focusFirst())
    else await panel.reload()
  }

  /** @param {typeof TABS[number]} name */
  #panelOf(name) {
    if (name === 'users') return new UsersPanel(this)
    if (name === 'webhooks') return new WebhooksPanel(this)
    return name === 'log' ? new LogPanel(this) : this.#queue(name)
  }

  /** @param {State} state */
  #queue(state) {
    return new CardList(this, {
      label: this.t(state),
      empty: `empty_${state}`,
      state,
      load: (cursor, size = 50, filters = {}) => this.page('moderation/comments', { ...filters, state, cursor, per_page: size }),
    })
  }

  /** @param {string} path @param {Record<string, string | number>} query */
  async page(path, query) {
    const { data, meta } = await this.client.get(path, query)
    this.tallies.show(meta.counts)
    this.decisions.others.show(data)
    return { data, next: meta.next_cursor ?? null }
  }

  /** The visible lists of comments, the topmost last. */
  get lists() {
    return [this.#panel, this.side.list].filter((panel) => panel instanceof CardList)
  }

  get cards() {
    return this.lists.flatMap(({ cards }) => cards)
  }

  /** @param {string} theme of the service, which the host's attribute overrides */
  showTheme(theme) {
    const wanted = this.host.getAttribute('theme') ?? theme
    this.frame.classList.toggle('light', wanted === 'light')
    this.frame.classList.toggle('dark', wanted === 'dark')
  }

  /** The topmost open dialog. `#dialogs` may briefly include closed ones. */
  get top() {
    return this.#dialogs.findLast(({ open }) => open)
  }

  /** Whether a tab is shown. */
  get isOpen() {
    return !!this.#panel
  }

  /**
   * Shows a dialog, and moves the notices into it. Resolves to the dialog's return value.
   * @param {HTMLDialogElement} dialog @param {() => void} [closed]
   */
  open(dialog, closed) {
    this.#dialogs.push(dialog)
    const shown = showDialog(this, dialog)
    dialog.append(this.notices.element)
    return shown.then((value) => {
      this.#dialogs = this.#dialogs.filter((other) => other !== dialog)
      const below = this.#dialogs.at(-1) ?? this.#main
      below.append(this.notices.element)
      closed?.()
      return value
    })
  }

  /** Checks the log and the queue for changes. A failed check is retried at the next interval. */
  async #look() {
    const queue = this.#panel instanceof CardList ? this.#panel : null
    await Promise.allSettled([this.decisions.others.watch(), this.recount(), queue?.look()])
  }

  /** Whether the user is the signed-in moderator, who can't ban themselves. @param {User} user */
  isMe({ id }) {
    return id != null && id === this.me?.id
  }

  /** @param {Comment} comment */
  nameOf({ user }) {
    return user.name || (this.labels.guest ?? '')
  }

  /** @param {string} text @param {Offer} [offer] */
  tell(text, offer) {
    this.notices.tell(text, offer)
  }

  /** Explains a failure in the page's language, and asks the moderator to sign in again if the sign-in has expired. @param {unknown} error */
  explain = (error) => {
    if (error instanceof ApiError && error.status === 401) this.entry.askAgain()
    return explanation(this, error)
  }

  /** @param {unknown} error */
  fail(error) {
    const text = this.explain(error)
    if (!this.entry.isAsking) this.tell(text)
  }

  /** Creates a message in place of content that couldn't be shown. @param {unknown} error @param {() => void} retry */
  problem(error, retry) {
    const { t } = this
    return h('div', { class: 'panel', role: 'alert' },
      h('span', { class: 'mark bad' }, icon('warning')),
      h('h2', {}, t('error')),
      h('p', { class: 'muted' }, this.explain(error)),
      h('button', { type: 'button', class: 'outlined', click: retry }, t('retry')))
  }

  stop() {
    this.decisions.flush()
    this.leave()
    this.entry.stop()
  }
}
