/**
 * One thread: loads it, shows it, and stores its comments.
 * @import { Purpose, RequestOptions, Ui } from '../types.d.ts'
 * @import { Writer } from './later.js'
 */

import { API } from '../kit/address.js'
import { ApiError, Client } from '../kit/api.js'
import { newKey } from '../kit/base64url.js'
import { device } from '../kit/device.js'
import { busily, button, h } from '../kit/dom.js'
import { takeReturned } from '../kit/returned.js'
import { FIRST_WORDS, formOf, languageOf } from '../kit/words.js'
import { CommentView } from './comment.js'
import { composer, hasDraft } from './composer.js'
import { Fresh } from './fresh.js'
import { showGround } from './ground.js'
import { SORTS, headOf } from './head.js'
import { writer } from './later.js'
import { link } from './linked.js'
import { footOf, pathOf, readFirst, readPage } from './list.js'
import { obstacle } from './obstacle.js'
import { explanation, failure, mistake, notice, skeleton } from './states.js'
import { readerStyles } from './style.js'
import { Toast } from './toast.js'

/** The sign-in result from a provider's redirect, if any. The writer module uses it in the thread that the visitor left. */
export const returned = takeReturned()

export class Thread {
  api = new Client()
  views = new Map()
  /** The names of the drafts that were typed since the page was loaded. @type {Set<string>} */
  typed = new Set()
  ui = /** @type {Ui} */ (/** @type {any} */ (null))
  language = ''
  /** Null before the first load. Empty while the element changes to another thread. @type {string | null} */
  path = null
  sort = ''
  closed = false
  /** The user whose session has ended; an empty object if unknown. @type {{ id?: number | null } | null} */
  ended = null
  toast = new Toast()
  section = h('section')
  list = h('div', { class: 'list', tabindex: -1 })
  notice = h('div')
  empty = h('p', { class: 'muted' })
  fresh = new Fresh(this)
  foot = h('div', { class: 'foot' })
  total = h('span', { class: 'muted', part: 'count' })
  /** The number of comments in the heading, if known. @type {number | undefined} */
  count
  /** Counts a comment as shown, for the button below the list. @type {any} */
  showMore
  #work = new AbortController()
  /** The last query for a page. */
  #turn

  constructor(host, root) {
    this.host = host
    this.root = root
    root.append(this.section, this.toast.element)
    root.adoptedStyleSheets = readerStyles()
    this.#showSkeleton()
  }

  /** Returns a label. A number selects its plural form. @param {string} key @param {number} [n] */
  say = (key, n) => {
    const text = this.host.labels?.[key] ?? this.ui?.labels[key] ?? FIRST_WORDS[key] ?? key
    return n == null ? text : formOf(text, this.language, n).replace('{n}', `${n}`)
  }

  /** Whether an error means that the visitor's token was refused. */
  isOver = ({ code }) => code === 'unauthenticated' && this.ui.auth.authenticated

  explain = (error) => explanation(this.say, error)

