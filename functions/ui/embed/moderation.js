/**
 * The moderators' page: `<comment-moderation>`.
 *
 * A host page sets the property `auth`, as for `<comment-thread>`. With the attribute `standalone` the element is a page
 * of its own: it signs in by `#token=JWT` or by a field. The token stays in memory.
 *
 * From top to bottom: texts, icons, decisions on their way, cards, lists of cards, users, webhooks, the log, dialogs, notices,
 * the desk that holds them together, styles, the element.
 *
 * @import { Auth, Comment, Ui, User } from './types.d.ts'
 *
 * @typedef {{ type: string, id: string, title: string | null, url: string | null }} Thread
 * @typedef {'approval' | 'spam' | 'edit' | null} HeldFor
 * @typedef {Comment & {
 *   reports_count: number, thread: Thread, parent: Comment | null, held_for: HeldFor,
 *   reports: { reason: string, created_at: string }[],
 * }} Item
 * @typedef {'approve' | 'reject'} Verdict
 * @typedef {Verdict | 'dismiss'} Action
 * @typedef {'pending' | 'reported' | 'rejected'} State
 * @typedef {{ banned: boolean, banned_until: string | null, reason: string | null }} Ban
 * @typedef {User & { id: number } & Ban} KnownUser
 * @typedef {{
 *   id: number | string, created_at: string, moderator: { id: number | null, name: string }, action: string,
 *   comment_id: number | null, user_id: number | null, thread: string | null,
 * }} LogEntry
 * @typedef {{ id: number, url: string, events: string[], enabled: boolean }} Webhook
 * @typedef {{
 *   id: string, event: string, comment_id: number | null, status: 'pending' | 'delivered' | 'failed',
 *   attempts: { at: string, status: number | null, ms: number }[],
 * }} Delivery
 * @typedef {(key: string, values?: Record<string, string | number>) => string} Translate
 */

import { ApiError, Client, FIRST_WORDS, ago, avatar, h, inFull, languageOf, sheet, showHtml, styles } from './embed.js'

// Texts

/** What is said before the first answer, which has the texts. */
const FIRST_TEXTS = { ...FIRST_WORDS, error_offline: FIRST_WORDS.offline }

/** Categories of plurals in the order of CLDR. */
const CATEGORIES = ['zero', 'one', 'two', 'few', 'many', 'other']

/** The texts of this page among the labels. @param {Record<string, string>} labels */
const ownTexts = (labels) =>
  Object.fromEntries(Object.entries(labels).flatMap(([key, text]) => (key.startsWith('moderation.') ? [[key.slice(11), text]] : [])))

/**
 * Says texts by key, and nothing for a key that has none. With a number `n` a text has a form for each category of its language.
 * @param {Record<string, string>} texts
 * @returns {Translate}
 */
function translator(texts) {
  const rules = new Intl.PluralRules(texts.language)
  const known = rules.resolvedOptions().pluralCategories
  const categories = CATEGORIES.filter((category) => known.some((other) => other === category))
  return (key, values = {}) => {
    const forms = (texts[key] ?? '').split(' | ')
    const category = 'n' in values ? rules.select(Number(values.n)) : 'other'
    // The last form is that of `other`, also where the browser knows fewer categories.
    const form = forms[category === 'other' ? -1 : categories.indexOf(category)] ?? forms.at(-1) ?? ''
    return form.replace(/\{(\w+)\}/g, (_, name) => `${values[name]}`)
  }
}

// Icons

const ICONS = {
  approve: 'M3 8.5 6.5 12 13 4.5',
  reject: 'M4 4l8 8M12 4l-8 8',
  flag: 'M4 14V2.5h8l-2 3 2 3H4',
  open: 'M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3 7.5 8.5',
  reply: 'M6.5 4 3 7.5 6.5 11M3 7.5h6a4 4 0 0 1 4 4V13',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5',
  clock: 'M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z',
  ban: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0ZM3.8 3.8l8.4 8.4',
  all: 'M3 4h10M3 8h10M3 12h6',
  image: 'M2.5 3.5h11v9h-11ZM2.5 11 6 7.5l5 5M10.5 6.5h.01',
  warning: 'M8 6v3.5M8 11.5v.01M8 2 1.5 13.5h13Z',
}

/** A drawing of 16 × 16 in the colour of the text. @param {keyof typeof ICONS} name */
function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', ICONS[name])
  svg.setAttribute('viewBox', '0 0 16 16')
  svg.setAttribute('aria-hidden', 'true')
  svg.classList.add('icon')
  svg.append(path)
  return svg
}

// Decisions on their way

/**
 * @typedef {{ item: Item, action: Action, list: CardList }} Choice `list` is where it was made
 * @typedef {{ choices: Choice[], at: number }} Decision `at` is when it was made
 * @typedef {{ action: Action, choices: Choice[] }} Batch
 */

/** Milliseconds that a decision waits for an undo. */
const UNDO = 5_000

/** Milliseconds between deliveries, each of at most one request for each action. Keeps quick work below 60 writes a minute. */
const PAUSE = 4_000

/** Comments in one request. */
const BULK = 50

/** Holds decisions until they can no longer be undone, then delivers those that are due together. */
class Outbox {
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
   * @param {(due: Decision[]) => Promise<{ again: Decision[], after: number }>} deliver answers what has to be sent again,
   *   and after how many milliseconds
   */
  constructor(deliver) {
    this.#deliver = deliver
  }

  /** @param {Choice[]} choices */
  add(choices) {
    this.waiting.push({ choices, at: Date.now() })
    this.#schedule()
  }

  /** Takes back the newest decision that has not been sent. */
  undo() {
    const decision = this.waiting.pop()
    this.#schedule()
    return decision
  }

