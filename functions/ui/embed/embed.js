/**
 * `<comment-thread>` and `<comment-count>`. Browsers load this file as it is.
 * @import { Auth, Build, Comment, Purpose, RequestOptions, Ui } from './types.d.ts'
 */

// The API

export const API = new URL('.', import.meta.url).href

export class ApiError extends Error {
  constructor(status = 0, { message = '', code = 'server_error', errors = /** @type {Record<string, string[]>} */ ({}) } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.errors = errors
  }
}

export class Client {
  /** @type {Auth} */
  #auth = null
  /** @type {Promise<string | null> | undefined} */
  #token
  mine = false
  language = ''

  get auth() {
    return this.#auth
  }
  set auth(auth) {
    this.#auth = auth
    this.#token = undefined
  }

  token() {
    const auth = this.#auth
    this.#token ??= (async () => (typeof auth === 'function' ? auth() : auth))().then((token) => token || null, () => null)
    return this.#token
  }

  async renew(refused) {
    const asked = this.#token
    if ((await asked) === refused && this.#token === asked && typeof this.#auth === 'function') this.#token = undefined
    const isNew = (await this.token()) !== refused
    if (!isNew) this.#token = Promise.resolve(null)
    return isNew
  }

  /** @param {RequestOptions} options */
  async request(method, path, options = {}, isLast = false) {
    const { query = {}, body, key, signal, keepalive, anonymous } = options
    const token = anonymous ? null : await this.token()
    const url = new URL(path, API)
    for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, `${value}`)
    if (this.mine && !token && !anonymous && method === 'GET') url.searchParams.set('mine', '1')
    const headers = new Headers(this.language ? { 'Accept-Language': this.language } : {})
    if (token) headers.set('Authorization', `Bearer ${token}`)
    if (key) headers.set('Idempotency-Key', key)
    const isForm = body instanceof FormData
    if (body && !isForm) headers.set('Content-Type', 'application/json')
    const signals = [AbortSignal.timeout(isForm ? 600_000 : 30_000), ...(signal ? [signal] : [])]
    let response, json
    try {
      response = await fetch(url, {
        method,
        headers,
        body: isForm ? body : JSON.stringify(body),
        signal: AbortSignal.any(signals),
        keepalive,
        credentials: 'omit',
        redirect: token ? 'error' : 'follow',
      })
      json = await response.text()
    } catch (error) {
      throw signal?.aborted ? error : new ApiError(0, { code: 'offline' })
    }
    const { ok, status } = response
    if (status === 401 && !isLast && (await this.renew(token)) && (method === 'GET' || (await this.token()))) {
      return this.request(method, path, options, true)
    }
    try {
      json = json ? JSON.parse(json) : null
    } catch {
      throw new ApiError(status)
    }
    if (ok) return json
    throw new ApiError(status, json ?? {})
  }

  /** @param {RequestOptions['query']} [query] @param {AbortSignal} [signal] */
  get(path, query, signal) {
    return this.request('GET', path, { query, signal })
  }
}

export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-')

// Comments' HTML

const ALLOWED = { __proto__: null, a: ['href', 'rel', 'title'], img: ['src', 'alt', 'title'], ol: ['start'], code: ['class'] }
for (const name of 'p br hr em strong del h1 h2 h3 h4 h5 h6 blockquote ul li pre table thead tbody tr th td'.split(' ')) {
  ALLOWED[name] = []
}

export function showHtml(target, html, text) {
  const tree = parse(html)
  target.classList.toggle('plain', !tree)
  if (tree) target.replaceChildren(...tree.childNodes)
  else target.textContent = text
}

function parse(html) {
  /** @type {any} */
  let body = document.implementation.createHTMLDocument().body
  if (body.setHTML) {
    const elements = Object.entries(ALLOWED).map(([name, attributes]) => ({ name, attributes }))
    body.setHTML(html, { sanitizer: { elements, attributes: [] } })
  } else {
    const trusted = trust(`<!doctype html><body>${html}`)
    if (trusted == null) return null
    body = new DOMParser().parseFromString(trusted, 'text/html').body
    prune(body)
  }
  body.querySelectorAll('*').forEach(tidy)
  return body
}

/** @type {any} */
let policy

function trust(html) {
  const { trustedTypes } = /** @type {any} */ (globalThis)
  if (!trustedTypes) return html
  try {
    if (policy === undefined) policy = trustedTypes.createPolicy('comment-thread', { createHTML: (html) => html })
  } catch {
    policy = null
  }
  return policy && policy.createHTML(html)
}

function prune(parent) {
  for (const node of [...parent.childNodes]) {
    if (node instanceof Text) continue
    const attributes = ALLOWED[node.nodeName.toLowerCase()]
    if (node instanceof HTMLElement && attributes) {
      for (const name of node.getAttributeNames()) if (!attributes.includes(name)) node.removeAttribute(name)
      prune(node)
    } else node.remove()
  }
}

function tidy(element) {
  const keep = (name, pattern, of = (value) => value) => {
    if (!pattern.test(of(element.getAttribute(name)))) element.removeAttribute(name)
  }
  keep('class', /^language-\S+$/)
  keep('href', /^(https?|mailto):$/, schemeOf)
  keep('src', /^https?:$/, schemeOf)
  if (element.matches('pre, table')) element.tabIndex = 0
  if (element.matches('img')) Object.assign(element, { loading: 'lazy', referrerPolicy: 'no-referrer' })
}

const schemeOf = (address) => (URL.canParse(address, document.baseURI) ? new URL(address, document.baseURI).protocol : '')

// Elements

/** @type {Build} */
export const h = (name, attributes = {}, ...children) => {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value)
    else if (value != null && value !== false) element.setAttribute(key, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child != null && child !== false))
  return element
}

export const button = (content, attributes) => h('button', { type: 'button', part: 'button', ...attributes }, content)

const primary = (label) => h('button', { class: 'primary', part: 'button' }, label)