  emit = (name, detail) => this.host.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }))

  /** Starts the sign-in, unless the host page handles the event. @param {string} [label] @param {CommentView} [view] */
  signIn = (label = 'sign_in_to_comment', view) =>
    this.emit('comment-sign-in') && this.later('leadToSignIn', this, label, view)

  /** Creates the key with which this device can change a guest's comments, or reuses the key of another thread or tab. */
  keepGuestKey() {
    const { api, ui } = this
    if (ui.auth.authenticated) return
    api.guestKey = device.get(`${API} key`) || api.guestKey || newKey()
    device.set(`${API} key`, api.guestKey)
  }

  /** Sends a write request. Fails if a member's token was refused, so that nothing is posted as a guest. */
  async write(method, path, options) {
    const { authenticated } = this.ui.auth
    if (authenticated && !(await this.api.token(true))) throw new ApiError(401, { code: 'unauthenticated' })
    const answer = await this.api.request(method, path, options)
    if (!authenticated) device.set(`${API} mine`, (this.api.mine = true))
    return answer
  }

  /** Runs `act`. If it fails, shows why, unless it was aborted. @param {() => any} act @param {() => void} [undo] */
  async attempt(act, undo) {
    this.toast.announce('')
    try {
      await act()
    } catch (error) {
      undo?.()
      if (error.name !== 'AbortError') await this.fail(error, (sentence) => this.toast.show(sentence, true))
    }
  }

  /** Shows why something failed. A refused token ends the session instead, and drafts are kept. @param {(sentence: string) => void} tell */
  async fail(error, tell) {
    if (!this.isOver(error)) return tell(this.explain(error))
    this.ended = this.ui.auth.user ?? {}
    return this.load()
  }

  /** Calls a function of the writer module. @param {keyof Writer} name @param {...any} values */
  later = (name, ...values) => this.attempt(async () => /** @type {any} */ (await writer())[name](...values))

  stop = () => this.#work.abort()
  #clear = () => this.notice.querySelector('.notice')?.remove()
  /** @param {Purpose} purpose */
  composer = (purpose) => composer(this, purpose)

  async become(auth) {
    const before = this.path && this.api.token()
    this.api.auth = auth
    this.ended = null
    if (before && (await before) !== (await this.api.token())) this.load()
  }

  async load() {
    const { host, api, section } = this
    this.stop()
    const { signal } = (this.#work = new AbortController())
    const ids = ['type', 'record'].map((name) => host.getAttribute(name))
    if (!ids.every(Boolean)) return section.replaceChildren(mistake('set type and record'), ...section.querySelectorAll('slot'))
    if (!this.path) this.#showSkeleton()
    this.path = pathOf(...ids)
    this.sort = SORTS.find((sort) => sort === host.getAttribute('sort')) ?? this.sort
    this.language = api.language = languageOf(host)
    api.mine = !!device.get(`${API} mine`)
    api.guestKey = device.get(`${API} key`)
    await this.#wait(section, () => this.load(), async () => {
      const page = await readFirst(this, signal)
      if (signal.aborted) return
      this.ui = page.ui
      await this.#show(page)
      this.emit('comment-ready')
      await this.revealAddressed()
      if (returned) this.later('arrive', this, returned)
      this.fresh.watch(signal)
    })
  }

  async #wait(place, again, act) {
    const { signal } = this.#work
    try {
      await busily(place, act)
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(failure(this, error, again, signal), ...place.querySelectorAll('slot'))
    }
  }

  #show(page) {
    const { say, ui, section, root: { activeElement } } = this
    // Landmark regions of a page need different names.
    section.ariaLabel = say('comments') + (document.querySelectorAll('comment-thread')[1] ? ` ${this.path}` : '')
    this.showTheme()
    section.replaceChildren(
      headOf(this),
      ...this.#writing(page),
      this.fresh.element,
      this.notice,
      this.list,
      this.empty,
      this.foot,
    )
    // An element that was moved into the new content has lost the focus.
    activeElement?.focus({ preventScroll: true })
    this.empty.replaceChildren(say('no_comments'), ...(section.querySelector('form') ? [h('br'), say('be_first')] : []))
    this.showTotal(page.meta.count)
    this.fresh.welcome(page.data)
    return this.#restart(page)
  }

  /** Creates the composer, with the notice above it or in its place. */
  #writing({ meta }) {
    this.closed = meta.closed && !this.ui.auth.moderator
    const notice = obstacle(this)
    const isOffered = !notice || (this.ended && (this.ui.auth.can_comment || hasDraft(this, 'new')))
    const form = isOffered && this.composer({ draft: 'new', placeholder: this.say('write_comment'), action: this.say('send') })
    return [notice || '', form ? form.element : '']
  }

  prepend = (comment) => {
    const view = new CommentView(this, comment)
    const pinned = this.list.querySelector('[part~=pinned]')
    if (pinned) pinned.after(view.element)
    else this.list.prepend(view.element)
    this.showMore(view)
    return view
  }

  #restart(page) {
    const open = [...this.views.values()].filter(({ slot }) => slot.firstChild)
    this.views.clear()
    this.list.replaceChildren()
    this.#append(page)
    return open.length && this.later('reopen', open)
  }

  #append({ data, meta }) {
    const { list, views } = this
    const added = data.map((comment) => views.get(comment.id) ?? new CommentView(this, comment)).filter(({ element }) => element.parentNode !== list)
    list.append(...added.map(({ element }) => element), ...list.querySelectorAll('.list:not(.linked)'))
    this.fresh.remember()
    this.foot.replaceChildren(...footOf(this, meta, (query) => this.#page(query, (page) => this.#append(page)[0]?.focus())))
    return added
  }

  showTotal(count) {
    this.count = count
    this.total.textContent = `${count ?? ''}`
  }

  #page(query, show) {
    this.#turn = query
    const isLast = () => query === this.#turn
    this.#wait(this.foot, () => this.#page(query, show), async () => {
      const page = await readPage(this, query, this.#work.signal).catch((error) => isLast() && Promise.reject(error))
      if (isLast()) show(page)
    })
  }

  sortBy(sort) {
    this.sort = sort
    this.#page({ cursor: '' }, (page) => this.#restart(page))
  }

  /** Leaves this thread for another one. */
  leave() {
    this.path = ''
    this.fresh.newest = null
    this.#showSkeleton()
  }

  /** Shows a skeleton or, before the first list, the content that the host put into the element. */
  #showSkeleton() {
    const isFilled = this.path == null && this.host.textContent.trim()
    this.section.replaceChildren(...(isFilled ? [h('slot')] : skeleton()))
  }

  showTheme() {
    this.section.className = this.toast.theme = this.host.getAttribute('theme') ?? this.ui?.theme ?? ''
    showGround(this.root)
  }

  revealAddressed() {
    const id = location.hash.match(/^#comment-(\d+)$/)
    if (!id || !this.ui) return
    this.#clear()
    return this.reveal(+id[1])
  }

  /** Shows a comment, or a notice that it doesn't exist. */
  reveal(id) {
    return this.attempt(async () => {
      const view = await this.fetch(id, (comment) => link(this, comment))
      if (view) this.focusOn(view)
      else this.notice.append(notice(h('span', { role: 'status' }, this.say('not_here')), button('×', { 'aria-label': this.say('close'), click: this.#clear })))
    })
  }

  focusOn(view) {
    view.parent?.expand()
    this.fresh.remember()
    this.section.querySelector('.target')?.classList.remove('target')
    view.element.classList.add('target')
    view.content.firstElementChild?.scrollIntoView({ block: 'nearest' })
    view.focus()
  }

  /** Shows a comment with its ancestors. Returns its view, if it's in this thread. `add` adds a top-level comment. */
  async fetch(id, add = this.prepend) {
    if (this.views.has(id)) return this.views.get(id)
    const { data, ancestors, ['thread']: { type, id: record } = {} } = await this.api.get(`comments/${id}`, {}, this.#work.signal).catch((error) => (error.status === 404 ? {} : Promise.reject(error)))
    if (pathOf(type, record) !== this.path) return
    /** @type {CommentView | undefined} */
    let view
    for (const comment of [...ancestors, data]) {
      const known = this.views.get(comment.id)
      if (known) known.comment.replies_count = comment.replies_count
      view = known ?? view?.addReply(comment) ?? add(comment)
    }
    return view
  }
}