  /** Takes all that waits, to be sent elsewhere or forgotten. */
  takeAll() {
    const all = [...this.#sending, ...this.waiting]
    this.#sending = []
    this.waiting = []
    return all
  }

  /** Forgets a pause that a failure has set. */
  hurry() {
    this.#notBefore = 0
    this.#schedule()
  }

  #schedule() {
    clearTimeout(this.#timer)
    if (this.#delivering || !this.waiting.length) return
    const due = Math.max(this.waiting[0].at + UNDO, this.#notBefore)
    this.#timer = setTimeout(() => this.#run(), due - Date.now())
  }

  async #run() {
    const now = Date.now()
    const due = this.waiting.filter(({ at }) => at + UNDO <= now)
    this.waiting = this.waiting.filter((decision) => !due.includes(decision))
    this.#delivering = true
    this.#sending = due
    const { again, after } = await this.#deliver(due)
    // Unless they were taken meanwhile.
    if (this.#sending === due) this.waiting.unshift(...again)
    this.#sending = []
    this.#delivering = false
    this.#notBefore = Date.now() + after
    this.#schedule()
  }
}

/** The decisions as requests: the comments of each action, at most `BULK` at a time. @param {Decision[]} decisions */
function batches(decisions) {
  const all = decisions.flatMap(({ choices }) => choices)
  /** @type {Batch[]} */
  const batches = []
  for (const action of /** @type {const} */ (['approve', 'reject', 'dismiss'])) {
    const choices = all.filter((choice) => choice.action === action)
    for (let start = 0; start < choices.length; start += BULK) batches.push({ action, choices: choices.slice(start, start + BULK) })
  }
  return batches
}

/** The body of the request. @param {Batch} batch */
const bulkBody = ({ action, choices }) => ({
  ids: choices.map(({ item }) => item.id),
  action,
  seen: Object.fromEntries(choices.map(({ item }) => [item.id, item.updated_at])),
})

// Cards

/** Where a comment stands. @param {Item} item */
const standing = (item) => (item.held_for ? 'waiting' : item.is_approved ? 'visible' : 'rejected')

/**
 * What a key or a button does to a comment. Approving one that everyone sees keeps it, and dismisses its reports.
 * @param {Item} item
 * @param {Verdict} verdict
 * @returns {Action}
 */
const actionOf = (item, verdict) => (verdict === 'approve' && standing(item) === 'visible' ? 'dismiss' : verdict)

/** Whether an action would change a comment. @param {Item} item @param {Action} action */
function applies(item, action) {
  if (action === 'dismiss') return item.reports_count > 0
  return standing(item) !== (action === 'approve' ? 'visible' : 'rejected')
}

/** The comment as the decision leaves it. @param {Item} item @param {Action} action @returns {Item} */
const decided = (item, action) => ({
  ...item,
  is_approved: action === 'dismiss' ? item.is_approved : action === 'approve',
  held_for: action === 'dismiss' ? item.held_for : null,
  reports_count: 0,
  reports: [],
})

/** Where texts of comments are put together: no image loads there. */
const inert = document.implementation.createHTMLDocument()

/** One comment with all that a moderator needs to decide. */
class Card {
  element = h('article', { class: 'card', tabindex: '-1' })
  /** Whether it belongs to the selection. */
  selected = false
  /** Something to know before deciding, such as that the text has changed. */
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
    this.render()
    if (focused) this.element.focus({ preventScroll: true })
  }

  /** @param {boolean} selected */
  select(selected) {
    this.selected = selected
    this.element.classList.toggle('selected', selected)
    const box = this.element.querySelector('input')
    if (box) box.checked = selected
  }

  render() {
    const { item } = this
    const { t } = this.list.desk
    const where = item.thread.title ?? `${item.thread.type}/${item.thread.id}`
    const label = [t('comment_by', { name: this.list.desk.nameOf(item) }), `${t('on')} ${where}`, this.#reason()]
    this.element.setAttribute('aria-label', label.filter(Boolean).join(', '))
    this.element.classList.toggle('noted', !!this.note)
    const body = this.#text('body', item, standing(item) === 'visible')
    const children = [this.#head(where), item.parent && this.#parent(item.parent), body, this.#showAll(body)]
    this.element.replaceChildren(...children.filter((child) => child != null), ...this.#reports(), this.#note(), this.#actions())
  }

  /** Why the comment is here, in a few words. */
  #reason() {
    const { t } = this.list.desk
    const { item, list } = this
    if (item.held_for) return t(`held_${item.held_for}`)
    if (list.state === 'rejected' || list.state === 'reported') return ''
    return t(`is_${standing(item)}`)
  }

  /** @param {string} where */
  #head(where) {
    const { desk } = this.list
    const { t, language } = desk
    const { item } = this
    const name = desk.nameOf(item)
    const labels = desk.labels
    const box = h('input', { type: 'checkbox', 'aria-label': t('select', { name }), change: () => this.list.select(this, box.checked) })
    box.checked = this.selected
    const badges = [item.is_guest && labels.guest, item.is_moderator && labels.moderator, item.is_author && labels.author]
    const banned = item.user.id != null && desk.bans.get(item.user.id)
    const address = item.thread.url && /^https?:/.test(item.thread.url) && `${item.thread.url.split('#')[0]}#comment-${item.id}`
    const reason = this.#reason()
    return h('header', {},
      this.list.selectable && box,
      avatar(item.user),
      h('div', { class: 'by' },
        h('span', { class: 'name' }, h('strong', { dir: 'auto' }, name),
          ...badges.map((badge) => badge && h('span', { class: 'badge' }, badge)),
          banned && h('span', { class: 'badge bad' }, t('is_banned'))),
        h('span', { class: 'muted where' },
          h('time', { datetime: item.created_at, title: inFull(item.created_at, language) }, ago(item.created_at, language)),
          ' · ',
          address
            ? h('a', { href: address, target: '_blank', rel: 'noopener', dir: 'auto' }, where, icon('open'), h('span', { class: 'visually-hidden' }, ` (${t('new_tab')})`))
            : h('span', { dir: 'auto' }, where))),
      reason && h('span', { class: `why ${item.held_for ?? standing(item)}` }, item.held_for && icon(item.held_for === 'approval' ? 'clock' : 'warning'), reason))
  }

  /** @param {Comment} parent */
  #parent(parent) {
    const { desk } = this.list
    return h('blockquote', { class: 'parent' },
      h('span', { class: 'muted' }, icon('reply'), desk.t('in_reply_to', { name: desk.nameOf(parent) })),
      this.#text('quoted', parent, parent.is_approved))
  }

  /** What a comment says. Its links open elsewhere: one to `#token=` would sign out whoever follows it. Images load at once if it is approved, else by a button each. @param {string} name of a class @param {Comment} comment @param {boolean} approved */
  #text(name, { html, body }, approved) {
    const text = inert.adoptNode(h('div', { class: name, dir: 'auto' }))
    showHtml(text, html, body)
    for (const link of text.querySelectorAll('a')) Object.assign(link, { target: '_blank', rel: 'noopener noreferrer' })
    if (!approved) text.querySelectorAll('img').forEach((image) => image.replaceWith(this.#load(image)))
    return text
  }

  /** A button that puts an image in its place. @param {HTMLImageElement} image */
  #load(image) {
    const { t } = this.list.desk
    const { alt: name } = image
    const button = h('button', { type: 'button', class: 'load', title: image.getAttribute('src') }, icon('image'), name ? t('load_image_of', { name }) : t('load_image'))
    button.addEventListener('click', (event) => {
      // It may stand in a link.
      event.preventDefault()
      button.replaceWith(image)
      this.element.focus({ preventScroll: true })
    })
    return button
  }

  /** @param {HTMLElement} body */
  #showAll(body) {
    const button = h('button', { type: 'button', class: 'show-all link', hidden: true }, this.list.desk.t('show_all'))
    button.addEventListener('click', () => {
      body.classList.add('whole')
      button.hidden = true
      this.element.focus({ preventScroll: true })
    })
    this.list.measure(body, () => (button.hidden = body.scrollHeight <= body.clientHeight + 2))
    return button
  }

  #reports() {
    const { desk } = this.list
    const { t } = desk
    const { reports_count: count, reports = [] } = this.item
    if (!count) return []
    const rows = h('ul', {}, ...reports.map((report) => this.#report(report)))
    const all = h('button', { type: 'button', class: 'link', click: () => this.#showReports(rows, all) }, t('all_reports', { n: count }))
    return [h('section', { class: 'reports', 'aria-label': t('reports', { n: count }) },
      h('span', { class: 'count' }, icon('flag'), t('reports', { n: count })),
      rows, count > reports.length && all)]
  }

  /** @param {{ reason: string, created_at: string, status?: string, user?: User | null }} report */
  #report({ reason, created_at, status, user }) {
    const { t, language, labels } = this.list.desk
    const [, kind, details] = /** @type {string[]} */ (/^([^:]*)(?:: ([^]*))?$/.exec(reason) ?? ['', reason])
    const about = [user?.name, ago(created_at, language), status && status !== 'pending' && t(status)]
    return h('li', {}, h('strong', {}, labels[kind] ?? kind),
      details && h('span', { class: 'details', dir: 'auto' }, details),
      h('span', { class: 'muted' }, about.filter(Boolean).join(' · ')))
  }

  /** @param {HTMLElement} rows @param {HTMLButtonElement} button */
  async #showReports(rows, button) {
    button.disabled = true
    try {
      const { data } = await this.list.desk.client.get(`comments/${this.item.id}/reports`)
      rows.replaceChildren(...data.map((/** @type {any} */ report) => this.#report(report)))
      button.remove()
      this.element.focus({ preventScroll: true })
    } catch (error) {
      button.disabled = false
      this.list.desk.fail(error)
    }
  }

  #note() {
    return h('p', { class: 'note', hidden: !this.note }, icon('warning'), this.note,
      h('button', { type: 'button', class: 'link', click: () => this.list.drop([this]) }, this.list.desk.t('hide')))
  }

  #actions() {
    const { desk } = this.list
    const { t } = desk
    const { item } = this
    const first = actionOf(item, 'approve')
    const keep = first === 'dismiss'
    // Guests have no account, and the drawer of a writer has a button of its own.
    const known = item.user.id != null && !this.list.keeps
    const decide = (/** @type {Verdict} */ verdict) => () => this.list.decide(verdict, [this])
    return h('div', { class: 'actions' },
      applies(item, first) && h('button', { type: 'button', class: 'approve', title: keep && t('keep_hint'), click: decide('approve') }, sign('approve', 'a'), t(keep ? 'keep' : 'approve')),
      applies(item, 'reject') && h('button', { type: 'button', class: 'reject', click: decide('reject') }, sign('reject', 'r'), t('reject')),
      known && !desk.isMe(item.user) && h('button', { type: 'button', class: 'quiet', click: () => this.ban() }, sign('ban', 'b'), t('ban')),
      known && h('button', { type: 'button', class: 'quiet', click: () => desk.showWriter(item.user) }, icon('all'), h('span', { class: 'long' }, t('all_by', { name: desk.nameOf(item) }))))
  }

  /** Asks for how long, and bans the writer at once. */
  async ban() {
    const { desk } = this.list
    const { user } = this.item
    if (user.id == null) return desk.tell(desk.t('guests_no_ban'))
    if (desk.isMe(user)) return desk.tell(desk.t('no_ban'))
    const rejectable = applies(this.item, 'reject')
    const { banned, reject } = await desk.askBan({ ...user, id: user.id }, rejectable)
    if (banned && reject) this.list.decide('reject', [this])
    else this.list.focus(this)
  }
}

/** A key as a hint. Screen readers have the help for that. @param {string} letter */
const key = (letter) => h('kbd', { 'aria-hidden': 'true' }, letter)

/** An icon, in whose place the current card shows a key. @param {keyof typeof ICONS} name @param {string} letter */
const sign = (name, letter) => h('span', { class: 'sign', 'aria-hidden': 'true' }, icon(name), h('kbd', {}, letter))

// Lists of cards

/** A page of a list, and the cursor of the next one. @typedef {{ data: Item[], next: string | null }} Page */

/** Comments one below the other, of which one is current. It has the focus while the keyboard is used. */
class CardList {
  /** In the order of the page. @type {Card[]} */
  cards = []
  /** @type {Card | null} */
  current = null
  /** From where a range is selected. @type {Card | null} */
  #anchor = null
  /** @type {string | null} */
  #cursor = ''
  /** The id of the newest comment that was loaded. */
  #newest = 0
  /** Of the loading that counts; a reload begins another. */
  #turn = 0
  /** @type {Promise<void> | null} */
  #loading = null
  #feed = h('div', { role: 'feed', class: 'cards' })
  #end = h('div', { class: 'after' })
  #count = h('span', { class: 'muted' })
  #all = h('input', { type: 'checkbox' })
  #toolbar = h('div', { class: 'toolbar' })
  #sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#measures.get(target)?.()))
  /** @type {WeakMap<Element, () => void>} */
  #measures = new WeakMap()
  #nearEnd

  /**
   * @param {Desk} desk
   * @param {{
   *   label: string, empty: string, state?: State, keeps?: boolean, load: (cursor: string, size?: number) => Promise<Page>,
   * }} options `keeps`: comments stay in the list after a decision
   */
  constructor(desk, { label, empty, state, keeps = false, load }) {
    this.desk = desk
    this.state = state
    this.keeps = keeps
    this.selectable = !keeps
    this.empty = empty
    this.load = load
    this.#feed.setAttribute('aria-label', label)
    this.#nearEnd = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.more(), { rootMargin: '1200px' })
    this.#all.addEventListener('change', () => {
      this.cards.forEach((card) => card.select(this.#all.checked))
      this.#showToolbar()
    })
    this.element = h('div', { class: 'list' }, this.selectable && this.#toolbar, this.#feed, this.#end)
    this.#feed.addEventListener('focusin', (event) => {
      const card = this.cards.find(({ element }) => element.contains(/** @type {Node} */ (event.target)))
      if (card) this.#setCurrent(card)
    })
    this.#feed.addEventListener('click', (event) => {
      const target = /** @type {Element} */ (event.target)
      const card = this.cards.find(({ element }) => element.contains(target))
      if (card && !target.closest('a, button, input') && !getSelection()?.toString()) this.focus(card)
    })
    this.#showToolbar()
  }

  /** Loads the first page in place of what is shown. */
  async reload() {
    // What is being loaded is of no use any more.
    this.#turn++
    this.#loading = null
    this.cards = []
    this.current = this.#anchor = null
    this.#cursor = ''
    this.#newest = 0
    this.#toolbar.dataset.mode = ''
    this.#feed.replaceChildren()
    await this.more()
    this.#showToolbar()
  }