const ICONS = {
  bold: 'M5 3v10h4a2 2 0 0 0 0-5H5h3a2 2 0 0 0 0-5z',
  italic: 'M6 3h6M4 13h6M9 3 7 13',
  code: 'M5 4 1 8l4 4M11 4l4 4-4 4',
  link: 'M6 10l4-4M7 5l1-1a3 3 0 0 1 4 4l-1 1M5 7 4 8a3 3 0 0 0 4 4l1-1',
  quote: 'M3 3v10M6 5h8M6 8h8M6 11h5',
  list: 'M6 4h8M6 8h8M6 12h8M2 4h0M2 8h0M2 12h0',
  emoji: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M6 6h0M10 6h0M5 9a4 4 0 0 0 6 0',
  upload_image: 'M2 3h12v10H2zM2 11l4-4 6 6M10 6h0',
  heart: 'M8 14 3 9a3 3 0 0 1 5-5 3 3 0 0 1 5 5z',
}

function icon(name) {
  const [svg, path] = ['svg', 'path'].map((name) => document.createElementNS('http://www.w3.org/2000/svg', name))
  svg.setAttribute('viewBox', '0 0 16 16')
  path.setAttribute('d', ICONS[name])
  svg.append(path)
  return svg
}

export function avatar({ name, avatar }) {
  const letter = h('span', { class: 'avatar', 'aria-hidden': 'true' }, [...name][0])
  if (!avatar) return letter
  const error = () => picture.replaceWith(letter)
  const picture = h('img', { class: 'avatar', src: avatar, alt: '', loading: 'lazy', referrerpolicy: 'no-referrer', error })
  return picture
}

// Languages and dates

export function languageOf(element) {
  try {
    return `${new Intl.Locale(element.closest('[lang]').lang)}`
  } catch {
    return navigator.language
  }
}

const UNITS = { year: 31_557_600, month: 2_629_800, week: 604_800, day: 86_400, hour: 3_600, minute: 60 }

export function ago(time, language) {
  const seconds = (Date.now() - Date.parse(time)) / 1000
  const [unit, size] = Object.entries(UNITS).find(([, size]) => seconds >= size) ?? ['second', Infinity]
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  return format.format(-Math.floor(seconds / size), /** @type {any} */ (unit))
}

export const inFull = (time, language) => new Date(time).toLocaleString(language, { dateStyle: 'long', timeStyle: 'short' })