  /** Loads the next page, if there is one. */
  more() {
    if (this.#cursor == null) return Promise.resolve()
    const turn = this.#turn
    this.#loading ??= this.#fetch(this.#cursor).finally(() => {
      if (turn !== this.#turn) return
      this.#loading = null
      // Observing anew tells whether the end is still near.
      this.#nearEnd.unobserve(this.#end)
      if (this.#cursor != null && this.cards.length) this.#nearEnd.observe(this.#end)
    })
    return this.#loading
  }

  /** @param {string} cursor */
  async #fetch(cursor) {
    const turn = this.#turn
    const first = !this.cards.length
    this.#feed.setAttribute('aria-busy', 'true')
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, this.desk.t('loading')))
    try {
      const { data, next } = await this.load(cursor)
      if (turn !== this.#turn) return
      this.#cursor = next
      this.#newest = Math.max(this.#newest, ...data.map(({ id }) => id))
      this.insert(data.filter((item) => !this.desk.isHandled(item, this.state)))
      this.#end.replaceChildren()
      if (!this.cards.length && next == null) this.#showEmpty()
    } catch (error) {
      if (turn !== this.#turn) return
      this.#cursor = null
      const retry = () => {
        this.#cursor = cursor
        this.more().then(() => this.cards.length && first && this.focus(this.cards[0]))
      }
      this.#end.replaceChildren(this.desk.problem(error, retry))
    }
    this.#feed.removeAttribute('aria-busy')
    this.#showToolbar()
    if (!this.cards.length && this.#cursor != null) await this.#fetch(this.#cursor)
  }

  #showEmpty() {
    const { t } = this.desk
    this.#end.replaceChildren(h('div', { class: 'panel', tabindex: '-1' },
      h('span', { class: 'mark' }, icon('approve')),
      h('h2', {}, t(this.empty)),
      t(`${this.empty}_more`) && h('p', { class: 'muted' }, t(`${this.empty}_more`))))
  }

  #showToolbar() {
    const { t } = this.desk
    const chosen = this.cards.filter(({ selected }) => selected)
    const n = this.cards.length
    const more = this.#cursor != null
    this.#count.textContent = chosen.length ? t('selected', { n: chosen.length }) : n ? t(more ? 'count_more' : 'count', { n }) : ''
    this.#all.checked = n > 0 && chosen.length === n
    this.#all.indeterminate = chosen.length > 0 && chosen.length < n
    this.#all.hidden = !n
    this.#all.setAttribute('aria-label', t('select_all'))
    this.#toolbar.classList.toggle('selecting', chosen.length > 0)
    if (this.#toolbar.childElementCount && this.#toolbar.dataset.mode === `${chosen.length > 0}`) return
    this.#toolbar.dataset.mode = `${chosen.length > 0}`
    const keep = this.state === 'reported'
    const decide = (/** @type {Verdict} */ verdict) => () => this.press(verdict)
    const buttons = chosen.length
      ? [
          h('button', { type: 'button', class: 'approve', click: decide('approve') }, sign('approve', 'a'), t(keep ? 'keep' : 'approve')),
          this.state !== 'rejected' && h('button', { type: 'button', class: 'reject', click: decide('reject') }, sign('reject', 'r'), t('reject')),
          h('button', { type: 'button', class: 'quiet end', 'aria-label': t('clear'), title: t('clear'), click: () => this.clear() }, icon('reject')),
        ]
      : [h('button', { type: 'button', class: 'quiet end refresh', click: () => this.refresh() }, icon('refresh'), t('refresh'))]
    this.#toolbar.replaceChildren(this.#all, this.#count, ...buttons.filter((button) => !!button))
  }

  async refresh() {
    await this.reload()
    this.focusFirst()
  }

  /** Calls `told` whenever the size of the element has changed. @param {Element} element @param {() => void} told */
  measure(element, told) {
    this.#measures.set(element, told)
    this.#sizes.observe(element)
  }

  /** Looks whether a newer comment has come, and says so at the button that loads it. An empty list shows whatever has come. */
  async look() {
    if (!this.state || this.#loading) return
    const { data } = await this.load('', 1)
    const known = Math.max(0, ...this.cards.map(({ item }) => item.id), this.#newest)
    const open = data.filter((item) => !this.desk.isHandled(item, this.state))
    if (!this.cards.length) return open.length ? this.#refill() : undefined
    if (!open.some(({ id }) => id > known)) return
    const button = this.#toolbar.querySelector('.refresh')
    button?.classList.add('news')
    button?.replaceChildren(icon('refresh'), this.desk.t('new_ones'))
  }

  /** Puts comments where they belong: newest first. @param {Item[]} items @param {string} [note] */
  insert(items, note = '') {
    for (const item of items) {
      const known = this.find(item.id)
      if (known) {
        known.update(item, note)
        continue
      }
      const card = new Card(this, item)
      if (note) card.update(item, note)
      const place = this.cards.findIndex((other) => other.item.id < item.id)
      const before = place < 0 ? null : this.cards[place]
      this.#feed.insertBefore(card.element, before?.element ?? null)
      this.cards.splice(before ? place : this.cards.length, 0, card)
    }
    if (items.length) this.#end.querySelector('.panel')?.remove()
    this.#showToolbar()
  }

  /** @param {number} id */
  find(id) {
    return this.cards.find(({ item }) => item.id === id)
  }

  /**
   * Takes cards out. The next card that stays becomes the current one.
   * @param {Card[]} cards
   * @param {boolean} [follow] whether it takes the focus, too
   */
  drop(cards, follow = true) {
    const at = this.current ? this.cards.indexOf(this.current) : 0
    const staying = (/** @type {Card} */ card) => !cards.includes(card)
    const next = this.cards.slice(at).find(staying) ?? this.cards.slice(0, at).findLast(staying) ?? null
    const focused = follow || cards.some(({ element }) => element.matches(':focus-within'))
    this.cards = this.cards.filter(staying)
    if (this.#anchor && !staying(this.#anchor)) this.#anchor = null
    if (next) {
      if (focused) this.focus(next)
      else this.#setCurrent(next)
    }
    cards.forEach(({ element }) => element.remove())
    if (next && focused) this.#reveal(next)
    this.#showToolbar()
    if (!next) this.#drained()
  }

  /** After the last card: the next page, or the word that there is none. */
  async #drained() {
    this.current = null
    if (this.#cursor == null && !this.#loading) this.#showEmpty()
    else await this.more()
    if (!this.cards.length && !this.#end.childElementCount) this.#showEmpty()
    this.focusFirst()
  }

  /** Loads an empty list again. */
  async #refill() {
    const focused = this.#end.contains(this.desk.root.activeElement)
    await this.reload()
    if (focused) this.focusFirst()
  }

  /** Focuses the first card, else what says that there is none. */
  focusFirst() {
    if (this.cards.length) this.focus(this.cards[0])
    else /** @type {HTMLElement | null} */ (this.#end.querySelector('.panel'))?.focus()
  }

  /** @param {Card} card */
  #setCurrent(card) {
    if (this.current === card) return
    this.current?.element.classList.remove('current')
    this.current?.element.removeAttribute('aria-current')
    this.current?.element.setAttribute('tabindex', '-1')
    this.current = card
    card.element.classList.add('current')
    card.element.setAttribute('aria-current', 'true')
    card.element.setAttribute('tabindex', '0')
  }

  /** @param {Card} card */
  focus(card) {
    this.#setCurrent(card)
    card.element.focus({ preventScroll: true })
    this.#reveal(card)
  }

  /** Scrolls as little as shows the card. @param {Card} card */
  #reveal({ element }) {
    element.scrollIntoView({ block: element.offsetHeight > innerHeight * 0.7 ? 'start' : 'nearest' })
  }

  /** @param {1 | -1} step */
  async move(step) {
    const at = this.current ? this.cards.indexOf(this.current) : -1
    if (step > 0 && at === this.cards.length - 1) await this.more()
    const card = this.cards[at + step] ?? this.current ?? this.cards[0]
    if (card) this.focus(card)
  }

  /** @param {Card} card @param {boolean} selected */
  select(card, selected) {
    card.select(selected)
    this.#anchor = card
    this.#showToolbar()
  }

  /** Selects everything between the last selected card and the current one. */
  selectRange() {
    if (!this.current) return
    const [from, to] = [this.#anchor ?? this.current, this.current].map((card) => this.cards.indexOf(card)).sort((a, b) => a - b)
    this.cards.slice(from, to + 1).forEach((card) => card.select(true))
    this.#showToolbar()
  }

  /** Ends the selection. @returns {boolean} whether there was one */
  clear() {
    const chosen = this.cards.filter(({ selected }) => selected)
    chosen.forEach((card) => card.select(false))
    this.#anchor = null
    this.#showToolbar()
    if (chosen.length && this.current) this.focus(this.current)
    return chosen.length > 0
  }

  /** Decides about the selection, else about the current card. @param {Verdict} verdict */
  press(verdict) {
    const chosen = this.cards.filter(({ selected }) => selected)
    this.decide(verdict, chosen.length ? chosen : this.current ? [this.current] : [])
  }

  /** @param {Verdict} verdict @param {Card[]} cards */
  decide(verdict, cards) {
    const choices = cards.map(({ item }) => ({ item, action: actionOf(item, verdict), list: this }))
    const changing = choices.filter(({ item, action }) => applies(item, action))
    // Someone else has decided the same: there is nothing left to send.
    const settled = cards.filter(({ item, note }) => note && !applies(item, actionOf(item, verdict)))
    if (changing.length) this.desk.decide(changing)
    else if (!settled.length) return this.desk.tell(this.desk.t('nothing_to_do'))
    if (!this.keeps) return this.drop([...settled, ...cards.filter(({ item }) => changing.some((choice) => choice.item === item))])
    for (const { item, action } of changing) this.find(item.id)?.update(decided(item, action))
    this.move(1)
  }

  /** Puts comments back as they were before a decision. @param {Item[]} items @param {string} [note] @param {boolean} [focus] */
  restore(items, note, focus = false) {
    const emptied = this.#end.querySelector('.panel')?.matches(':focus')
    this.insert(items, note)
    const card = this.find(items[0].id)
    if (card && (focus || emptied)) this.focus(card)
  }

  /** Stops watching sizes and the scroll position. */
  close() {
    this.#sizes.disconnect()
    this.#nearEnd.disconnect()
  }
}

// Users

/**
 * What stands below rows: a button for more, or the word that there are none.
 * @param {Desk} desk
 * @param {HTMLElement} rows
 * @param {string | null | undefined} next the cursor of the next page
 * @param {(cursor: string) => void} load
 * @param {string} none key of a text
 */
function below({ t }, rows, next, load, none) {
  if (next) return h('button', { type: 'button', class: 'outlined', click: () => load(next) }, t('more'))
  return rows.childElementCount ? '' : h('p', { class: 'muted centred' }, t(none))
}

/** Finds users by name, and lists those who are banned. */
class UsersPanel {
  #query = h('input', { type: 'search', maxlength: '50', autocomplete: 'off', input: () => this.#later() })
  #heading = h('h2')
  #rows = h('ul', { class: 'rows' })
  #end = h('div', { class: 'after' })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** Cancels the request whose answer is no longer wanted. */
  #request = new AbortController()

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
    const { t } = desk
    this.element = h('div', { class: 'users' },
      h('label', { class: 'search' }, h('span', { class: 'visually-hidden' }, t('search_users')), this.#query),
      this.#heading, this.#rows, this.#end)
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
    const { desk } = this
    const { t } = desk
    const q = this.#query.value.trim()
    this.#request.abort()
    this.#request = new AbortController()
    const { signal } = this.#request
    this.#heading.textContent = t(q ? 'found' : 'banned_now')
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data, meta } = await desk.client.get('moderation/users', q ? { q } : { banned: 'true', cursor }, signal)
      for (const user of data) desk.learn(user)
      this.#rows.append(...data.map((/** @type {KnownUser} */ user) => this.#row(user)))
      const load = (/** @type {string} */ next) => this.#load(next)
      this.#end.replaceChildren(below(desk, this.#rows, meta?.next_cursor, load, q ? 'empty_users' : 'empty_banned'))
    } catch (error) {
      if (!signal.aborted) this.#end.replaceChildren(desk.problem(error, () => this.#load(cursor)))
    }
  }

  /** @param {KnownUser} user @returns {HTMLElement} */
  #row(user) {
    const { desk } = this
    const { t } = desk
    const ban = desk.bans.get(user.id)
    const row = h('li', { class: 'row user' }, avatar(user),
      h('div', { class: 'by' },
        h('span', { class: 'name' }, h('strong', { dir: 'auto' }, user.name), h('span', { class: 'muted' }, `#${user.id}`)),
        ban && h('span', { class: 'ban' }, desk.banText(ban))),
      h('div', { class: 'actions' },
        h('button', { type: 'button', class: 'quiet', click: () => desk.showWriter(user) }, t('written')),
        ban
          ? h('button', { type: 'button', class: 'quiet', click: () => desk.unban(user).then(again) }, t('unban'))
          : !desk.isMe(user) && h('button', { type: 'button', class: 'quiet', click: () => desk.askBan(user, false).then(again) }, t('ban'))))
    const again = () => {
      const fresh = this.#row(user)
      row.replaceWith(fresh)
      fresh.querySelectorAll('button')[1].focus()
    }
    return row
  }

  close() {
    clearTimeout(this.#timer)
    this.#request.abort()
  }
}

// Webhooks

const EVENTS = ['comment.created', 'comment.pending', 'comment.approved', 'comment.rejected', 'comment.updated', 'comment.deleted', 'comment.reported']

/** Adds and changes webhooks, and shows what was sent to each. */
class WebhooksPanel {
  #add = h('button', { type: 'button', class: 'outlined', click: () => this.#edit(null) })
  #rows = h('ul', { class: 'rows webhooks' })
  #end = h('div', { class: 'after' })

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
    const { t } = desk
    const refresh = h('button', { type: 'button', class: 'quiet end', click: () => this.reload() }, icon('refresh'), t('refresh'))
    this.#add.textContent = t('add_webhook')
    this.element = h('div', {}, h('div', { class: 'toolbar' }, this.#add, refresh), this.#rows, this.#end)
  }

  focusFirst() {
    this.#add.focus()
  }

  async reload() {
    const { desk } = this
    const { t } = desk
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data } = await desk.client.get('moderation/webhooks')
      this.#add.hidden = false
      this.#rows.replaceChildren(...data.map((/** @type {Webhook} */ webhook) => this.#row(webhook)))
      this.#end.replaceChildren(below(desk, this.#rows, null, () => {}, 'empty_webhooks'))
    } catch (error) {
      const isOff = error instanceof ApiError && error.status === 404
      this.#rows.replaceChildren()
      this.#add.hidden = isOff
      this.#end.replaceChildren(isOff ? h('p', { class: 'muted centred' }, t('webhooks_off')) : desk.problem(error, () => this.reload()))
    }
  }

  /** @param {Webhook} webhook */
  #row(webhook) {
    const { t } = this.desk
    const { enabled } = webhook
    const act = (/** @type {string} */ label, /** @type {() => unknown} */ click) => h('button', { type: 'button', class: 'quiet', click }, t(label))
    return h('li', { class: 'row' },
      h('div', { class: 'by' },
        h('strong', { dir: 'ltr' }, webhook.url),
        h('span', { class: 'muted' }, webhook.events.join(', ')),
        !enabled && h('span', { class: 'ban' }, t('disabled'))),
      h('div', { class: 'actions' },
        act('deliveries', () => this.#deliveries(webhook)),
        enabled && act('send_test', () => this.#send('POST', `${pathOf(webhook)}/test`, undefined, 'test_sent')),
        act('edit', () => this.#edit(webhook)),
        act(enabled ? 'disable' : 'enable', () => this.#send('PATCH', pathOf(webhook), { enabled: !enabled })),
        act('remove', () => this.#remove(webhook))))
  }

  /**
   * Sends a change, tells what became of it and shows the list anew.
   * @param {string} method @param {string} path @param {object} [body] @param {string} [done] key of a text
   */
  async #send(method, path, body, done = 'saved') {
    const { desk } = this
    try {
      await desk.client.request(method, path, { body })
      desk.tell(desk.t(done))
    } catch (error) {
      desk.tell(desk.explain(error))
    }
    await this.reload()
    this.#add.focus()
  }

  /** @param {Webhook} webhook */
  async #remove(webhook) {
    const { desk } = this
    const { t } = desk
    const dialog = h('dialog', { 'aria-labelledby': 'remove-title' },
      h('form', { method: 'dialog' },
        h('h2', { id: 'remove-title' }, t('remove_webhook')),
        h('p', { class: 'muted', dir: 'ltr' }, webhook.url),
        h('div', { class: 'buttons' },
          h('button', { class: 'outlined', value: '', autofocus: true }, t('cancel')),
          h('button', { class: 'primary danger', value: 'remove' }, t('remove')))))
    if ((await desk.open(dialog)) === 'remove') await this.#send('DELETE', pathOf(webhook))
  }

  /** The dialog that adds a webhook, or changes this one. @param {Webhook | null} webhook */
  async #edit(webhook) {
    const { desk } = this
    const dialog = webhookDialog(desk, webhook, async (fields) => {
      const method = webhook ? 'PATCH' : 'POST'
      return (await desk.client.request(method, webhook ? pathOf(webhook) : 'moderation/webhooks', { body: fields })).data.secret
    })
    await desk.open(dialog)
    if (dialog.returnValue === 'saved') await this.reload()
  }

  /** @param {Webhook} webhook */
  #deliveries(webhook) {
    const { desk } = this
    const { t, language } = desk
    const rows = h('ol', { class: 'rows' })
    const end = h('div', { class: 'after' })
    const row = (/** @type {Delivery} */ delivery) => {
      const last = delivery.attempts.at(-1)
      const said = last && (last.status ? `${last.status}` : t('no_answer'))
      const again = h('button', { type: 'button', class: 'quiet', click: async () => {
        again.disabled = true
        await this.#redeliver(webhook, delivery.id)
        await load('')
      } }, t('send_again'))
      return h('li', { class: 'row' },
        h('div', { class: 'by' },
          h('span', {}, h('strong', {}, delivery.event), ' ', h('span', { class: delivery.status === 'failed' ? 'ban' : 'muted' }, t(`delivery_${delivery.status}`))),
          h('span', { class: 'muted' }, [said, last && `${last.ms} ms`, delivery.attempts.length > 1 && t('attempts', { n: delivery.attempts.length })].filter(Boolean).join(' · '),
            last ? h('time', { datetime: last.at, title: inFull(last.at, language) }, ` · ${ago(last.at, language)}`) : '')),
        h('div', { class: 'actions' },
          delivery.comment_id != null && h('button', { type: 'button', class: 'quiet', click: () => desk.showComment(delivery.comment_id ?? 0) }, t('show')),
          webhook.enabled && again))
    }
    const load = async (/** @type {string} */ cursor) => {
      end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
      try {
        const { data, meta } = await desk.client.get(`${pathOf(webhook)}/deliveries`, { cursor, per_page: 50 })
        if (!cursor) rows.replaceChildren()
        rows.append(...data.map(row))
        end.replaceChildren(below(desk, rows, meta.next_cursor, load, 'empty_deliveries'))
      } catch (error) {
        end.replaceChildren(desk.problem(error, () => load(cursor)))
      }
    }
    load('')
    const dialog = h('dialog', { class: 'drawer', 'aria-labelledby': 'drawer-title' },
      h('div', { class: 'drawer-head' },
        h('h2', { id: 'drawer-title', tabindex: '-1', autofocus: true }, t('deliveries')),
        h('button', { type: 'button', class: 'quiet', click: () => load('') }, icon('refresh'), t('refresh')),
        h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('close'))),
      h('p', { class: 'about muted', dir: 'ltr' }, webhook.url), rows, end)
    desk.open(dialog)
  }

  /** @param {Webhook} webhook @param {string} message */
  async #redeliver(webhook, message) {
    const { desk } = this
    try {
      await desk.client.request('POST', `${pathOf(webhook)}/deliveries/${message}/redeliver`)
      desk.tell(desk.t('test_sent'))
    } catch (error) {
      desk.tell(desk.explain(error))
    }
  }

  close() {}
}

/** @param {Webhook} webhook */
const pathOf = ({ id }) => `moderation/webhooks/${id}`

/**
 * The dialog of a webhook. `submit` sends it and answers with its secret when it is new.
 * @param {Desk} desk
 * @param {Webhook | null} webhook
 * @param {(fields: { url: string, events: string[] }) => Promise<string | undefined>} submit
 */
function webhookDialog(desk, webhook, submit) {
  const { t } = desk
  const url = h('input', { type: 'url', required: true, maxlength: '2048', autocomplete: 'off', spellcheck: 'false', dir: 'ltr', placeholder: 'https://', autofocus: true })
  url.value = webhook?.url ?? ''
  const boxes = EVENTS.map((event) => {
    const box = h('input', { type: 'checkbox', name: 'event', value: event })
    box.checked = !webhook || webhook.events.includes(event)
    return h('label', {}, box, event)
  })
  const error = h('p', { role: 'alert', class: 'error', hidden: true })
  const send = h('button', { class: 'primary' }, t('save'))
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'webhook-title' }, t(webhook ? 'edit_webhook' : 'add_webhook')),
    h('label', { class: 'field' }, t('webhook_url'), url),
    h('fieldset', {}, h('legend', {}, t('webhook_events')), ...boxes),
    error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')), send))
  const dialog = h('dialog', { class: 'webhook-dialog', 'aria-labelledby': 'webhook-title' }, form)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    send.disabled = true
    try {
      const secret = await submit({ url: url.value.trim(), events: new FormData(form).getAll('event').map(String) })
      dialog.returnValue = 'saved'
      if (!secret) return dialog.close('saved')
      const shown = h('input', { readonly: true, dir: 'ltr', value: secret, focus: () => shown.select() })
      const close = h('button', { class: 'primary', value: 'saved' }, t('close'))
      dialog.replaceChildren(h('form', { method: 'dialog' },
        h('h2', { id: 'webhook-title' }, t('webhook_secret')),
        h('p', { class: 'muted' }, t('secret_once')),
        h('label', { class: 'field' }, t('webhook_secret'), shown),
        h('div', { class: 'buttons' }, close)))
      shown.focus()
    } catch (refusal) {
      error.textContent = refusalText(desk, refusal)
      error.hidden = false
      send.disabled = false
    }
  })
  return dialog
}

/** What is wrong with the fields, in the words of the service; else what happened. @param {Desk} desk @param {unknown} error */
function refusalText(desk, error) {
  return error instanceof ApiError && error.status === 422 ? error.message : desk.explain(error)
}

// The log

/** Who decided what, newest first. */
class LogPanel {
  #rows = h('ol', { class: 'rows log' })
  #end = h('div', { class: 'after' })

  /** @param {Desk} desk */
  constructor(desk) {
    this.desk = desk
    const refresh = h('button', { type: 'button', class: 'quiet end', click: () => this.reload() }, icon('refresh'), desk.t('refresh'))
    this.element = h('div', {}, h('div', { class: 'toolbar' }, refresh), this.#rows, this.#end)
  }

  focusFirst() {}

  reload() {
    this.#rows.replaceChildren()
    return this.#load('')
  }

  /** @param {string} cursor */
  async #load(cursor) {
    const { t, client } = this.desk
    this.#end.replaceChildren(h('p', { class: 'muted centred' }, t('loading')))
    try {
      const { data, meta } = await client.get('moderation/log', { cursor, per_page: 50 })
      this.#rows.append(...data.map((/** @type {LogEntry} */ entry) => this.#row(entry)))
      const load = (/** @type {string} */ next) => this.#load(next)
      this.#end.replaceChildren(below(this.desk, this.#rows, meta.next_cursor, load, 'empty_log'))
    } catch (error) {
      this.#end.replaceChildren(this.desk.problem(error, () => this.#load(cursor)))
    }
  }

  /** @param {LogEntry} entry */
  #row(entry) {
    const { desk } = this
    const { t, language } = desk
    const { comment_id: comment, user_id: user, action } = entry
    const what = t(`log_${action}`) || action
    return h('li', { class: 'row' },
      h('time', { class: 'muted', datetime: entry.created_at, title: inFull(entry.created_at, language) }, ago(entry.created_at, language)),
      h('span', { class: 'did' }, h('strong', { dir: 'auto' }, entry.moderator.name), ' ', h('span', { class: `deed ${action}` }, what)),
      h('span', { class: 'muted thread', dir: 'auto' }, entry.thread),
      h('span', { class: 'actions' },
        comment != null && h('button', { type: 'button', class: 'quiet', click: () => desk.showComment(comment) }, t('show')),
        user != null && h('button', { type: 'button', class: 'quiet', click: () => desk.showWriter({ id: user, name: '', avatar: '' }) }, t('user_number', { id: user }))))
  }

  close() {}
}

// Dialogs

/**
 * Shows a dialog until it is closed, and gives the focus back to what had it.
 * @param {Desk} desk
 * @param {HTMLDialogElement} dialog
 */
function showDialog(desk, dialog) {
  const before = /** @type {HTMLElement | null} */ (desk.root.activeElement)
  desk.frame.append(dialog)
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove()
      // A key that came first may have moved it.
      if (before?.isConnected && !desk.root.activeElement) before.focus({ preventScroll: true })
      resolve(dialog.returnValue)
    })
  })
}

const DAY = 86_400_000

/** Days that a ban lasts, 0 for good. */
const LENGTHS = /** @type {const} */ ([['ban_day', 1], ['ban_week', 7], ['ban_month', 30], ['ban_forever', 0]])

/** A time as the API takes it. @param {number} time in milliseconds */
const apiTime = (time) => new Date(time).toISOString().replace(/\.\d+Z$/, '+00:00')

/**
 * The dialog of a ban. `submit` sends it; what it refuses is told in the dialog, which stays open.
 * @param {Desk} desk
 * @param {User} user
 * @param {boolean} rejectable whether the comment could be rejected, too
 * @param {(ban: { until: string | null, reason: string | null }, reject: boolean) => Promise<void>} submit
 */
function banDialog({ t, explain }, user, rejectable, submit) {
  const date = h('input', { type: 'date', name: 'date', 'aria-label': t('ban_date'), focus: () => (other.checked = true) })
  date.min = new Date(Date.now() + DAY).toISOString().slice(0, 10)
  const other = h('input', { type: 'radio', name: 'length', value: 'date' })
  const reason = h('input', { name: 'reason', maxlength: '500', autocomplete: 'off' })
  const reject = h('input', { type: 'checkbox' })
  reject.checked = rejectable
  const error = h('p', { role: 'alert', class: 'error', hidden: true })
  const lengths = LENGTHS.map(([label, days]) => {
    const radio = h('input', { type: 'radio', name: 'length', value: `${days}`, autofocus: days === 7 })
    radio.checked = days === 7
    return h('label', {}, radio, t(label))
  })
  const send = h('button', { class: 'primary danger' }, t('ban_confirm'))
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'ban-title', dir: 'auto' }, t('ban_title', { name: user.name })),
    h('p', { class: 'muted' }, t('ban_effect')),
    h('fieldset', {}, h('legend', {}, t('ban_length')), ...lengths, h('label', {}, other, t('ban_date'), date)),
    h('label', { class: 'field' }, t('ban_reason'), reason),
    rejectable && h('label', { class: 'check' }, reject, t('ban_and_reject')),
    error,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('cancel')), send))
  const dialog = h('dialog', { class: 'ban-dialog', 'aria-labelledby': 'ban-title' }, form)
  const until = () => {
    const length = `${new FormData(form).get('length')}`
    if (length !== 'date') return length === '0' ? null : Date.now() + Number(length) * DAY
    return new Date(`${date.value}T00:00`).getTime()
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const end = until()
    const valid = end == null || end > Date.now()
    error.hidden = valid
    error.textContent = t('error_date')
    if (!valid) return date.focus()
    send.disabled = true
    try {
      await submit({ until: end == null ? null : apiTime(end), reason: reason.value.trim() || null }, reject.checked && rejectable)
      dialog.close('banned')
    } catch (refusal) {
      const isForbidden = refusal instanceof ApiError && refusal.code === 'forbidden'
      error.textContent = isForbidden ? t('no_ban') : explain(refusal)
      error.hidden = false
      send.disabled = false
    }
  })
  return dialog
}

const KEYS = /** @type {const} */ ([
  ['j k', 'help_move'], ['a', 'help_approve'], ['r', 'reject'], ['b', 'help_ban'], ['x', 'help_select'],
  ['X', 'help_range'], ['u', 'help_undo'], ['?', 'help_help'], ['Esc', 'help_clear'],
])

/** The name of the setting that switches letters off, as kept on this device. */
const LETTERS = 'comment-moderation-letters'

/** @param {Desk} desk */
function helpDialog(desk) {
  const { t } = desk
  const letters = h('input', { type: 'checkbox', change: () => desk.useLetters(letters.checked) })
  letters.checked = desk.letters
  const rows = KEYS.flatMap(([keys, text]) => [
    h('dt', {}, ...keys.split(' ').map((key) => h('kbd', {}, key))),
    h('dd', {}, t(text)),
  ])
  return h('dialog', { class: 'help-dialog', 'aria-labelledby': 'help-title' },
    h('form', { method: 'dialog' },
      h('h2', { id: 'help-title' }, t('help')),
      h('dl', {}, ...rows),
      h('p', { class: 'muted' }, t('help_selection')),
      h('label', { class: 'check' }, letters, t('letters')),
      h('div', { class: 'buttons' }, h('button', { class: 'outlined', autofocus: true }, t('close')))))
}