async function busily(element, act) {
  element.ariaBusy = 'true'
  try {
    await act()
  } finally {
    element.ariaBusy = 'false'
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

const device = {
  get(key) {
    try {
      return localStorage[`comment-thread ${key}`]
    } catch {}
  },
  set(key, value) {
    try {
      localStorage[`comment-thread ${key}`] = value
    } catch {}
  },
}

// The editor

const EMOJI = '😀 😂 😉 😍 🤔 😮 😢 👍 👎 👏 🎉 ❤️'.split(' ')

const MARKS = {
  bold: { before: '**', after: '**', key: 'b' },
  italic: { before: '_', after: '_', key: 'i' },
  code: { before: '`', after: '`', key: 'e' },
  link: { before: '[', after: '](https://)', key: 'k' },
  quote: { line: '> ' },
  list: { line: '- ' },
}

const typed = {}

const handleOf = (name) => name.replace(/_?[^A-Za-z0-9_]+/g, '_').toLowerCase()

function editor({ api, ui, say, path, explain }, /** @type {Purpose} */ { draft, value = '', placeholder, action, send, cancel }) {
  const { features, guest, limits } = ui
  const isGuest = !ui.auth.authenticated
  let busy = 0
  let last = { content: '', key: '' }
  let search = new AbortController()
  const left = `${API} ${path} ${draft} guest`
  const kept = isGuest ? left : `${API} ${path} ${draft} ${ui.auth.user?.id}`
  const named = (label) => ({ 'aria-label': label, placeholder: label })

  const text = h('textarea', {
    ...named(placeholder),
    required: true,
    dir: 'auto',
    'aria-autocomplete': 'list',
    'aria-controls': `people-${draft}`,
    input: changed,
    keydown,
    paste: (event) => take(event, event.clipboardData),
    drop: (event) => take(event, event.dataTransfer),
  })
  if (!isGuest && typed[left]) {
    keep(typed[left])
    device.set(left, (typed[left] = ''))
  }
  text.value = device.get(kept) || value
  const people = h('div', { id: `people-${draft}`, class: 'people', role: 'listbox', 'aria-label': say('mention'), hidden: true })
  const shown = h('div', { class: 'body preview', tabindex: 0, hidden: true })
  const problem = h('p', { class: 'error', role: 'alert' })
  const name = h('input', { ...named(say('guest_name')), autocomplete: 'name', required: true, value: device.get('name') })
  const email = h('input', { ...named(say('guest_email')), type: 'email', autocomplete: 'email', required: guest.require_email })
  const subscribe = h('input', { type: 'checkbox', change: () => (email.required = guest.require_email || subscribe.checked) })
  const file = h('input', { type: 'file', accept: 'image/*', change: (event) => take(event, file) })
  const emoji = h('div', { hidden: true }, ...EMOJI.map((emoji) => button(emoji, { click: () => insert(emoji) })))
  const tool = (name, click) => button(icon(name), { 'aria-label': say(name), title: say(name), click })
  const toggle = button(say('preview'), { 'aria-pressed': 'false', click: () => fallible(preview) })
  const toolbar = h(
    'div',
    { class: 'toolbar' },
    ...Object.keys(features.markdown_toolbar ? MARKS : {}).map((name) => tool(name, () => mark(MARKS[name]))),
    features.emoji_picker && tool('emoji', () => (emoji.hidden = !emoji.hidden)),
    features.media && tool('upload_image', () => file.click()),
    features.markdown_preview && toggle,
  )
  const element = h(
    'form',
    { class: 'editor', part: 'editor', submit },
    text,
    people,
    shown,
    emoji,
    isGuest && h('div', { class: 'guest' }, name, (guest.require_email || guest.show_gravatar || features.subscriptions) && email),
    features.subscriptions && !value && h('label', { class: 'muted' }, subscribe, say('subscribe')),
    problem,
    h('div', { class: 'bar' }, toolbar, cancel && button(say('cancel'), { class: 'outlined', click: cancel }), primary(action)),
  )

  async function fallible(act) {
    problem.textContent = ''
    busy++
    await busily(element, act).catch((error) => (problem.textContent = explain(error)))
    busy--
  }

  function submit(event) {
    event.preventDefault()
    if (busy) return
    device.set('name', name.value)
    const body = text.value
    const fields = { body, subscribe_to_replies: subscribe.checked || undefined }
    if (isGuest) Object.assign(fields, { guest_name: name.value, guest_email: email.value || undefined })
    const content = JSON.stringify(fields)
    if (content !== last.content) last = { content, key: newKey() }
    fallible(async () => {
      await send(fields, last.key)
      last.content = ''
      if (text.value === body) text.value = ''
      if (!shown.hidden) preview()
      keep(text.value)
    })
  }

  async function preview() {
    const isOn = shown.hidden
    const body = text.value
    if (isOn) showHtml(shown, (await api.request('POST', 'markdown/preview', { body: { body } })).data.html, body)
    toggle.ariaPressed = `${isOn}`
    shown.hidden = !isOn
    text.hidden = isOn
  }

  function keep(body) {
    device.set(kept, body)
    typed[kept] = body
  }

  function changed() {
    problem.textContent = ''
    keep(text.value === value ? '' : text.value)
    suggest()
  }

  function insert(string, start = text.selectionStart, end = text.selectionEnd) {
    text.setRangeText(string, start, end, 'end')
    text.focus()
    changed()
  }

  function mark({ line = '', before = '', after = '' }) {
    const { selectionStart: start, selectionEnd: end } = text
    const begin = line ? text.value.lastIndexOf('\n', start - 1) + 1 : start
    const selected = text.value.slice(begin, end)
    insert(line ? selected.replace(/^/gm, line) : before + selected + after, begin, end)
    if (!line) text.setSelectionRange(start + before.length, end + before.length)
  }

  function keydown(event) {
    const { key, isComposing } = event
    const isCommand = event.ctrlKey || event.metaKey
    const shortcut = features.markdown_toolbar && Object.values(MARKS).find((mark) => mark.key === key)
    if (isComposing) return
    if (!people.hidden && choose(key)) event.preventDefault()
    else if (key === 'Escape') cancel?.()
    else if (isCommand && key === 'Enter') element.requestSubmit()
    else if (isCommand && shortcut) {
      event.preventDefault()
      mark(shortcut)
    }
  }

  async function suggest() {
    const end = text.selectionStart
    const query = text.value.slice(0, end).match(/(?<![\w@])@([\p{L}\p{N}_]{1,50})$/u)?.[1]
    search.abort()
    people.hidden = true
    if (!query || isGuest) return
    search = new AbortController()
    const { signal } = search
    await pause(150)
    if (signal.aborted) return
    const { data } = await api.get('users', { q: query.replaceAll('_', ' ') }, signal).catch(() => ({ data: [] }))
    if (signal.aborted || !data.length) return
    const pick = (user) => insert(`@${handleOf(user.name)} `, end - query.length - 1, end)
    const mousedown = (event) => event.preventDefault()
    people.replaceChildren(
      ...data.map((user) => h('div', { id: `${draft}-${user.id}`, role: 'option', click: () => pick(user), mousedown }, avatar(user), user.name)),
    )
    people.hidden = false
    select(0)
  }

  function select(place) {
    const options = [...people.children]
    const picked = options.at(place % options.length)
    for (const option of options) option.ariaSelected = `${option === picked}`
    text.setAttribute('aria-activedescendant', picked?.id ?? '')
  }

  function choose(key) {
    const options = /** @type {HTMLElement[]} */ ([...people.children])
    const place = options.findIndex(({ ariaSelected }) => ariaSelected === 'true')
    if (key === 'ArrowDown') select(place + 1)
    else if (key === 'ArrowUp') select(place - 1)
    else if (key === 'Enter' || key === 'Tab') options[place].click()
    else if (key === 'Escape') people.hidden = true
    else return false
    return true
  }

  function take(event, source) {
    const images = [...source.files].filter(({ type }) => type.startsWith('image/'))
    if (!images.length || !features.media) return
    event.preventDefault()
    images.forEach((image) => fallible(() => upload(image)))
  }

  async function upload(image) {
    if (image.size > limits.media_bytes) throw new ApiError(0, { code: 'payload_too_large' })
    const place = `![${say('uploading')} ${image.name.replace(/[[\]]/g, '')}]()`
    insert(place)
    let uploaded = ''
    try {
      const body = new FormData()
      body.append('file', image)
      uploaded = `![${say('image_description')}](${(await api.request('POST', 'media', { body, key: newKey() })).url})`
    } finally {
      const start = text.value.indexOf(place)
      const isHere = text.selectionStart === start + place.length
      if (start >= 0) text.setRangeText(uploaded, start, start + place.length, 'preserve')
      if (isHere) text.setSelectionRange(start + 2, start + Math.max(2, uploaded.indexOf(']')))
      changed()
    }
  }

  const focus = () => {
    text.focus()
    text.setSelectionRange(text.value.length, text.value.length)
  }
  return { element, focus }
}

// Comments

class CommentView {
  #cursor = ''
  depth = 0
  body = h('div')
  like = h('button')
  flag = /** @type {HTMLElement | false} */ (false)

  constructor(thread, comment, parent = /** @type {CommentView | undefined} */ (undefined)) {
    const { id, user } = comment
    this.thread = thread
    this.comment = comment
    this.parent = parent
    if (parent) this.depth = parent.depth + 1
    this.content = h('div', { class: 'content' })
    this.slot = h('div')
    this.replies = h('div', { class: 'replies' })
    this.more = button('', { class: 'more', click: () => thread.attempt(() => busily(this.more, () => this.#loadReplies())) })
    const below = h('div', { class: 'below' }, this.replies, this.more)
    this.element = h('article', { id: `comment-${id}`, tabindex: -1, 'aria-labelledby': `author-${id}` }, avatar(user), this.content, below)
    thread.views.set(id, this)
    this.show(comment)
    comment.replies.forEach((reply) => this.addReply(reply))
    this.#showMore()
  }

  show(comment) {
    const { say, ui, language } = this.thread
    const { id, user, pinned, created_at, updated_at } = comment
    const { badges } = ui.features
    const marks = {
      author: badges && comment.is_author,
      moderator: badges && comment.is_moderator,
      guest: badges && comment.is_guest,
      pinned,
      pending_approval: !comment.is_approved,
    }
    const names = Object.keys(marks).filter((name) => marks[name])
    this.comment = comment
    this.element.setAttribute('part', `comment${this.parent ? ' reply' : ''}${pinned ? ' pinned' : ''}`)
    this.body = h('div', { class: 'body', part: 'body' })
    if (comment.is_deleted) return this.content.replaceChildren(h('p', { id: `author-${id}`, class: 'muted' }, say('deleted')))
    showHtml(this.body, comment.html, comment.body)
    const time = h('time', { datetime: created_at, title: inFull(created_at, language) }, ago(created_at, language))
    const href = new URL(`#comment-${id}`, location.href)
    this.content.replaceChildren(
      h(
        'header',
        {},
        h('b', { id: `author-${id}`, part: 'author', dir: 'auto' }, user.name),
        ...names.map((name) => h('span', { class: 'badge' }, say(name))),
        h('a', { class: 'muted', href, click: () => this.thread.reveal(id) }, time),
        updated_at > created_at && h('span', { class: 'muted', title: inFull(updated_at, language) }, say('edited')),
      ),
      this.body,
      this.#actions(),
      this.slot,
    )
    this.#showMarks()
  }

  #actions() {
    const { say, ui } = this.thread
    const { can, pinned, is_approved } = this.comment
    const { nesting, read_only, reporting } = ui.features
    const isOpen = !read_only && !ui.auth.banned
    const action = (isOffered, label, click, name = 'action') => isOffered && isOpen && button(say(label), { class: name, click })
    this.like = button('', { class: 'like', disabled: !isOpen, click: () => this.#like() })
    this.flag = action(reporting && !can.update, 'report', () => this.#report())
    return h(
      'div',
      { class: 'actions', part: 'actions' },
      this.like,
      action(nesting && is_approved && this.depth < 10, 'reply', () => this.reply(), 'reply'),
      action(can.update, 'edit', () => this.edit()),
      action(can.delete, 'delete', () => this.#delete()),
      action(can.pin, pinned ? 'unpin' : 'pin', () => this.#pin()),
      this.flag,
    )
  }

  #showMarks() {
    const { say } = this.thread
    const { liked, likes_count, reported } = this.comment
    const count = likes_count ? ` ${likes_count}` : ''
    this.like.replaceChildren(icon('heart'), count)
    this.like.ariaLabel = say('like') + count
    this.like.ariaPressed = `${liked}`
    if (!this.flag || !reported) return
    this.flag.textContent = say('reported')
    this.flag.ariaDisabled = 'true'
  }

  #like() {
    const { thread, comment, like } = this
    const { liked, likes_count } = comment
    if (!thread.ui.auth.authenticated && !thread.ui.guest.likes) return thread.signIn()
    if (like.ariaBusy === 'true') return
    const show = (like) => {
      Object.assign(comment, like)
      this.#showMarks()
    }
    show({ liked: !liked, likes_count: likes_count + (liked ? -1 : 1) })
    thread.attempt(
      () => busily(like, async () => show(await thread.write('POST', `comments/${comment.id}/like`))),
      () => show({ liked, likes_count }),
    )
  }

  #report() {
    const { thread, comment } = this
    const { say, ui } = thread
    if (comment.reported) return
    const label = say('report_details')
    const details = h('textarea', { maxlength: ui.limits.report_details, 'aria-label': label, placeholder: label })
    const reasons = ui.report_reasons.map((value, place) =>
      h('label', {}, h('input', { type: 'radio', name: 'reason', value, checked: !place }), ` ${say(value)}`),
    )
    const key = newKey()
    thread.ask(say('report_reason'), [...reasons, details], say('report'), async (chosen) => {
      const body = { reason: chosen.get('reason'), additional_details: details.value || null }
      await thread.write('POST', `comments/${comment.id}/report`, { body, key }).catch((error) => {
        if (error.code !== 'already_reported') throw error
      })
      comment.reported = true
      this.#showMarks()
      thread.announce(say('report_thanks'))
    })
  }

  #pin() {
    const { thread, comment } = this
    thread.attempt(async () => {
      const { data } = await thread.write(comment.pinned ? 'DELETE' : 'POST', `comments/${comment.id}/pin`)
      for (const view of thread.views.values()) if (view.comment.pinned) view.show({ ...view.comment, pinned: false })
      this.show(data)
      this.focus()
    })
  }

  focus() {
    this.element.focus({ preventScroll: true })
  }

  #write(purpose) {
    const { thread, slot, body, comment } = this
    const { say } = thread
    const cancel = () => {
      slot.replaceChildren()
      body.hidden = false
      this.focus()
    }
    const reply = { draft: `reply-${comment.id}`, placeholder: say('write_reply'), action: say('reply'), cancel }
    const { element, focus } = editor(thread, { ...reply, ...purpose })
    slot.replaceChildren(element)
    focus()
    return cancel
  }

  reply() {
    const { thread, comment } = this
    if (!thread.ui.auth.can_comment) return thread.signIn()
    const close = this.#write({
      send: async (fields, key) => {
        const reply = await thread.post({ ...fields, parent_id: comment.id }, key)
        this.comment.replies_count += +reply.is_approved
        close()
        thread.focusOn(this.addReply(reply))
      },
    })
  }

  edit() {
    const { thread, comment, body } = this
    const { say } = thread
    const close = this.#write({
      draft: `edit-${comment.id}`,
      value: comment.body,
      placeholder: say('edit'),
      action: say('save'),
      send: async ({ body }) => {
        const { data } = await thread.write('PATCH', `comments/${comment.id}`, { body: { body } })
        close()
        this.show(data)
        thread.announce(say('edited'))
      },
    })
    body.hidden = true
  }

  #delete() {
    const { thread, comment, parent, element } = this
    const { say } = thread
    thread.ask(say('delete_confirm'), [], say('delete'), async () => {
      await thread.write('DELETE', `comments/${comment.id}`)
      const next = element.nextElementSibling ?? element.previousElementSibling ?? parent?.element ?? thread.section.querySelector('textarea')
      for (const { id } of element.querySelectorAll('article')) thread.views.delete(Number(id.slice(8)))
      thread.views.delete(comment.id)
      element.remove()
      if (parent) parent.comment.replies_count -= +comment.is_approved
      thread.showEmpty()
      thread.announce(say('deleted'))
      return next
    })
  }

  addReply(reply) {
    const { views } = this.thread
    const known = views.get(reply.id)
    if (known) return known
    const view = new CommentView(this.thread, reply, this)
    const later = [...this.replies.children].find(({ id }) => Number(id.slice(8)) > reply.id)
    this.replies.insertBefore(view.element, later ?? null)
    this.#showMore()
    return view
  }

  #showMore() {
    const shown = [...this.thread.views.values()].filter(({ parent, comment }) => parent === this && comment.is_approved)
    const left = this.comment.replies_count - shown.length
    this.more.hidden = left <= 0 || this.#cursor === null
    this.more.textContent = `${this.thread.say('view_replies')} (${left})`
  }

  async #loadReplies() {
    const { thread, comment } = this
    const { data, meta } = await thread.api.get(`comments/${comment.id}/replies`, { cursor: this.#cursor, per_page: 20 })
    this.#cursor = meta.next_cursor
    const added = data.filter(({ id }) => !thread.views.has(id)).map((reply) => this.addReply(reply))
    this.#showMore()
    added[0]?.focus()
  }
}