/**
 * A dialog at the side with comments in it.
 * @param {Desk} desk
 * @param {string} title
 * @param {HTMLElement | null} about
 * @param {CardList} list
 */
function drawer({ t }, title, about, list) {
  const dialog = h('dialog', { class: 'drawer', 'aria-labelledby': 'drawer-title' },
    h('div', { class: 'drawer-head' },
      h('h2', { id: 'drawer-title', dir: 'auto', tabindex: '-1', autofocus: true }, title),
      h('button', { type: 'button', class: 'outlined', click: () => dialog.close() }, t('close'))),
    about, list.element)
  return dialog
}

// Notices

/**
 * Something to do about a notice, which stays for so many milliseconds, else until the next one.
 * @typedef {{ label: string, key?: string, act: () => void, for?: number }} Offer
 */

/** Says one thing at a time, to eyes and to screen readers. */
class Notices {
  #status = h('span', { role: 'status', class: 'visually-hidden' })
  #bar = h('div', { class: 'bar', hidden: true })
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  element = h('div', {}, this.#status, this.#bar)
  /** Whether the present notice stays. */
  stays = false

  /** @param {string} text @param {Offer} [offer] */
  tell(text, offer) {
    clearTimeout(this.#timer)
    this.stays = !!offer && !offer.for
    this.#status.textContent = text
    this.#bar.replaceChildren(h('span', { dir: 'auto' }, text))
    if (offer) this.#bar.append(h('button', { type: 'button', click: offer.act }, offer.label, offer.key && key(offer.key)))
    if (offer?.for) this.#bar.append(h('span', { class: 'countdown', 'aria-hidden': 'true' }))
    this.#bar.hidden = false
    if (!this.stays) this.#timer = setTimeout(() => this.hide(), offer?.for ?? 6_000)
  }

  hide() {
    clearTimeout(this.#timer)
    this.stays = false
    this.#bar.hidden = true
  }
}

// The desk

const TABS = /** @type {const} */ (['pending', 'reported', 'rejected', 'users', 'webhooks', 'log'])

/** Milliseconds between looks into the log for what other moderators have decided. */
const WATCH = 15_000

/** Milliseconds of a pause that ends by signing in. */
const UNTIL_SIGNED_IN = 2 ** 31 - 1

/** Milliseconds for which lists may still show a comment whose decision has been stored. */
const LAG = 60_000

/** @param {EventTarget | undefined} target */
const isField = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('textarea, select, input:not([type=checkbox])'))

/** What a moderator has pasted: a token, with or without `Bearer` or the address around it. @param {string} text */
const tokenIn = (text) => /token=([^&\s]+)/.exec(text)?.[1] ?? text.trim().replace(/^Bearer\s+/i, '')

/** Signs in, shows one tab at a time, takes decisions and tells what became of them. */
class Desk {
  client = new Client()
  /** All that is shown. */
  frame = h('div', { class: 'frame' })
  /** Known bans by the id of the user. @type {Map<number, Ban>} */
  bans = new Map()
  /** Whether letters are keys. */
  letters = lettersWanted()
  language = 'en'
  t = translator(FIRST_TEXTS)
  /** @type {Record<string, string>} */
  labels = {}
  /** @type {User | null} */
  #me = null
  #outbox = new Outbox((due) => this.#deliver(due))
  /** Latest decisions by the id of the comment. @type {Map<number, { action: Action, seen: string, at: number }>} */
  #handled = new Map()
  /** Decisions of others about comments that no list shows. @type {Map<number, LogEntry>} */
  #heard = new Map()
  /** The newest entry of the log; undefined before the first look. @type {LogEntry['id'] | null | undefined} */
  #newest
  /** @type {typeof TABS[number]} */
  #tab = 'pending'
  /** @type {CardList | UsersPanel | WebhooksPanel | LogPanel | null} */
  #panel = null
  /** The list in the drawer. @type {CardList | null} */
  #side = null
  /** Open dialogs, the topmost last. @type {HTMLDialogElement[]} */
  #dialogs = []
  /** @type {HTMLDialogElement | null} */
  #expired = null
  #wrong = h('p')
  #content = h('div', { tabindex: '-1', id: 'panel', class: 'content' })
  #notices = new Notices()
  /** @type {HTMLElement} */
  #main
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #watchTimer
  /** Tells an answer that came too late from the present one. */
  #run = 0

  /** @param {HTMLElement} host @param {ShadowRoot} root */
  constructor(host, root) {
    this.host = host
    this.root = root
    this.frame.classList.toggle('no-letters', !this.letters)
    this.standalone = host.hasAttribute('standalone')
    this.#main = h(this.standalone ? 'main' : 'div', {}, this.#content, this.#notices.element)
    root.append(this.frame)
  }

  // Signing in

  /** Signs in and shows the first tab, or says why that is not possible. */
  async start() {
    const run = ++this.#run
    this.#leave()
    this.client.language = languageOf(this.host)
    this.#screen(h('p', { class: 'muted centred' }, this.t('loading')))
    try {
      const token = await this.client.token()
      const ui = await this.#askWho()
      if (run !== this.#run) return
      this.#speak(ui.labels)
      this.#me = ui.auth.user
      this.showTheme(ui.theme)
      if (!ui.auth.authenticated) this.#showSignIn(token ? this.t('bad_token') : undefined)
      else if (ui.auth.banned) this.#showRefusal('banned')
      else if (!ui.auth.moderator) this.#showRefusal('refused')
      else this.#showDesk(ui.features.read_only)
    } catch (error) {
      if (run === this.#run) this.#screen(this.problem(error, () => this.start()))
    }
  }

  /** Takes the texts of an answer. @param {Record<string, string>} labels */
  #speak(labels) {
    const texts = ownTexts(labels)
    // An older version answers so during an upgrade.
    if (!texts.language) throw new ApiError(500)
    this.labels = labels
    this.language = texts.language
    this.t = translator(texts)
    if (!this.standalone) return
    document.documentElement.lang = this.language
    document.title = this.t('title')
  }

  /** The configuration, which says who has signed in and has the texts. @returns {Promise<Ui>} */
  async #askWho() {
    const token = await this.client.token()
    const { data } = await this.client.get('ui', { for: 'moderation' })
    // Open routes ignore a token that is not valid.
    if (data.auth.authenticated || !(await this.client.renew(token))) return data
    return (await this.client.get('ui', { for: 'moderation' })).data
  }

  /** @param {Auth} auth */
  async signIn(auth) {
    // What waits goes under the name of whoever decided it.
    if (!this.#expired) this.flush()
    this.client.auth = auth
    if (!this.#expired) return this.start()
    try {
      const { authenticated, moderator, banned, user } = (await this.#askWho()).auth
      if (!authenticated) return this.#showWrong(this.t('bad_token'))
      // Somebody else begins anew.
      if (!moderator || banned || user?.id !== this.#me?.id) {
        this.#outbox.takeAll()
        return this.start()
      }
      this.#expired.close()
      this.#outbox.hurry()
    } catch (error) {
      this.#showWrong(this.explain(error))
    }
  }

  signOut() {
    this.signIn(null)
  }

  /** @param {string} [error] */
  #showSignIn(error) {
    const { t } = this
    this.#screen(h('div', { class: 'panel card-like' },
      h('h1', {}, t('title')),
      h('p', { class: 'muted' }, t('sign_in_more')),
      this.#signInForm(error)))
    this.frame.querySelector('input')?.focus()
  }

  /** A field on the page of its own. Elsewhere the host signs its moderators in. @param {string} [error] */
  #signInForm(error) {
    const { t } = this
    const wrong = (this.#wrong = h('p', { role: 'alert', class: 'error', hidden: !error }, error))
    if (!this.standalone) {
      const ask = () => this.host.dispatchEvent(new CustomEvent('comment-sign-in', { bubbles: true, composed: true, cancelable: true }))
      return h('div', { class: 'sign-in' }, wrong, h('button', { type: 'button', class: 'primary', click: ask }, t('sign_in')))
    }
    const field = h('input', { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', required: true, 'aria-describedby': 'token-hint' })
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault()
      this.signIn(tokenIn(field.value))
    }
    return h('form', { class: 'sign-in', submit },
      h('label', { class: 'field' }, t('token'), field),
      h('p', { class: 'muted small', id: 'token-hint' }, t('token_hint')),
      wrong,
      h('div', {}, h('button', { class: 'primary' }, t('sign_in'))))
  }

  /** What is wrong with the sign-in, at its form. @param {string} text */
  #showWrong(text) {
    this.#wrong.textContent = text
    this.#wrong.hidden = false
  }

  /** @param {'banned' | 'refused'} why */
  #showRefusal(why) {
    const { t } = this
    this.#screen(h('div', { class: 'panel card-like', role: 'alert' },
      h('span', { class: 'mark bad' }, icon('reject')),
      h('h1', {}, t(why)),
      h('p', { class: 'muted' }, t(`${why}_more`, { name: this.#me?.name ?? '' })),
      this.standalone && h('button', { type: 'button', class: 'outlined', click: () => this.signOut() }, t('sign_out'))))
  }

  /** Asks to sign in again. All that is shown and waits stays. */
  #askAgain() {
    if (this.#expired) return
    const { t } = this
    this.#expired = h('dialog', { 'aria-labelledby': 'expired-title' },
      h('h2', { id: 'expired-title' }, t('expired')), h('p', { class: 'muted' }, t('expired_more')), this.#signInForm())
    this.#expired.addEventListener('cancel', (event) => event.preventDefault())
    this.open(this.#expired).then(() => (this.#expired = null))
  }

  // Showing

  /** One thing in the middle of the page. @param {HTMLElement} content */
  #screen(content) {
    this.#dialogs.forEach((dialog) => dialog.close())
    this.#content.removeAttribute('role')
    this.#content.replaceChildren(content)
    this.frame.replaceChildren(this.#main)
  }

  /** Forgets what is shown. */
  #leave() {
    clearInterval(this.#watchTimer)
    this.#panel?.close()
    this.#panel = null
    this.#newest = undefined
    this.#heard.clear()
  }

  /** @param {boolean} readOnly */
  #showDesk(readOnly) {
    const { t } = this
    const tabs = TABS.map((name) =>
      h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'panel', click: () => this.#showTab(name) }, t(name)))
    const list = h('div', { role: 'tablist', 'aria-label': t('sections'), keydown: (/** @type {KeyboardEvent} */ event) => this.#moveTab(event) }, ...tabs)
    const header = h('header', { class: 'top' },
      h('h1', {}, t('title')), list,
      h('span', { class: 'me muted', dir: 'auto' }, this.#me?.name),
      this.standalone && h('button', { type: 'button', class: 'quiet', click: () => this.signOut() }, t('sign_out')),
      h('button', { type: 'button', class: 'quiet round', 'aria-label': t('help'), title: t('help'), click: () => this.showHelp() }, '?'))
    this.#content.setAttribute('role', 'tabpanel')
    this.frame.replaceChildren(header, this.#main)
    this.#main.querySelector('.banner')?.remove()
    if (readOnly) this.#main.prepend(h('p', { class: 'banner' }, icon('warning'), t('read_only')))
    this.#watchTimer = setInterval(() => document.visibilityState === 'visible' && this.#look(), WATCH)
    this.#watch().catch(() => {})
    return this.#showTab(this.#tab)
  }

  /** Arrow keys, Home and End move between tabs. @param {KeyboardEvent} event */
  #moveTab(event) {
    const at = TABS.indexOf(this.#tab)
    const forward = getComputedStyle(this.frame).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight'
    const step = { Home: -at, End: TABS.length - 1 - at, ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step == null) return
    event.preventDefault()
    const by = event.key.startsWith('Arrow') ? (event.key === forward ? 1 : -1) : step
    this.#showTab(TABS[(at + by + TABS.length) % TABS.length], false)
    this.root.getElementById(`tab-${this.#tab}`)?.focus()
  }

  /** @param {typeof TABS[number]} name @param {boolean} [enter] whether the focus goes to what the tab shows */
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
    await panel.reload()
    if (enter && this.#panel === panel && this.#mayFocus()) panel.focusFirst()
  }

  /** @param {typeof TABS[number]} name */
  #panelOf(name) {
    if (name === 'users') return new UsersPanel(this)
    if (name === 'webhooks') return new WebhooksPanel(this)
    return name === 'log' ? new LogPanel(this) : this.#queue(name)
  }

  /** Whether nothing else on the host's page has the focus. */
  #mayFocus() {
    return !this.#dialogs.length && (document.activeElement === document.body || !!this.root.activeElement)
  }

  /** @param {State} state */
  #queue(state) {
    return new CardList(this, {
      label: this.t(state),
      empty: `empty_${state}`,
      state,
      load: (cursor, size = 50) => this.#page('moderation/comments', { state, cursor, per_page: size }),
    })
  }

  /** @param {string} path @param {Record<string, string | number>} query */
  async #page(path, query) {
    const { data, meta } = await this.client.get(path, query)
    for (const { id } of data) this.#heard.delete(id)
    return { data, next: meta.next_cursor ?? null }
  }

  /** All lists that are shown. */
  get #lists() {
    return [this.#panel, this.#side].filter((panel) => panel instanceof CardList)
  }

  /** @param {string} theme of the service, where the host says nothing */
  showTheme(theme) {
    const wanted = this.host.getAttribute('theme') ?? theme
    this.frame.classList.toggle('light', wanted === 'light')
    this.frame.classList.toggle('dark', wanted === 'dark')
  }

  /** Shows a dialog. @param {HTMLDialogElement} dialog @param {() => void} [closed] */
  open(dialog, closed) {
    this.#dialogs.push(dialog)
    const shown = showDialog(this, dialog)
    dialog.append(this.#notices.element)
    return shown.then((value) => {
      this.#dialogs = this.#dialogs.filter((other) => other !== dialog)
      const below = this.#dialogs.at(-1) ?? this.#main
      below.append(this.#notices.element)
      closed?.()
      return value
    })
  }

  showHelp() {
    return this.open(helpDialog(this))
  }

  /** All that a user wrote, at the side. @param {User} user */
  async showWriter(user) {
    const { t } = this
    const list = this.#sideList((cursor) => this.#page(`users/${user.id}/comments`, { cursor }))
    const about = h('div', { class: 'about' })
    const title = user.name ? t('all_by', { name: user.name }) : t('user_number', { id: `${user.id}` })
    this.#showSide(title, about, list)
    await list.reload()
    const known = list.cards[0]?.item.user ?? user
    const heading = this.#dialogs.at(-1)?.querySelector('#drawer-title')
    if (heading && known.name) heading.textContent = t('all_by', { name: known.name })
    if (known.name) await this.#showStanding({ ...known, id: Number(user.id) }, about)
  }

  /** Whether a user is banned, with the button for it. @param {User & { id: number }} user @param {HTMLElement} about */
  async #showStanding(user, about) {
    const { t } = this
    try {
      const { data } = await this.client.get('moderation/users', { q: [...user.name].slice(0, 50).join('') })
      for (const known of data) this.learn(known)
    } catch {
      // What is known already is shown.
    }
    const again = () => this.#showStanding(user, about)
    const ban = this.bans.get(user.id)
    about.replaceChildren(avatar(user),
      h('div', { class: 'by' }, h('span', { class: 'muted' }, `#${user.id}`), ban && h('span', { class: 'ban' }, this.banText(ban))),
      ban
        ? h('button', { type: 'button', class: 'outlined', click: () => this.unban(user).then(again) }, t('unban'))
        : this.isMe(user) ? '' : h('button', { type: 'button', class: 'outlined', click: () => this.askBan(user, false).then(again) }, t('ban')))
  }

  /** One comment, at the side. @param {number} id */
  async showComment(id) {
    const list = this.#sideList(async () => ({ data: [await this.#fresh(id)], next: null }))
    this.#showSide(this.t('one'), null, list)
    await list.reload()
  }

  /** @param {(cursor: string) => Promise<Page>} load */
  #sideList(load) {
    return new CardList(this, { label: this.t('written'), empty: 'empty_written', keeps: true, load })
  }

  /** @param {string} title @param {HTMLElement | null} about @param {CardList} list */
  #showSide(title, about, list) {
    const outer = this.#side
    this.#side = list
    this.open(drawer(this, title, about, list), () => {
      list.close()
      this.#side = outer
    })
  }

  /**
   * A comment as it is now. What is said besides of comments in a queue comes from there, or else from `known`.
   * @param {number} id
   * @param {Partial<Item>} [known]
   * @returns {Promise<Item>}
   */
  async #fresh(id, known) {
    const newest = (/** @type {string} */ state) => this.client.get('moderation/comments', { state, cursor: '', per_page: 50 }).catch(() => ({ data: [] }))
    const queues = await Promise.all(['pending', 'reported'].map(newest))
    const queued = queues.flatMap(({ data }) => data).find((item) => item.id === id)
    if (queued) return queued
    const { data, ancestors, thread } = await this.client.get(`comments/${id}`)
    const rest = { held_for: null, reports: [], reports_count: 0, ...known }
    return { ...rest, ...data, thread, parent: ancestors.at(-1) ?? null }
  }

  // Keys

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isField(event.composedPath()[0])) return
    // A dialog that was closed stays until the next frame.
    const top = this.#dialogs.findLast(({ open }) => open) ?? null
    if (top && !top.classList.contains('drawer')) return
    const list = this.#lists.find(({ element }) => element.closest('dialog') === top)
    if (event.key === 'Escape') {
      if (!top && list?.clear()) event.preventDefault()
      return
    }
    if (!this.letters || !this.#panel) return
    const letter = event.shiftKey ? event.key : event.key.toLowerCase()
    if (this.#press(letter, event.repeat, list)) event.preventDefault()
  }

  /** @param {string} letter @param {boolean} repeated @param {CardList | undefined} list @returns {boolean} whether it is a key */
  #press(letter, repeated, list) {
    if (letter === 'j' || letter === 'k') list?.move(letter === 'j' ? 1 : -1)
    else if (!'arbxXu?'.includes(letter) || letter.length !== 1) return false
    else if (repeated) return true
    else if (letter === 'u') this.undo()
    else if (letter === '?') this.showHelp()
    else if (letter === 'a') list?.press('approve')
    else if (letter === 'r') list?.press('reject')
    else if (letter === 'b') list?.current?.ban()
    else if (list?.selectable && letter === 'X') list.selectRange()
    else if (list?.selectable && list.current) list.select(list.current, !list.current.selected)
    return true
  }

  /** @param {boolean} letters */
  useLetters(letters) {
    this.letters = letters
    this.frame.classList.toggle('no-letters', !letters)
    try {
      if (letters) localStorage.removeItem(LETTERS)
      else localStorage.setItem(LETTERS, 'off')
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  }

  // Deciding

  /** @param {Choice[]} choices of one list */
  decide(choices) {
    for (const { item, action } of choices) this.#handled.set(item.id, { action, seen: item.updated_at, at: Date.now() })
    this.#outbox.add(choices)
    for (const other of this.#lists) {
      if (other === choices[0].list || other.keeps) continue
      const cards = choices.map(({ item }) => other.find(item.id)).filter((card) => card != null)
      if (cards.length) other.drop(cards, false)
    }
    const [{ item, action }] = choices
    const same = choices.every((choice) => choice.action === action)
    const text = choices.length === 1 ? `done_${action}` : `many_${same ? action : 'approve'}`
    const undo = { label: this.t('undo'), key: 'u', act: () => this.undo(), for: UNDO }
    this.tell(this.t(text, { name: this.nameOf(item), n: choices.length }), undo)
  }

  /** Takes the newest decision back. */
  undo() {
    const decision = this.#outbox.undo()
    if (!decision) return this.tell(this.t('nothing_to_undo'))
    this.#bringBack(decision.choices)
    this.tell(this.t('undone'))
  }

  /**
   * Shows comments again that had been decided, where they belong. The first one takes the focus, unless there is a note.
   * @param {Choice[]} choices
   * @param {string} [note]
   */
  #bringBack(choices, note = '') {
    for (const { item } of choices) this.#handled.delete(item.id)
    for (const list of this.#lists) {
      const { state } = list
      const made = (/** @type {Choice} */ choice) => choice.list === list || (state && choice.list.state === state)
      const shown = choices.filter((choice) => made(choice) || (state ? belongs(choice.item, state) : list.find(choice.item.id)))
      if (shown.length) list.restore(shown.map(({ item }) => item), note, !note && shown.some(made))
    }
  }

  /** Whether a list may leave a comment out because it has just been decided. @param {Item} item @param {State} [state] */
  isHandled(item, state) {
    const last = this.#handled.get(item.id)
    if (!last || !state || last.seen !== item.updated_at || Date.now() - last.at > LAG) return false
    return state !== 'rejected' || last.action === 'approve'
  }

  /** @param {Decision[]} due @returns {Promise<{ again: Decision[], after: number }>} */
  async #deliver(due) {
    await this.#watch().catch(() => {})
    /** @type {Decision[]} */
    const again = []
    let after = PAUSE
    const open = due.map(({ choices, at }) => ({ choices: choices.filter((choice) => !this.#clashes(choice)), at }))
    for (const batch of batches(open)) {
      let left = batch.choices
      try {
        const { data } = await this.client.request('POST', 'moderation/comments', { body: bulkBody(batch), keepalive: true })
        left = this.#settle(batch, data.failed)
      } catch (error) {
        if (isFinal(error)) {
          this.#refused(batch, error)
          continue
        }
        after = this.#failed(error)
      }
      for (const { item } of batch.choices) this.#touch(item.id)
      if (left.length) again.push({ choices: left, at: due[0].at })
    }
    this.#tellWaiting(again)
    return { again, after }
  }

  /** The lists may show the comment for a while longer. @param {number} id */
  #touch(id) {
    const last = this.#handled.get(id)
    if (last) last.at = Date.now()
  }

  /** What became of a request. @param {Batch} batch @param {{ id: number, code: string }[]} failed @returns {Choice[]} what has to be sent again */
  #settle({ choices }, failed) {
    const codes = new Map(failed.map(({ id, code }) => [id, code]))
    for (const choice of choices) {
      const code = codes.get(choice.item.id)
      if (code === 'not_found') this.tell(this.t('deleted', { name: this.nameOf(choice.item) }))
      else if (code === 'comment_changed') this.#bringBackChanged(choice)
    }
    return choices.filter(({ item }) => codes.get(item.id) === 'unavailable')
  }

  /** @param {Choice} choice */
  async #bringBackChanged(choice) {
    const name = this.nameOf(choice.item)
    try {
      this.#bringBack([{ ...choice, item: await this.#fresh(choice.item.id, choice.item) }], this.t('changed'))
      this.tell(this.t('returned', { name }))
    } catch {
      this.tell(this.t('deleted', { name }))
    }
  }

  /** A request that would be refused again. @param {Batch} batch @param {unknown} error */
  #refused({ choices }, error) {
    const text = this.t('failed', { why: this.explain(error) })
    this.#bringBack(choices, text)
    this.tell(text)
  }

  /** A request that will be sent again. @param {unknown} error @returns {number} after so many milliseconds */
  #failed(error) {
    const status = error instanceof ApiError ? error.status : 0
    if (status === 401) this.#askAgain()
    return status === 401 ? UNTIL_SIGNED_IN : status === 429 ? 15_000 : 5_000
  }

  /** @param {Decision[]} again */
  #tellWaiting(again) {
    const n = again.reduce((sum, { choices }) => sum + choices.length, 0)
    if (n && !this.#expired) this.tell(this.t('not_sent', { n }), { label: this.t('retry'), act: () => this.#outbox.hurry() })
    else if (!n && this.#notices.stays) this.#notices.hide()
  }

  /** Sends all that waits at once, also while the page goes. */
  flush() {
    for (const batch of batches(this.#outbox.takeAll())) {
      this.client.request('POST', 'moderation/comments', { body: bulkBody(batch), keepalive: true }).catch(() => {})
    }
    this.#notices.hide()
  }

  // Other moderators

  /** What is new, in the log and in the queue. A failure is left for the next look. */
  async #look() {
    const queue = this.#panel instanceof CardList ? this.#panel : null
    await Promise.allSettled([this.#watch(), queue?.look()])
  }

  /** Reads in the log what has been decided since the last look. */
  async #watch() {
    const { data } = /** @type {{ data: LogEntry[] }} */ (await this.client.get('moderation/log', { cursor: '', per_page: 50 }))
    const last = this.#newest
    this.#newest = data[0]?.id ?? null
    if (last === undefined) return
    const known = data.findIndex(({ id }) => id === last)
    for (const entry of data.slice(0, known < 0 ? undefined : known).reverse()) this.#hear(entry)
  }

  /** @param {LogEntry} entry */
  #hear(entry) {
    const { comment_id: id, action } = entry
    if (id == null || !['approve', 'reject', 'dismiss'].includes(action)) return
    const own = entry.moderator.id === this.#me?.id
    if (own && this.#handled.has(id)) return
    const cards = this.#lists.map((list) => list.find(id)).filter((card) => card != null)
    for (const card of cards) card.update(decided(card.item, /** @type {Action} */ (action)), this.#byWhom(entry))
    if (!cards.length && !own) this.#heard.set(id, entry)
  }

  /** @param {LogEntry} entry */
  #byWhom({ moderator, action }) {
    return this.t(`${moderator.id === this.#me?.id ? 'by_you' : 'by_other'}_${action}`, { name: moderator.name })
  }

  /** Whether someone else has decided meanwhile. If they decided otherwise, the comment comes back. @param {Choice} choice */
  #clashes(choice) {
    const entry = this.#heard.get(choice.item.id)
    if (!entry) return false
    this.#heard.delete(choice.item.id)
    if (entry.action !== choice.action) {
      this.#bringBack([{ ...choice, item: decided(choice.item, /** @type {Action} */ (entry.action)) }], this.#byWhom(entry))
      this.tell(this.#byWhom(entry))
    }
    return true
  }

  // Bans

  /** Nobody bans themselves. @param {User} user */
  isMe({ id }) {
    return id != null && id === this.#me?.id
  }

  /** Keeps what a list of users says. @param {KnownUser} user */
  learn(user) {
    if (user.banned) this.bans.set(user.id, user)
    else this.bans.delete(user.id)
  }

  /** @param {User & { id: number }} user @param {boolean} rejectable */
  async askBan(user, rejectable) {
    let reject = false
    const dialog = banDialog(this, user, rejectable, async (ban, alsoReject) => {
      const { data } = await this.client.request('PUT', `users/${user.id}/ban`, { body: ban })
      this.learn({ ...user, banned: true, banned_until: data.banned_until, reason: data.reason })
      reject = alsoReject
    })
    const banned = (await this.open(dialog)) === 'banned'
    if (banned) {
      this.tell(this.t('now_banned', { name: user.name }))
      this.#renderCardsOf(user.id)
    }
    return { banned, reject }
  }

  /** @param {User & { id: number }} user */
  async unban(user) {
    try {
      await this.client.request('DELETE', `users/${user.id}/ban`)
      this.bans.delete(user.id)
      this.tell(this.t('now_unbanned', { name: user.name }))
      this.#renderCardsOf(user.id)
    } catch (error) {
      this.fail(error)
    }
  }

  /** @param {number} id of a user */
  #renderCardsOf(id) {
    for (const list of this.#lists) {
      for (const card of list.cards) if (card.item.user.id === id) card.update(card.item, card.note)
    }
  }

  /** @param {Ban} ban */
  banText({ banned_until: until, reason }) {
    const length = until ? this.t('banned_until', { time: inFull(until, this.language) }) : this.t('banned_forever')
    return [length, reason].filter(Boolean).join(' · ')
  }

  // Telling

  /** @param {Comment} comment */
  nameOf({ user }) {
    return user.name || (this.labels.guest ?? '')
  }

  /** Says something at the end of the page. @param {string} text @param {Offer} [offer] */
  tell(text, offer) {
    this.#notices.tell(text, offer)
  }

  /** Why something failed, in the language of the page. @param {unknown} error */
  explain = (error) => {
    const { t } = this
    if (!(error instanceof ApiError) || error.status === 0) return t('error_offline')
    if (error.status === 401) return t('bad_token')
    if (error.code === 'comment_banned') return t('error_banned')
    if (error.status === 404) return t('gone')
    if (error.status === 423) return t('read_only')
    if (error.status === 429) return t('error_busy')
    if (error.status >= 500) return t('error_server')
    return this.language === 'en' && error.message ? error.message : t('error_refused')
  }

  /** @param {unknown} error */
  fail(error) {
    if (error instanceof ApiError && error.status === 401) this.#askAgain()
    else this.tell(this.explain(error))
  }

  /** A failure in place of what could not be shown. @param {unknown} error @param {() => void} retry */
  problem(error, retry) {
    const { t } = this
    if (error instanceof ApiError && error.status === 401) this.#askAgain()
    return h('div', { class: 'panel', role: 'alert' },
      h('span', { class: 'mark bad' }, icon('warning')),
      h('h2', {}, t('error')),
      h('p', { class: 'muted' }, this.explain(error)),
      h('button', { type: 'button', class: 'outlined', click: retry }, t('retry')))
  }

  stop() {
    this.flush()
    this.#leave()
    this.#run++
  }
}

/** Whether a request would be refused again. @param {unknown} error */
const isFinal = (error) => error instanceof ApiError && error.status >= 400 && error.status < 500 && ![401, 429].includes(error.status)

/** Whether a queue has the comment. @param {Item} item @param {State} state */
function belongs(item, state) {
  if (state === 'reported') return item.reports_count > 0
  return standing(item) === (state === 'pending' ? 'waiting' : 'rejected')
}

function lettersWanted() {
  try {
    return localStorage.getItem(LETTERS) !== 'off'
  } catch {
    return true
  }
}

// Styles

const own = sheet(`
:host {
  --ground: light-dark(color-mix(in srgb, var(--border) 28%, var(--surface)), color-mix(in srgb, #000 45%, var(--surface)));
  --good: light-dark(#1a6b3c, #7fd6a0);
  --warn: light-dark(#8a5300, #f0c274);
  --line: color-mix(in srgb, var(--border) 70%, transparent);
  background: var(--ground);
  font-size: .9375rem;
}
.frame { display: flow-root; overflow-x: clip; min-block-size: 100%; padding: 0 0 6rem; border-radius: 0; background: var(--ground); color: var(--text) }
:host([standalone]) .frame { min-block-size: 100vh }
main { display: block }
.content { max-inline-size: 60rem; margin-inline: auto; padding: 0 1rem; outline: none }
h1, h2, p { margin: 0 }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.card:focus-visible { outline: 0 }
.visually-hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
h1 { font-size: 1.0625rem; font-weight: 650; letter-spacing: -.01em }
h2 { font-size: 1.0625rem; font-weight: 600 }
button { display: inline-flex; align-items: center; justify-content: center; gap: .375em; min-block-size: 30px; max-inline-size: 100%; white-space: nowrap; transition: background-color .12s }
.quiet { color: var(--muted) }
.quiet:hover { color: var(--text) }
.quiet.end { margin-inline-start: auto }
.news { color: var(--accent); font-weight: 600 }
.round { min-inline-size: 30px; padding: 0; border: 1px solid var(--border); border-radius: 50%; font-weight: 600 }
.link { min-block-size: 24px; padding: 0 .25em; margin-inline: -.25em; color: var(--accent); font-size: .875em }
.icon { flex: none; inline-size: 1em; block-size: 1em; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round }
kbd {
  min-inline-size: 1.5em; padding: 0 .3em; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 4px;
  font: 500 .75em/1.5 ui-monospace, monospace; text-align: center;
}
.small { font-size: .875em }
.centred { text-align: center; padding: 2rem }

.top {
  display: flex; align-items: center; gap: .25rem .75rem; padding: 0 1rem;
  padding-inline: max(1rem, calc((100% - 60rem) / 2 + 1rem));
  border-block-end: 1px solid var(--border); background: var(--surface);
}
[role=tablist] { display: flex; gap: .125rem; overflow-x: auto; scrollbar-width: none; margin-inline: .5rem auto }
[role=tab] { position: relative; flex: none; min-block-size: 48px; padding: 0 .75em; border-radius: 0; color: var(--muted); font-weight: 500 }
[role=tab]:hover { background: none; color: var(--text) }
[role=tab]:focus-visible { outline-offset: -3px; border-radius: var(--radius) }
[role=tab][aria-selected=true] { color: var(--text) }
[role=tab][aria-selected=true]::after { content: ''; position: absolute; inset: auto .5em 0; block-size: 2px; border-radius: 2px; background: var(--accent) }
.top h1 { flex: none }
.long { overflow: hidden; text-overflow: ellipsis }
.me { max-inline-size: 10em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .875em }
.banner { display: flex; gap: .5em; align-items: center; max-inline-size: 58rem; margin: 1rem auto 0; padding: .5rem 1rem; border-radius: var(--radius); background: color-mix(in srgb, var(--warn) 14%, transparent); color: var(--warn) }

.toolbar {
  position: sticky; inset-block-start: 0; z-index: 1; display: flex; align-items: center; gap: .25rem .625rem;
  min-block-size: 48px; margin-inline: -1rem; padding: .375rem calc(1rem + 17px); background: var(--ground); font-size: .875em;
}
.toolbar.selecting .muted { color: var(--text); font-weight: 600 }
input[type=checkbox], input[type=radio] { flex: none; inline-size: 18px; block-size: 18px; min-block-size: 0; margin: 3px; padding: 0 }

.cards:empty, .rows:empty { display: none }
.cards { display: grid; grid-template-columns: minmax(0, 1fr); gap: .625rem; padding-block-start: 2px }
.card {
  --indent: 31px; scroll-margin: 52px 0 96px; padding: .75rem 1rem .5rem; border: 1px solid var(--line); border-radius: calc(var(--radius) + 2px);
  background: var(--surface); box-shadow: 0 1px 2px #0000000a; outline: none; cursor: default;
}
.card.current { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
.card.current:focus-visible { box-shadow: 0 0 0 2px var(--accent), 0 4px 16px #0000001a }
.card.selected { background: color-mix(in srgb, var(--accent) 7%, var(--surface)) }
.card header, .row { display: flex; align-items: center; gap: .625rem }
.card header { align-items: flex-start }
.card header > input { margin-block-start: 9px; margin-inline-end: 0 }
.avatar { inline-size: 32px; block-size: 32px; margin-block-start: 2px }
span.avatar { background: color-mix(in srgb, var(--muted) 20%, var(--surface)); color: var(--text); font-weight: 600; font-size: .875em; text-transform: uppercase }
.by { display: flex; flex-direction: column; flex: 1; min-inline-size: 0; line-height: 1.35 }
.name { display: flex; flex-wrap: wrap; align-items: center; gap: .125rem .5em }
.name strong { font-weight: 600 }
.badge.bad { border-color: currentColor; color: var(--danger) }
.where { font-size: .875em }
.where a { color: inherit; text-decoration-color: var(--border); text-underline-offset: 2px }
.where a:hover { color: var(--accent) }
.where .icon { margin-inline-start: .25em; vertical-align: -.1em; inline-size: .85em }
.why { display: inline-flex; align-items: center; gap: .375em; flex: none; padding: .125rem .625em; border-radius: 1em; font-size: .8125em; font-weight: 500; color: var(--muted); background: color-mix(in srgb, var(--muted) 12%, transparent) }
.why.spam, .why.edit { color: var(--warn); background: color-mix(in srgb, var(--warn) 13%, transparent) }
.why.visible { color: var(--good); background: color-mix(in srgb, var(--good) 12%, transparent) }
.why.rejected { color: var(--danger); background: color-mix(in srgb, var(--danger) 10%, transparent) }

.parent { margin: .5rem 0 0; padding: .125rem 0 .125rem .75rem; border-inline-start: 3px solid var(--line); font-size: .875em }
.parent .icon { margin-inline-end: .375em; vertical-align: -.125em }
.quoted { max-block-size: 3em; overflow: hidden; color: var(--muted) }
.plain { white-space: pre-wrap }
.body { max-block-size: 13.5em; overflow: hidden; padding-block: .375rem .125rem }
.body.whole { max-block-size: none }
.body > *, .quoted > * { margin-block: 0 .5em }
.body > :last-child, .quoted > :last-child { margin-block-end: 0 }
.body img { max-inline-size: 100%; max-block-size: 12rem; border-radius: var(--radius) }
.quoted img { max-block-size: 2.5em }
.load { margin-block: .125rem; padding: .25em .75em; border: 1px dashed var(--border); color: var(--muted); text-align: start; white-space: normal }
.body h1, .body h2, .body h3, .body h4, .body h5, .body h6 { font-size: 1em; font-weight: 600 }
pre, table { max-inline-size: 100%; overflow-x: auto }
.body table { display: block; border-collapse: collapse }
td, th { padding: .25em .5em; border: 1px solid var(--border) }
pre { padding: .5em .75em; border-radius: var(--radius); background: var(--ground) }
code { font-size: .9em }
:is(.body, .quoted) :is(ul, ol) { padding-inline-start: min(40px, 10%) }
.body blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--line); color: var(--muted) }

.reports { margin-block-start: .5rem; padding: .5rem .75rem; border-radius: var(--radius); background: color-mix(in srgb, var(--danger) 7%, transparent); font-size: .875em }
.reports .count { display: flex; align-items: center; gap: .5em; color: var(--danger); font-weight: 600 }
.reports ul { margin: .25rem 0 0; padding: 0; list-style: none }
.reports li { display: flex; flex-wrap: wrap; gap: 0 .625em; padding-block: .125rem }
.reports li strong { font-weight: 600 }
.details { min-inline-size: 0 }
.reports li .muted { margin-inline-start: auto }
.note { display: flex; align-items: center; gap: .5em; margin-block-start: .5rem; padding: .375rem .75rem; border-radius: var(--radius); background: color-mix(in srgb, var(--warn) 13%, transparent); color: var(--warn); font-size: .875em; font-weight: 500 }
.note .link { margin-inline-start: auto }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .375rem }
.card > .actions { margin: .375rem -.5rem 0; font-size: .875em }
.approve { color: var(--good); font-weight: 600 }
.approve:hover { background: color-mix(in srgb, var(--good) 12%, transparent) }
.reject { color: var(--danger); font-weight: 600 }
.reject:hover { background: color-mix(in srgb, var(--danger) 12%, transparent) }
.sign { display: grid; place-items: center; min-inline-size: 1.25em }
.sign kbd { display: none; min-inline-size: 1.6em; margin-inline: -.175em }
.drawer .card { --indent: 0px }
.card > :is(.parent, .body, .reports, .note, .actions, .show-all) { margin-inline-start: calc(var(--indent) + 42px) }
.card > .actions { margin-inline-start: calc(var(--indent) + 34px) }
.card > .show-all { margin-inline-start: calc(var(--indent) + 42px - .25em) }
.body:has(+ .show-all:not([hidden])) { mask-image: linear-gradient(#000 calc(100% - 3rem), #0000) }

.panel { display: grid; justify-items: center; gap: .75rem; max-inline-size: 26rem; margin: 12vh auto 0; padding: 1rem; text-align: center; outline: none }
.panel.card-like { padding: 2rem 1.5rem; border: 1px solid var(--line); border-radius: calc(var(--radius) + 6px); background: var(--surface); box-shadow: 0 8px 32px #0000000f }
.panel h1 { font-size: 1.375rem }
.mark { display: grid; place-items: center; inline-size: 56px; block-size: 56px; border-radius: 50%; color: var(--good); background: color-mix(in srgb, var(--good) 12%, transparent); font-size: 1.5rem }
.mark.bad { color: var(--danger); background: color-mix(in srgb, var(--danger) 10%, transparent) }
.field { display: grid; gap: .25rem; text-align: start; font-weight: 500 }
.field input { inline-size: 100%; font-weight: 400 }
.sign-in { display: grid; gap: .75rem; inline-size: 100%; margin-block-start: .25rem; text-align: start }
.after { display: grid; justify-items: center; padding-block: .5rem }

.users { padding-block-start: 1rem }
.search input { inline-size: 100%; background: var(--surface) }
.users h2 { margin: 1.25rem 0 .5rem; font-size: .875em; color: var(--muted) }
.rows { margin: 0; padding: 0; border: 1px solid var(--line); list-style: none; border-radius: calc(var(--radius) + 2px); background: var(--surface) }
.row { flex-wrap: wrap; padding: .5rem .75rem .5rem 1rem; min-block-size: 48px }
.row + .row { border-block-start: 1px solid var(--line) }
.row .avatar { margin: 0 }
.row .actions { font-size: .875em }
.row .muted { font-size: .875em }
.ban { color: var(--danger); font-size: .875em }
.log .row { display: grid; grid-template-columns: 8em minmax(0, 2fr) minmax(0, 1.5fr) minmax(15em, auto); padding-block: .25rem; min-block-size: 42px }
.log strong { font-weight: 600 }
.log .actions { flex-wrap: nowrap; justify-content: flex-end }
.webhooks .by strong { font-weight: 500 }
.webhooks .actions { flex-wrap: wrap }
.webhook-dialog { inline-size: min(34rem, calc(100% - 2rem)) }
.thread { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.deed.approve, .deed.reject { font-weight: 500 }
.deed.approve:hover, .deed.reject:hover { background: none }
.deed.ban { font-size: inherit }

.bar {
  position: fixed; inset-inline: 0; inset-block-end: 1.25rem; z-index: 3; display: flex; align-items: center; gap: 1rem; inline-size: fit-content;
  max-inline-size: calc(100% - 2rem); margin-inline: auto; padding: .5rem .625rem .5rem 1.125rem; overflow: hidden; border-radius: calc(var(--radius) + 2px);
  background: light-dark(#22272d, #e8eaed); color: light-dark(#fff, #17191c); box-shadow: 0 6px 28px #00000040; font-size: .9375em;
}
.bar > span:only-child { padding-inline-end: .5rem }
.bar button { flex: none; color: light-dark(#a8c7fa, #0b57d0); font-weight: 600 }
.bar button:hover { background: light-dark(#ffffff1f, #0000000f) }
.bar :focus-visible { outline-color: currentColor }
.countdown { position: absolute; inset: auto 0 0; block-size: 3px; background: light-dark(#a8c7fa, #0b57d0); transform-origin: left; animation: countdown ${UNDO}ms linear forwards }
@keyframes countdown { to { transform: scaleX(0) } }

dialog { inset: 0; margin: auto; padding: 1.5rem; border-radius: calc(var(--radius) + 4px) }
dialog h2 { margin-block-end: .5rem; outline: none }
dialog form { display: grid; gap: .75rem }
fieldset { display: flex; flex-wrap: wrap; gap: .375rem; margin: 0; padding: 0; border: 0; min-inline-size: 0 }
fieldset legend { margin-block-end: .375rem; padding: 0; font-weight: 500 }
fieldset label { display: inline-flex; align-items: center; gap: .375rem; max-inline-size: 100%; min-block-size: 40px; padding: 0 .75rem 0 .5rem; border: 1px solid var(--border); border-radius: var(--radius); white-space: nowrap; cursor: pointer }
fieldset label:has(:checked) { border-color: var(--accent); background: var(--tint) }
fieldset input[type=date] { min-inline-size: 0; min-block-size: 30px; padding: 0 .25em; border: 0; background: none }
.check { display: flex; align-items: center; gap: .375rem }
.buttons { display: flex; justify-content: flex-end; gap: .5rem; margin-block-start: .5rem }
button.danger, button.danger:hover { background: var(--danger) }
dialog label.field input { border: 1px solid var(--border) }
dl { display: grid; grid-template-columns: auto 1fr; gap: .375rem 1rem; margin: 0 }
dl kbd { padding: .125rem .5em; font-size: .8125em }
dl kbd + kbd { margin-inline-start: .25rem }
dd { margin: 0 }
.drawer { inline-size: min(40rem, 100%); max-inline-size: none; block-size: 100%; max-block-size: none; margin: 0 0 0 auto; margin-inline: auto 0; padding: 0 1.25rem 6rem; border-width: 0; border-inline-start-width: 1px; border-radius: 0; background: var(--ground); overflow-y: auto }
.drawer-head { position: sticky; inset-block-start: 0; z-index: 1; display: flex; align-items: center; gap: 1rem; margin-inline: -1.25rem; padding: .75rem 1.25rem; background: var(--ground) }
.drawer-head h2 { flex: 1; margin: 0 }
.about { display: flex; flex-wrap: wrap; align-items: center; gap: .75rem; padding-block-end: .75rem }
.about:empty { display: none }
.drawer .card { scroll-margin: 64px 0 96px }

@media (pointer: fine) {
  .frame:not(.no-letters) :is(.current, .toolbar) .sign .icon { display: none }
  .frame:not(.no-letters) :is(.current, .toolbar) .sign kbd { display: block }
}
.no-letters .bar kbd { display: none }
@media (max-width: 46rem) {
  .top { flex-wrap: wrap; padding-block-start: .5rem }
  .top h1 { flex: 1 }
  [role=tablist] { order: 1; inline-size: calc(100% + 2rem); margin: 0 -1rem; padding-inline: .375rem }
  [role=tab] { min-block-size: 42px; padding: 0 .625em }
  .content { padding: 0 .625rem }
  .toolbar { margin-inline: -.625rem; padding-inline: calc(.625rem + 13px) }
  .card { --indent: -42px; padding: .625rem .75rem .375rem }
  .drawer .card { --indent: -42px }
  .card header { flex-wrap: wrap }
  .why { order: 1 }
  .card .by, .row .by { flex-basis: 60% }
  .card > .actions { gap: 0 }
  .card > .actions button { padding: 0 .375em }
  .card .long { position: absolute; clip-path: inset(50%) }
  .card .quiet:has(.long) { position: relative; overflow: hidden; inline-size: 30px }
  .toolbar { white-space: nowrap }
  .toolbar .sign { display: none }
  .user .actions { margin-inline-start: calc(32px + .125rem) }
  .log .row { grid-template-columns: 1fr auto }
  .log .did { order: -1 }
  .log time { text-align: end }
  .log .actions { justify-content: flex-end }
  .log .actions { grid-column: 2 }
}
@media (max-width: 26rem) {
  .me { display: none }
  .drawer { padding-inline: .75rem }
  .drawer-head { margin-inline: -.75rem; padding-inline: .75rem }
}
@media (prefers-reduced-motion: no-preference) {
  .bar { animation: rise .16s ease-out }
  @keyframes rise { from { opacity: 0; translate: 0 8px } }
  dialog.drawer { animation: slide .18s ease-out }
  @keyframes slide { from { opacity: 0; translate: 24px 0 } }
}
@media (prefers-reduced-motion: reduce) { .countdown { animation: none } }
`)

/** The page around a standalone element. */
const page = sheet('body { margin: 0 } html { color-scheme: light dark; font-family: system-ui, sans-serif }')

// The element

/** A token in the page's address, which is taken out of it at once. */
function tokenOfAddress() {
  const address = new URL(location.href)
  const token = /^#token=(.+)$/.exec(address.hash)?.[1] ?? null
  address.hash = ''
  if (token) history.replaceState(history.state, '', address)
  return token
}

export class CommentModeration extends HTMLElement {
  static observedAttributes = ['lang', 'theme']
  #root = this.attachShadow({ mode: 'open' })
  /** @type {Desk | null} */
  #desk = null
  /** @type {Auth} */
  #auth = null
  #key = (/** @type {KeyboardEvent} */ event) => this.#desk?.key(event)
  #leave = () => this.#desk?.flush()
  #hash = () => {
    const token = tokenOfAddress()
    if (token) this.auth = token
  }