// The thread

const SORTS = ['newest', 'oldest', 'most_liked', 'most_replied']

const NOTICES = ['replies', 'mentions', 'own_records']

export const FIRST_WORDS = { retry: 'Try again', error: 'Something went wrong', offline: 'No connection' }

const REFUSALS = { comment_banned: 'banned', unauthenticated: 'sign_in_to_comment', not_found: 'deleted' }

class Thread {
  api = new Client()
  views = new Map()
  ui = /** @type {Ui} */ (/** @type {unknown} */ (undefined))
  language = ''
  path = ''
  sort = ''
  #work = new AbortController()
  /** @type {RequestOptions['query'] | null} */
  #next = null
  #before
  #turn = {}
  #waiting = []

  constructor(host, root) {
    this.host = host
    this.root = root
    this.status = h('p', { class: 'visually-hidden', role: 'status' })
    this.section = h('section')
    this.list = h('div', { class: 'list' })
    this.empty = h('p', { class: 'empty muted' })
    this.fresh = button('', { class: 'primary fresh', hidden: true, click: () => this.#showFresh() })
    this.foot = h('div', { class: 'foot' })
    root.append(this.section, this.status)
    root.adoptedStyleSheets = [styles, threadStyles]
    this.#showSkeleton()
  }

  say = (key) => this.host.labels?.[key] ?? this.ui?.labels[key] ?? FIRST_WORDS[key] ?? key

  explain = ({ code, status, message, errors = {} }) => {
    const label = REFUSALS[code] ?? code
    const text = this.say(label)
    return text !== label ? text : status === 422 ? Object.values(errors).flat().join(' ') || message : this.say('error')
  }

  announce(text, name = 'visually-hidden') {
    this.status.className = name
    this.status.textContent = text
  }

  emit(name, detail) {
    return this.host.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }))
  }

  signIn() {
    if (this.emit('comment-sign-in')) this.announce(this.say('sign_in_to_comment'))
  }

  async write(method, path, options) {
    const answer = await this.api.request(method, path, options)
    if (!this.ui.auth.authenticated) device.set(`${API} mine`, (this.api.mine = true))
    return answer
  }

  async attempt(act, undo = () => {}) {
    this.announce('')
    try {
      await act()
    } catch (error) {
      undo()
      this.announce(this.explain(error), 'error')
    }
  }

  stop() {
    this.#work.abort()
  }

  async become(auth) {
    const before = this.path && this.api.token()
    this.api.auth = auth
    if (before && (await before) !== (await this.api.token())) this.load()
  }

  async load() {
    const { host, api, section } = this
    this.#work.abort()
    const { signal } = (this.#work = new AbortController())
    const path = [host.type, host.record].map(encodeURIComponent).join('/')
    if (path !== this.path) this.#showSkeleton()
    this.path = path
    this.sort = SORTS.find((sort) => sort === host.getAttribute('sort')) ?? this.sort
    this.language = api.language = languageOf(host)
    api.mine = !!device.get(`${API} mine`)
    await this.#wait(section, () => this.load(), async () => {
      const page = await this.#first(signal)
      if (signal.aborted) return
      this.ui = page.ui
      this.#show(page)
      this.emit('comment-ready')
      await this.revealAddressed()
      this.#watch(signal)
    })
  }

  async #wait(place, again, act) {
    const { signal } = this.#work
    try {
      await busily(place, act)
    } catch (error) {
      if (!signal.aborted) this.#showFailure(place, error, again)
    }
  }

  async #first(signal) {
    const ask = () => this.api.get(`${this.path}/comments`, { include: 'ui', cursor: '', sort: this.sort || null }, signal)
    const token = await this.api.token()
    const page = await ask()
    if (!token || page.ui.auth.authenticated) return page
    return (await this.api.renew(token)) ? ask() : page
  }

  #show(page) {
    const { say, ui, section } = this
    const open = [...this.views.values()].filter(({ slot }) => slot.firstChild)
    const sorts = SORTS.map((value) => h('option', { value, selected: value === (this.sort || ui.default_sort) }, say(value)))
    const select = h('select', { 'aria-label': say('sort'), change: () => this.#sortBy(select.value) }, ...sorts)
    section.ariaLabel = say('comments')
    section.className = ''
    this.showTheme()
    section.replaceChildren(
      h(
        'div',
        { class: 'top' },
        h('h2', {}, say('comments')),
        ui.features.subscriptions && ui.auth.authenticated && button(say('notifications'), { class: 'muted', click: () => this.attempt(() => this.#choose()) }),
        ui.features.sorting && select,
      ),
      this.#composer(),
      this.fresh,
      this.list,
      this.empty,
      this.foot,
    )
    this.empty.textContent = say('no_comments')
    this.#restart(page)
    for (const { comment, body } of open) {
      const view = this.views.get(comment.id)
      if (body.hidden) view?.comment.can.update && view.edit()
      else if (ui.auth.can_comment) view?.reply()
    }
  }

  #composer() {
    const { say, ui } = this
    const notice = (content) => h('p', { class: 'notice' }, content)
    if (ui.features.read_only) return notice(say('read_only'))
    if (ui.auth.banned) return notice(say('banned'))
    if (!ui.auth.can_comment) return notice(button(say('sign_in_to_comment'), { class: 'primary', click: () => this.signIn() }))
    return editor(this, {
      draft: 'new',
      placeholder: say('write_comment'),
      action: say('send'),
      send: async (fields, key) => {
        const comment = await this.post(fields, key)
        this.focusOn(this.#prepend(comment))
      },
    }).element
  }

  async post(body, key) {
    const { data } = await this.write('POST', `${this.path}/comments`, { body, key })
    this.announce(this.say(data.is_approved ? 'posted' : 'pending_approval'))
    this.emit('comment-posted', { id: data.id })
    return data
  }

  #prepend(comment) {
    const view = new CommentView(this, comment)
    const pinned = this.list.querySelector('[part~=pinned]')
    if (pinned) pinned.after(view.element)
    else this.list.prepend(view.element)
    this.showEmpty()
    return view
  }

  #restart(page) {
    this.views.clear()
    this.list.replaceChildren()
    this.#append(page)
  }

  #append({ data, meta }) {
    const added = data.filter(({ id }) => !this.views.has(id)).map((comment) => new CommentView(this, comment))
    this.list.append(...added.map(({ element }) => element))
    const { next_cursor: cursor, current_page: page = 1, last_page = 1 } = meta
    this.#next = cursor ? { cursor } : page < last_page ? { page: page + 1 } : null
    this.foot.replaceChildren(this.#next ? button(this.say('load_more'), { class: 'outlined', click: () => this.#loadMore() }) : '')
    this.showEmpty()
    return added
  }

  showEmpty() {
    this.empty.hidden = this.views.size > 0
  }

  #page(query, show) {
    const turn = (this.#turn = {})
    const isLast = () => turn === this.#turn
    const ask = () => this.api.get(`${this.path}/comments`, { sort: this.sort || null, ...query }, this.#work.signal)
    this.#wait(this.foot, () => this.#page(query, show), async () => {
      const page = await ask().catch((error) => isLast() && Promise.reject(error))
      if (isLast()) show(page)
    })
  }

  #loadMore() {
    this.#page(this.#next ?? {}, (page) => this.#append(page)[0]?.focus())
  }

  #sortBy(sort) {
    this.sort = sort
    this.#page({ cursor: '' }, (page) => this.#restart(page))
  }

  #showSkeleton() {
    this.section.className = 'waiting'
    this.section.replaceChildren(...[1, 2, 3].map(() => h('div', { class: 'skeleton' })))
  }

  #showFailure(place, error, again) {
    const click = () => {
      removeEventListener('online', click)
      again()
    }
    addEventListener('online', click, { signal: this.#work.signal })
    place.replaceChildren(h('p', { class: 'notice', role: 'alert' }, `${this.explain(error)} `, button(this.say('retry'), { class: 'outlined', click })))
  }

  showTheme() {
    const theme = this.host.getAttribute('theme') ?? this.ui?.theme
    for (const name of ['light', 'dark']) this.section.classList.toggle(name, theme === name)
  }

  async revealAddressed() {
    const id = location.hash.match(/^#comment-(\d+)$/)?.[1]
    if (id && this.ui) await this.reveal(Number(id))
  }

  async reveal(id) {
    await this.attempt(() => this.#fetch(id))
    const view = this.views.get(id)
    if (view) this.focusOn(view)
  }

  focusOn(view) {
    this.section.querySelector('.target')?.classList.remove('target')
    view.element.classList.add('target')
    view.content.firstElementChild?.scrollIntoView({ block: 'nearest' })
    view.focus()
  }

  async #fetch(id) {
    if (this.views.has(id)) return
    const { data, ancestors, thread } = await this.api.get(`comments/${id}`, {}, this.#work.signal)
    if (thread.type !== this.host.type || thread.id !== this.host.record) return
    /** @type {CommentView | undefined} */
    let view
    for (const comment of [...ancestors, data]) {
      const known = this.views.get(comment.id)
      if (known) known.comment.replies_count = comment.replies_count
      view = known ?? view?.addReply(comment) ?? this.#prepend(comment)
    }
  }

  async #watch(signal) {
    this.#before = undefined
    while (this.ui.features.realtime && !signal.aborted) {
      let wait = 1
      if (!document.hidden) {
        wait = await this.api.request('GET', `${this.path}/changes`, { signal, anonymous: true }).then(
          ({ data }) => this.#announceFresh(data),
          () => 120,
        )
      }
      await pause(wait * 1000)
    }
  }

  #announceFresh({ newest, next }) {
    this.#before ??= newest
    this.#waiting = newest.filter((id) => !this.#before?.includes(id) && !this.views.has(id))
    const { length } = this.#waiting
    const news = `${length} ${this.say(length > 1 ? 'new_comments' : 'new_comment')}`
    this.fresh.hidden = !length
    if (length && this.fresh.textContent !== news) this.announce(news)
    this.fresh.textContent = news
    return next
  }

  async #showFresh() {
    const ids = this.#waiting
    const before = this.#before
    this.#before = before?.concat(ids)
    this.fresh.hidden = true
    await Promise.allSettled(ids.toReversed().map((id) => this.#fetch(id)))
    this.#before = before
    await this.reveal(ids[0])
  }

  async #choose() {
    const { say, api } = this
    const path = 'me/notifications'
    const toldOf = ({ state = 'off', email = '' }) => `${say(`mail_${state}`)} ${email ?? ''}`
    const { data } = await api.get(path)
    const box = (name) => h('label', {}, h('input', { type: 'checkbox', name, checked: data[name] }), ` ${say(`notify_${name}`)}`)
    const fields = [...NOTICES.map(box), data.email && box('forget'), h('p', { class: 'muted' }, toldOf(data))]
    this.ask(say('notifications'), fields, say('save'), async (chosen) => {
      const body = Object.fromEntries(NOTICES.map((name) => [name, chosen.has(name)]))
      const answer = await (chosen.has('forget') ? api.request('DELETE', path) : api.request('PUT', path, { body }))
      this.announce(toldOf(answer?.data ?? {}))
    })
  }

  ask(title, fields, action, act) {
    /** @type {any} */
    let target = this.root.activeElement
    const error = h('p', { class: 'error', role: 'alert' })
    const submit = async (event) => {
      event.preventDefault()
      try {
        target = (await act(new FormData(form))) ?? target
        dialog.close()
      } catch (reason) {
        error.textContent = this.explain(reason)
      }
    }
    const close = () => {
      dialog.remove()
      target?.focus({ preventScroll: true })
    }
    const cancel = button(this.say('cancel'), { class: 'outlined', click: () => dialog.close() })
    const bar = h('div', { class: 'bar' }, cancel, primary(action))
    const form = h('form', { submit }, h('h3', {}, title), ...fields, error, bar)
    const dialog = h('dialog', { 'aria-label': title, close }, form)
    this.section.append(dialog)
    dialog.showModal()
  }
}

// The elements

class CommentThread extends HTMLElement {
  static observedAttributes = ['type', 'record', 'sort', 'lang', 'theme']

  #thread = new Thread(this, this.attachShadow({ mode: 'open' }))
  #isScheduled = false
  #isNear = false
  #connection = new AbortController()
  /** @type {Record<string, string> | undefined} */
  labels = this['labels']

  constructor() {
    super()
    const { auth } = this
    delete (/** @type {any} */ (this).auth)
    this.auth = auth
  }

  /** @type {Auth} */
  get auth() {
    return this.#thread.api.auth
  }
  set auth(auth) {
    this.#thread.become(auth ?? null)
  }

  get type() {
    return this.getAttribute('type') ?? ''
  }
  get record() {
    return this.getAttribute('record') ?? ''
  }

  connectedCallback() {
    const { signal } = (this.#connection = new AbortController())
    const near = new IntersectionObserver((entries) => entries.at(-1)?.isIntersecting && this.#approach(), { rootMargin: '600px' })
    const languages = new MutationObserver(() => this.attributeChangedCallback('lang'))
    near.observe(this)
    languages.observe(document, { subtree: true, attributeFilter: ['lang'] })
    addEventListener('hashchange', () => this.#thread.revealAddressed(), { signal })
    signal.addEventListener('abort', () => {
      near.disconnect()
      languages.disconnect()
      this.#thread.stop()
    })
    if (this.#isNear || this.getAttribute('loading') === 'eager' || location.hash.startsWith('#comment-')) this.#approach(true)
  }

  disconnectedCallback() {
    this.#connection.abort()
  }

  attributeChangedCallback(name) {
    if (name === 'theme') this.#thread.showTheme()
    else if (name !== 'lang' || languageOf(this) !== this.#thread.language) this.#schedule()
  }

  #approach(again = !this.#isNear) {
    this.#isNear = true
    if (again) this.#schedule()
  }

  #schedule() {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      if (this.isConnected && this.#isNear && this.type && this.record) this.#thread.load()
    })
  }
}

/** @type {Set<CommentCount>} */
const uncounted = new Set()

function count() {
  const elements = [...uncounted].filter(({ thread }) => /^[\w.~-]+\/(?!\.{1,2}$)[\w.~:-]{1,128}$/.test(thread))
  const threads = [...new Set(elements.map(({ thread }) => thread))]
  uncounted.clear()
  while (threads.length) {
    const some = threads.splice(0, 50)
    while (`${some}`.length > 5_900) threads.push(`${some.pop()}`)
    ask(some, elements)
  }
}

async function ask(threads, elements) {
  try {
    const { data } = await new Client().request('GET', `counts?threads=${threads}`, { anonymous: true })
    for (const element of elements) if (element.thread in data) element.textContent = data[element.thread]
  } catch ({ status }) {
    const half = threads.length >> 1
    if (status === 422 && half) [threads.slice(0, half), threads.slice(half)].forEach((some) => ask(some, elements))
  }
}

class CommentCount extends HTMLElement {
  static observedAttributes = ['type', 'record']