  constructor() {
    super()
    this.#root.adoptedStyleSheets = [styles, own]
    // What the host has set before this module was loaded.
    const early = Object.getOwnPropertyDescriptor(this, 'auth')
    if (early) {
      Reflect.deleteProperty(this, 'auth')
      this.#auth = early.value
    }
  }

  /** A token, or a function that answers one. Setting it again signs in anew. @returns {Auth} */
  get auth() {
    return this.#auth
  }
  set auth(auth) {
    this.#auth = auth
    this.#desk?.signIn(auth)
  }

  connectedCallback() {
    const standalone = this.hasAttribute('standalone')
    if (standalone) {
      document.adoptedStyleSheets.push(page)
      document.documentElement.lang = navigator.language
      this.#auth ??= tokenOfAddress()
      addEventListener('hashchange', this.#hash)
    }
    const keys = standalone ? document : this
    keys.addEventListener('keydown', /** @type {EventListener} */ (this.#key))
    addEventListener('pagehide', this.#leave)
    this.#desk = new Desk(this, this.#root)
    this.#desk.signIn(this.#auth)
  }

  disconnectedCallback() {
    this.#desk?.stop()
    this.#desk = null
    this.#root.replaceChildren()
    removeEventListener('pagehide', this.#leave)
    removeEventListener('hashchange', this.#hash)
    document.removeEventListener('keydown', this.#key)
    this.removeEventListener('keydown', this.#key)
  }

  /** @param {string} name */
  attributeChangedCallback(name) {
    if (name === 'lang') this.#desk?.start()
    else this.#desk?.showTheme('auto')
  }
}

customElements.define('comment-moderation', CommentModeration)