  get thread() {
    return `${this.getAttribute('type')}/${this.getAttribute('record')}`
  }

  attributeChangedCallback() {
    if (!uncounted.size) setTimeout(count, 20)
    uncounted.add(this)
  }
}

// Styles

/** @param {string} css */
export function sheet(css) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  return sheet
}

export const styles = sheet(`
:host {
  --accent: var(--comment-accent, light-dark(#0b57d0, #8ab4f8));
  --text: var(--comment-text, light-dark(#1f2328, #e6e8eb));
  --muted: var(--comment-muted, light-dark(#59636e, #9aa3ad));
  --surface: var(--comment-surface, light-dark(#fff, #17191c));
  --border: var(--comment-border, light-dark(#d5dae0, #373c43));
  --radius: var(--comment-radius, 8px);
  --danger: light-dark(#b3261e, #f2b8b5);
  --tint: color-mix(in srgb, var(--accent) 8%, transparent);
  display: block;
  overflow-wrap: anywhere;
  font-family: var(--comment-font, inherit);
  line-height: 1.5;
}
:host([hidden]), [hidden] { display: none !important }
section, dialog { color: var(--text) }
.light { color-scheme: light }
.dark { color-scheme: dark }
.light, .dark, dialog { padding: 1em; border-radius: var(--radius); background: var(--surface) }
* { box-sizing: border-box }
.visually-hidden { position: absolute; clip-path: inset(50%) }
a { color: var(--accent) }
button, input, select, textarea { border: 0; border-radius: var(--radius); background: none; color: inherit; font: inherit; accent-color: var(--accent) }
button { min-block-size: 28px; min-inline-size: 28px; padding: 0 .5em; cursor: pointer }
button:hover { background: var(--tint) }
.primary, .outlined, select, input:not([type=radio], [type=checkbox]) { min-block-size: 36px; padding: .25em .75em }
.primary, .primary:hover { background: var(--accent); color: light-dark(#fff, #111); font-weight: 600 }
.danger, .danger:hover { background: var(--danger) }
.outlined, select, input, dialog textarea, dialog { border: 1px solid var(--border) }
:disabled, [aria-disabled=true], [aria-busy=true] { opacity: .7 }
dialog { inline-size: min(26em, 90%) }
.badge { padding: 0 .5em; border: 1px solid var(--border); border-radius: 1em; font-size: .75em }
.badge, .muted { color: var(--muted) }
.avatar { flex: none; display: grid; place-items: center; inline-size: 36px; block-size: 36px; border-radius: 50%; object-fit: cover; background: var(--border) }
.error { color: var(--danger) }
`)

const threadStyles = sheet(`
section { overflow-x: clip; overflow-clip-margin: 4px }
h2, h3 { margin: 0; font-size: 1.125em }
.top, .bar, header, .actions, .guest, .toolbar { display: flex; flex-wrap: wrap; align-items: center; gap: 0 .5em }
.top { justify-content: space-between }
.top .muted { margin-inline-start: auto }
.waiting { min-block-size: 100vh }
.skeleton { block-size: 5em; margin-block-end: 1.5em; border-radius: var(--radius); background: var(--border); opacity: .3 }
.editor { position: relative; margin-block: .75em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface) }
.editor:focus-within { border-color: var(--accent) }
textarea, .preview { display: block; inline-size: 100%; min-block-size: 6em; padding: .75em }
textarea { max-block-size: 60vh; resize: vertical; field-sizing: content }
.editor textarea { outline: 0 }
.editor > :not(textarea, .preview) { margin: 0; padding: .25em .5em .5em }
.guest input { flex: 1 1 9em }
.error:empty { display: none }
.toolbar { flex: 1 1 14em; gap: 0; color: var(--muted) }
[aria-pressed=true] { color: var(--accent) }
.editor .people { position: absolute; z-index: 1; inset-block-start: 4em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface) }
.people div { display: flex; align-items: center; gap: .5em; padding: .25em .5em; cursor: pointer }
[aria-selected=true] { background: var(--tint) }
svg { inline-size: 1.125em; vertical-align: -.2em; fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }
.notice, pre, table { padding: .75em; border-radius: var(--radius); background: var(--tint) }
.list { margin-block-start: 1.5em }
.empty, .foot { text-align: center }
article { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: 0 .75em; margin-block-end: 1em; border-radius: var(--radius) }
.target > .content { background: var(--tint) }
.below { grid-column: 2 }
.replies .replies .below { grid-column: 1 / 3 }
.replies article { margin-block: 1em 0; grid-template-columns: 28px minmax(0, 1fr) }
.replies .avatar, .people .avatar { inline-size: 28px; block-size: 28px }
header a { padding: .25em 0; font-size: .875em; text-decoration: none }
.plain { white-space: pre-wrap }
.body > * { margin-block: .25em .5em; unicode-bidi: plaintext; text-align: start }
h1, h4, h5, h6, .body :is(h2, h3) { font-size: 1em }
.body img { max-inline-size: 100%; block-size: 14em; object-fit: scale-down }
pre, table { display: block; overflow: auto }
ul, ol { padding-inline-start: min(40px, 10%) }
blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--border); color: var(--muted) }
.actions, .more { margin-inline-start: -.5em; font-size: .875em }
.actions { color: var(--muted) }
.like[aria-pressed=true] svg { fill: currentColor }
.more { color: var(--accent) }
.fresh, .error[role=status] { position: sticky; z-index: 1; inset-block: .5em; display: block; inline-size: fit-content; margin: 0 auto -36px }
.error[role=status] { padding: .5em; border: 1px solid; border-radius: var(--radius); background: var(--surface) }
header { scroll-margin: 8em }
dialog label { display: block }
.bar { justify-content: end }
dialog .bar { margin-block-start: 1em }
@media (hover: hover) {
  .content:not(:hover, :focus-within) .action { opacity: 0 }
}
`)

customElements.get('comment-thread') ?? customElements.define('comment-thread', CommentThread)
customElements.get('comment-count') ?? customElements.define('comment-count', CommentCount)
