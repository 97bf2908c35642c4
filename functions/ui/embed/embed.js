/**
 * Comment threads on any page: `<comment-thread>` and `<comment-count>`.
 *
 * One module without imports and without a build step: browsers load this file as it is. From top to bottom: the API,
 * comments' HTML, elements, languages and dates, what the device keeps, styles, the editor, comments, the thread, counts.
 *
 * @import { Attributes, Auth, Child, Comment, Page, Purpose, RequestOptions, Ui, User } from './types.d.ts'
 */

// The API

/** The address of the API, from which this module was loaded. Ends with a slash. */
export const API = new URL('.', import.meta.url).href

/** In milliseconds. Uploads may take longer. */
const TIMEOUT = 30_000

/** A refusal of the API. `code` is `offline` when no answer came. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {string} code
   * @param {number} status 0 when no answer came
   * @param {Record<string, string[]>} errors by field
   * @param {number} [retryAfter] seconds
   */
  constructor(message, code, status, errors = {}, retryAfter) {
    super(message)
    this.code = code
    this.status = status
    this.errors = errors
    this.retryAfter = retryAfter
  }
}

/** Calls the API as one visitor. The token goes into a header of requests to `API`, and nowhere else. */
export class Client {
  /** @type {Auth} */
  #auth = null
  /** What the host has answered, until it is asked again. @type {Promise<string | null> | undefined} */
  #token
  /** Adds `mine=1` to reads without a token, so that shared caches do not hide from guests what they wrote. */
  mine = false
  /** For the labels of answers; empty for the browser's own. */
  language = ''

  get auth() {
    return this.#auth
  }
  set auth(auth) {
    this.#auth = auth
    this.#token = undefined
  }

  /** The present token. The host is asked once. @returns {Promise<string | null>} */
  token() {
    const auth = this.#auth
    this.#token ??= Promise.resolve()
      .then(() => (typeof auth === 'function' ? auth() : auth))
      .then((token) => token || null, () => null)
    return this.#token
  }

  /** Calls as nobody until the host is asked again. */
  forget() {
    this.#token = Promise.resolve(null)
  }

  /**
   * Asks the host for another token after `refused` was. False if it has none.
   * @param {string | null} refused
   */
  async renew(refused) {
    const asked = this.#token
    const present = await this.token()
    // Of several requests that were refused together, the first one asks.
    if (present === refused && this.#token === asked && typeof this.#auth === 'function') this.#token = undefined
    return (await this.token()) !== refused
  }

  /**
   * The JSON of the answer, null for an empty one. A request that is refused with 401 is sent once more if the host has
   * another token.
   * @param {string} method
   * @param {string} path below `API`
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, path, options = {}) {
    const token = options.anonymous ? null : await this.token()
    try {
      return await this.#exchange(method, path, options, token)
    } catch (error) {
      const again = error instanceof ApiError && error.status === 401 && (await this.renew(token))
      if (!again) throw error
      return this.#exchange(method, path, options, await this.token())
    }
  }

  /** @param {string} path @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
  get(path, query, signal) {
    return this.request('GET', path, { query, signal })
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} options
   * @param {string | null} token
   */
  async #exchange(method, path, { query = {}, body, key, signal, keepalive, anonymous }, token) {
    const url = new URL(path, API)
    for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, `${value}`)
    if (this.mine && !token && !anonymous && method === 'GET') url.searchParams.set('mine', '1')
    // A read without a token has no header that would cost a preflight.
    const headers = new Headers()
    if (this.language) headers.set('Accept-Language', this.language)
    if (token) headers.set('Authorization', `Bearer ${token}`)
    if (key) headers.set('Idempotency-Key', key)
    const isForm = body instanceof FormData
    if (body && !isForm) headers.set('Content-Type', 'application/json')
    const signals = [signal, isForm ? undefined : AbortSignal.timeout(TIMEOUT)].filter((signal) => signal != null)
    try {
      const response = await fetch(url, {
        method,
        headers,
        body: isForm ? body : body && JSON.stringify(body),
        signal: AbortSignal.any(signals),
        keepalive,
        credentials: 'omit',
        redirect: token ? 'error' : 'follow',
      })
      return read(response, await response.text())
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted) throw error
      throw new ApiError(String(error), 'offline', 0)
    }
  }
}

/** @param {Response} response @param {string} text its body */
function read(response, text) {
  let json = null
  try {
    json = text && JSON.parse(text)
  } catch {
    // Not an answer of the API. It is refused below.
  }
  if (response.ok && (json || response.status === 204)) return json || null
  const { message = '', code = 'server_error', errors } = json || {}
  const retryAfter = Number(response.headers.get('Retry-After')) || undefined
  throw new ApiError(message, code, response.status, errors, retryAfter)
}

/** A new `Idempotency-Key`. `crypto.randomUUID` exists on secure pages only. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('-')

// Comments' HTML

/** The elements that a comment may contain, with their attributes. All else is dropped. */
const ALLOWED = /** @type {Record<string, string[]>} */ ({
  a: ['href', 'rel', 'title'],
  img: ['src', 'alt', 'title'],
  ol: ['start'],
  code: ['class'],
})
for (const name of 'p br hr em strong del h1 h2 h3 h4 h5 h6 blockquote ul li pre table thead tbody tr th td'.split(' ')) {
  ALLOWED[name] = []
}

/**
 * Shows the HTML of a comment in `target`, cleaned by the allow-list. Where the page's policy forbids that, it shows `text`.
 * @param {HTMLElement} target
 * @param {string} html
 * @param {string} text
 */
export function showHtml(target, html, text) {
  const tree = parse(html)
  target.classList.toggle('plain', !tree)
  if (!tree) {
    target.textContent = text
    return
  }
  tree.querySelectorAll('*').forEach(tidy)
  target.replaceChildren(...tree.childNodes)
}

/**
 * The cleaned HTML in a document that loads nothing and runs nothing, or null where the page's policy forbids it.
 * @param {string} html
 * @returns {HTMLElement | null}
 */
function parse(html) {
  const inert = /** @type {HTMLElement & { setHTML?: Function }} */ (document.implementation.createHTMLDocument().body)
  if (inert.setHTML) {
    const elements = Object.entries(ALLOWED).map(([name, attributes]) => ({ name, attributes }))
    inert.setHTML(html, { sanitizer: { elements, attributes: [] } })
    return inert
  }
  const trusted = trust(`<!doctype html><body>${html}`)
  if (trusted == null) return null
  const { body } = new DOMParser().parseFromString(trusted, 'text/html')
  prune(body)
  return body
}

/** The policy of this module; null where the page forbids it, undefined until it is needed. @type {any} */
let policy

/** Marks HTML for the parser, whose document is inert. @param {string} html @returns {string | null} */
function trust(html) {
  const { trustedTypes } = /** @type {any} */ (globalThis)
  if (!trustedTypes) return html
  if (policy === undefined) {
    try {
      policy = trustedTypes.createPolicy('comment-thread', { createHTML: (/** @type {string} */ html) => html })
    } catch {
      policy = null
    }
  }
  return policy && policy.createHTML(html)
}

/** Does what `setHTML` does with the allow-list. @param {Element} parent */
function prune(parent) {
  for (const node of [...parent.childNodes]) {
    if (node instanceof Text) continue
    const attributes = node.nodeType === Node.ELEMENT_NODE && ALLOWED[node.nodeName.toLowerCase()]
    if (!attributes) {
      node.remove()
      continue
    }
    const element = /** @type {Element} */ (node)
    for (const { name } of [...element.attributes]) if (!attributes.includes(name)) element.removeAttribute(name)
    prune(element)
  }
}

/** What an allow-list of names cannot say: addresses, classes, and what the keyboard can scroll. @param {Element} element */
function tidy(element) {
  if (!/^language-[\w+#.-]+$/.test(element.className)) element.removeAttribute('class')
  for (const [name, schemes] of /** @type {const} */ ([['href', /^(https?|mailto):$/], ['src', /^https?:$/]])) {
    const address = element.getAttribute(name)
    if (address != null && !schemes.test(schemeOf(address))) element.removeAttribute(name)
  }
  if (element.matches('pre, table')) element.setAttribute('tabindex', '0')
  if (element.matches('img')) element.setAttribute('loading', 'lazy')
}

/** @param {string} address */
function schemeOf(address) {
  try {
    return new URL(address, document.baseURI).protocol
  } catch {
    return ''
  }
}

// Elements

/**
 * An element with attributes and children. Functions among the attributes are listeners; true is an attribute without a
 * value; false, null and undefined are none. There is no way to give it HTML.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') element.addEventListener(key, value)
    else if (value != null && value !== false) element.setAttribute(key, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child != null && child !== false))
  return element
}

/** A button that submits nothing. @param {string | Node} content @param {Attributes} attributes */
export const button = (content, attributes) => h('button', { type: 'button', part: 'button', ...attributes }, content)

const ICONS = {
  bold: 'M4.5 2.5v11H9a3 3 0 0 0 0-6H4.5M8.5 7.5a2.5 2.5 0 0 0 0-5h-4',
  italic: 'M6.5 2.5H12M4 13.5h5.5M9.5 2.5l-3 11',
  code: 'M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5',
  link: 'M6.5 9.5a3 3 0 0 0 4.2 0l2.2-2.2a3 3 0 0 0-4.2-4.2l-.9.9M9.5 6.5a3 3 0 0 0-4.2 0L3.1 8.7a3 3 0 0 0 4.2 4.2l.9-.9',
  quote: 'M3 3v10M6.5 5H14M6.5 8H14M6.5 11H11',
  list: 'M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  emoji: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M6 6.5h.01M10 6.5h.01M5.5 9.5a3 3 0 0 0 5 0',
  image: 'M2 3h12v10H2zM2 11l3.5-3.5L9 11l2-2 3 3M10.5 6h.01',
  heart: 'M8 13.5 2.9 8.4a3.2 3.2 0 0 1 4.5-4.5l.6.6.6-.6a3.2 3.2 0 0 1 4.5 4.5z',
}

/** @param {keyof typeof ICONS} name */
function icon(name) {
  const [svg, path] = ['svg', 'path'].map((name) => document.createElementNS('http://www.w3.org/2000/svg', name))
  svg.setAttribute('viewBox', '0 0 16 16')
  svg.setAttribute('aria-hidden', 'true')
  path.setAttribute('d', ICONS[name])
  svg.append(path)
  return svg
}

// Languages and dates

/** The nearest `lang` around an element, else the browser's language. @param {Element} element */
export function languageOf(element) {
  /** @type {Node | null} */
  let node = element
  for (; node; node = node.parentNode ?? /** @type {ShadowRoot} */ (node).host ?? null) {
    const tag = node instanceof Element && node.getAttribute('lang')
    try {
      if (tag) return Intl.getCanonicalLocales(tag)[0]
    } catch {
      // Not a language. One further out may be.
    }
  }
  return navigator.language
}

const UNITS = /** @type {const} */ ([
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', Infinity],
])

/** How long ago a time was, in words. @param {string} time @param {string} language */
export function ago(time, language) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000)
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS[6]
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(-Math.trunc(seconds / size) || 0, unit)
}

/** A time in full. @param {string} time @param {string} language */
export function inFull(time, language) {
  return new Date(time).toLocaleString(language, { dateStyle: 'long', timeStyle: 'short' })
}

// Styles

/** A constructed sheet, which no content policy forbids. @param {string} css */
export function sheet(css) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  return sheet
}

/** Colours, text, buttons, fields and dialogs, for every element of this service. `.dark` and `.light` force a theme. */
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
  color: var(--text);
  font-family: var(--comment-font, inherit);
  line-height: 1.5;
  text-align: start;
}
:host([hidden]), [hidden] { display: none !important }
.light { color-scheme: light }
.dark { color-scheme: dark }
* { box-sizing: border-box }
.visually-hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
a { color: var(--accent) }
button, input, select, textarea { font: inherit; color: inherit; accent-color: var(--accent) }
button { min-block-size: 28px; min-inline-size: 28px; padding: 0 .5em; border: 0; border-radius: var(--radius); background: none; cursor: pointer }
button:hover { background: var(--tint) }
button:disabled, [aria-disabled=true] { opacity: .6; cursor: default }
button.primary { min-block-size: 36px; padding: 0 1em; background: var(--accent); color: light-dark(#fff, #10141a); font-weight: 600 }
button.outlined { min-block-size: 36px; padding: 0 1em; border: 1px solid var(--border) }
button.danger { background: var(--danger) }
input:not([type=radio], [type=checkbox]), select, textarea {
  min-block-size: 36px; max-inline-size: 100%; padding: .375em .625em;
  border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface);
}
dialog {
  inline-size: min(26em, calc(100% - 2em)); padding: 1.25em; border: 1px solid var(--border); border-radius: var(--radius);
  background: var(--surface); color: var(--text); box-shadow: 0 8px 40px #0003;
}
dialog::backdrop { background: #0006 }
.badge { padding: .0625em .5em; border: 1px solid var(--border); border-radius: 1em; color: var(--muted); font-size: .75em; font-weight: 500 }
.avatar { inline-size: 36px; block-size: 36px; border-radius: 50%; object-fit: cover; background: var(--border) }
.error { color: var(--danger) }
.muted { color: var(--muted) }
`)

// What the device keeps: drafts, a guest's name, and whether this guest has written. Never an address or a token.

const memory = /** @type {Record<string, string>} */ ({})

const device = {
  /** @param {string} key */
  get(key) {
    try {
      return localStorage.getItem(`comment-thread ${key}`) ?? ''
    } catch {
      // The page may not store. It remembers until it goes.
      return memory[key] ?? ''
    }
  },
  /** @param {string} key @param {string} value empty to forget it */
  set(key, value) {
    memory[key] = value
    try {
      if (value) localStorage.setItem(`comment-thread ${key}`, value)
      else localStorage.removeItem(`comment-thread ${key}`)
    } catch {
      // As above.
    }
  },
}

// The editor

const EMOJI = '😀 😂 🙂 😉 😍 🤔 😮 😢 😡 👍 👎 👏 🙏 💪 👀 🎉 🔥 ❤️ ✅ ❌ 💡 🚀 ☕ 🌱'.split(' ')

/** What the buttons of the toolbar put around the selection, or before each of its lines, and their shortcuts. */
const MARKS = /** @type {const} */ ([
  { name: 'bold', before: '**', after: '**', key: 'b' },
  { name: 'italic', before: '_', after: '_', key: 'i' },
  { name: 'code', before: '`', after: '`', key: 'e' },
  { name: 'link', before: '[', after: '](https://)', key: 'k' },
  { name: 'quote', line: '> ' },
  { name: 'list', line: '- ' },
])

/** The handle by which the service knows the user of this name. @param {string} name */
const handleOf = (name) => name.replace(/_?[^A-Za-z0-9_]+/g, '_').toLowerCase()

/** A form to write a comment or a reply, or to edit. */
class Editor {
  /** The last request, to send it again under the same key. */
  #last = { content: '', key: '' }
  #busy = false
  #uploads = 0
  /** @type {AbortController | undefined} */
  #search

  /**
   * @param {Thread} thread
   * @param {Purpose} options
   */
  constructor(thread, options) {
    this.thread = thread
    this.options = options
    const { features, guest, auth, limits } = thread.ui
    const say = thread.say
    this.isGuest = !auth.authenticated && !options.isEdit
    this.draft = `${API} ${thread.path} ${options.draft}`

    this.text = h('textarea', {
      rows: 3,
      required: true,
      dir: 'auto',
      'aria-label': options.placeholder,
      placeholder: options.placeholder,
      'aria-autocomplete': auth.authenticated && 'list',
      input: () => this.#changed(),
      keydown: (event) => this.#key(event),
      paste: (event) => this.#take(event, event.clipboardData),
      drop: (event) => this.#take(event, event.dataTransfer),
    })
    this.text.value = device.get(this.draft) || options.text || ''
    this.people = h('div', { class: 'people', role: 'listbox', id: thread.newId(), 'aria-label': say('mention'), hidden: true })
    this.text.setAttribute('aria-controls', this.people.id)
    this.shown = h('div', { class: 'body preview', hidden: true, tabindex: 0 })
    this.count = h('span', { class: 'muted count' })
    this.error = h('p', { class: 'error', role: 'alert' })
    this.submit = h('button', { class: 'primary', part: 'button' }, options.action)
    this.name = h('input', { autocomplete: 'name', required: true, maxlength: 100, 'aria-label': say('guest_name'), placeholder: say('guest_name') })
    this.name.value = device.get('name')
    this.email = h('input', {
      type: 'email',
      autocomplete: 'email',
      required: guest.require_email,
      'aria-label': say('guest_email'),
      placeholder: say('guest_email'),
    })
    this.email.value = memory.email ?? ''
    this.subscribe = h('input', { type: 'checkbox' })
    this.emoji = this.#emojiPanel()

    this.element = h(
      'form',
      { class: 'editor', part: 'editor', submit: (event) => this.#submit(event) },
      h('div', { class: 'field' }, this.text, this.people),
      this.shown,
      this.emoji,
      this.isGuest && h('div', { class: 'guest' }, this.name, (guest.require_email || guest.show_gravatar) && this.email),
      features.subscriptions && !options.isEdit && h('label', { class: 'muted' }, this.subscribe, ` ${say('subscribe')}`),
      this.error,
      h(
        'div',
        { class: 'bar' },
        this.#toolbar(),
        this.count,
        options.cancel && button(say('cancel'), { class: 'outlined', click: options.cancel }),
        this.submit,
      ),
    )
    this.limit = limits.body
    this.#count()
  }

  focus() {
    this.text.focus()
    this.text.setSelectionRange(this.text.value.length, this.text.value.length)
  }

  #toolbar() {
    const { features } = this.thread.ui
    const say = this.thread.say
    /** @type {HTMLElement[]} */
    const tools = []
    /** @param {keyof typeof ICONS} name @param {string} label @param {Record<string, any>} attributes */
    const tool = (name, label, attributes) => {
      tools.push(button(icon(name), { class: 'tool', 'aria-label': label, title: label, ...attributes }))
    }
    if (features.markdown_toolbar) {
      for (const mark of MARKS) tool(mark.name, say(mark.name), { click: () => this.#mark(mark) })
    }
    if (features.emoji_picker) {
      tool('emoji', say('emoji'), { 'aria-expanded': 'false', click: (event) => this.#toggleEmoji(event) })
    }
    const uploads = features.media && (!this.isGuest || features.guests)
    if (uploads) {
      const file = h('input', { type: 'file', accept: 'image/*', hidden: true, change: () => this.#take(null, file) })
      tool('image', say('upload_image'), { click: () => file.click() })
    }
    if (features.markdown_preview) {
      tools.push(button(say('preview'), { 'aria-pressed': 'false', click: (event) => this.#preview(event) }))
    }
    return h('div', { class: 'toolbar', role: 'toolbar', 'aria-label': say('comment'), keydown: byArrows }, ...tools)
  }

  #emojiPanel() {
    const pick = (/** @type {string} */ emoji) => {
      this.#insert(emoji)
      this.text.focus()
    }
    return h(
      'div',
      { class: 'emoji', role: 'group', 'aria-label': this.thread.say('emoji'), hidden: true, keydown: byArrows },
      ...EMOJI.map((emoji) => button(emoji, { click: () => pick(emoji) })),
    )
  }

  /** @param {Event} event */
  #toggleEmoji({ currentTarget }) {
    const isOpen = this.emoji.toggleAttribute('hidden') === false
    const tool = /** @type {HTMLElement} */ (currentTarget)
    tool.ariaExpanded = `${isOpen}`
    if (isOpen) /** @type {HTMLElement} */ (this.emoji.firstChild).focus()
  }

  /** Shows the HTML that would be published. @param {Event} event */
  async #preview({ currentTarget }) {
    const toggle = /** @type {HTMLElement} */ (currentTarget)
    const isOn = toggle.ariaPressed !== 'true'
    const body = this.text.value
    try {
      if (isOn) {
        const { data } = await this.thread.api.request('POST', 'markdown/preview', { body: { body } })
        showHtml(this.shown, data.html, body)
      }
      toggle.ariaPressed = `${isOn}`
      this.shown.hidden = !isOn
      this.text.hidden = isOn
      this.#fail('')
    } catch (error) {
      this.#fail(error)
    }
  }

  // The text

  #changed() {
    const { value } = this.text
    device.set(this.draft, value === this.options.text ? '' : value)
    this.#count()
    this.#suggest()
  }

  #count() {
    const left = this.limit - [...this.text.value].length
    this.count.textContent = left < 500 ? `${left}` : ''
    this.count.classList.toggle('error', left < 0)
  }

  /** Replaces the selection. @param {string} text @param {number} [start] @param {number} [end] */
  #insert(text, start = this.text.selectionStart, end = this.text.selectionEnd) {
    this.text.setRangeText(text, start, end, 'end')
    this.#changed()
  }

  /** @param {typeof MARKS[number]} mark */
  #mark(mark) {
    const { value, selectionStart: start, selectionEnd: end } = this.text
    this.text.focus()
    if ('line' in mark) {
      const begin = value.lastIndexOf('\n', start - 1) + 1
      this.#insert(value.slice(begin, end).replace(/^/gm, mark.line), begin, end)
      return
    }
    const selected = value.slice(start, end)
    this.#insert(mark.before + selected + mark.after)
    const from = start + mark.before.length
    // The address of a link whose text is there is what remains to be written.
    if (mark.name === 'link' && selected) this.text.setSelectionRange(from + selected.length + 2, from + selected.length + 10)
    else this.text.setSelectionRange(from, from + selected.length)
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return
    if (!this.people.hidden && this.#choose(event.key)) return event.preventDefault()
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
    const mark = this.thread.ui.features.markdown_toolbar && MARKS.find((mark) => 'key' in mark && mark.key === event.key)
    if (event.key === 'Escape' && this.options.cancel) this.options.cancel()
    else if (isCommand && event.key === 'Enter') this.element.requestSubmit()
    else if (isCommand && mark) this.#mark(mark)
    else return
    event.preventDefault()
  }

  // Mentions

  async #suggest() {
    const before = this.text.value.slice(0, this.text.selectionStart)
    const query = before.match(/(?:^|[^\w@])@([\p{L}\p{N}_]{1,50})$/u)?.[1]
    this.#search?.abort()
    this.people.hidden = true
    if (!query || !this.thread.ui.auth.authenticated) return
    const { signal } = (this.#search = new AbortController())
    try {
      await pause(150, signal)
      const { data } = await this.thread.api.get('users', { q: query.replace(/_/g, ' ').trim() || query }, signal)
      const people = /** @type {User[]} */ (data)
      this.people.replaceChildren(
        ...people.map((user, place) =>
          h(
            'div',
            {
              role: 'option',
              id: `${this.people.id}-${place}`,
              'aria-selected': `${place === 0}`,
              // Before the text loses the focus.
              mousedown: (event) => {
                event.preventDefault()
                this.#mention(user, query)
              },
            },
            avatar(user),
            user.name,
          ),
        ),
      )
      this.picks = people.map((user) => () => this.#mention(user, query))
      this.people.hidden = people.length === 0
      this.#select(0)
    } catch {
      // Nobody is suggested.
    }
  }

  /** @param {number} place */
  #select(place) {
    const options = [...this.people.children]
    options.forEach((option, at) => (option.ariaSelected = `${at === place}`))
    this.text.setAttribute('aria-activedescendant', this.people.hidden ? '' : (options[place]?.id ?? ''))
  }

  /** Whether the key was for the list of people. @param {string} key */
  #choose(key) {
    const options = [...this.people.children]
    const place = options.findIndex((option) => option.ariaSelected === 'true')
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      this.#select((place + (key === 'ArrowDown' ? 1 : options.length - 1)) % options.length)
    } else if (key === 'Enter' || key === 'Tab') this.picks?.[place]?.()
    else if (key === 'Escape') this.people.hidden = true
    else return false
    return true
  }

  /** @param {User} user @param {string} query */
  #mention(user, query) {
    const end = this.text.selectionStart
    this.#insert(`@${handleOf(user.name)} `, end - query.length - 1, end)
    this.people.hidden = true
  }

  // Images

  /**
   * Uploads the images of a paste, a drop or a choice.
   * @param {Event | null} event
   * @param {{ files: FileList | null } | null} source
   */
  #take(event, source) {
    const images = [...(source?.files ?? [])].filter((file) => file.type.startsWith('image/'))
    if (images.length === 0 || !this.thread.ui.features.media) return
    event?.preventDefault()
    images.forEach((file) => this.#upload(file))
  }

  /** @param {File} file */
  async #upload(file) {
    const say = this.thread.say
    if (file.size > this.thread.ui.limits.media_bytes) return this.#fail(say('too_large'))
    const place = `![${say('uploading')} ${file.name.replace(/[[\]]/g, '')}]()`
    this.#insert(place)
    this.#uploads += 1
    let image = ''
    try {
      const body = new FormData()
      body.append('file', file)
      const { url } = await this.thread.api.request('POST', 'media', { body, key: newKey() })
      image = `![${say('image_description')}](${url})`
      this.#fail('')
    } catch (error) {
      this.#fail(error)
    }
    this.#uploads -= 1
    const start = this.text.value.indexOf(place)
    if (start < 0) return
    const isHere = this.text.selectionStart === start + place.length
    this.text.setRangeText(image, start, start + place.length, 'preserve')
    // Whoever has not gone on writing describes the image now.
    if (isHere && image) this.text.setSelectionRange(start + 2, start + 2 + say('image_description').length)
    this.#changed()
  }

  // Sending

  /** @param {unknown} error an error, or a text */
  #fail(error) {
    this.error.textContent = typeof error === 'string' ? error : this.thread.explain(error)
  }

  /** @param {Event} event */
  async #submit(event) {
    event.preventDefault()
    if (this.#busy || this.#uploads > 0) return
    /** @type {Record<string, any>} */
    const fields = { body: this.text.value }
    if (this.isGuest) {
      fields.guest_name = this.name.value
      if (this.email.value) fields.guest_email = this.email.value
      device.set('name', this.name.value)
      memory.email = this.email.value
    }
    if (this.subscribe.checked) fields.subscribe_to_replies = true
    const content = JSON.stringify(fields)
    if (content !== this.#last.content) this.#last = { content, key: newKey() }
    this.#setBusy(true)
    this.#fail('')
    try {
      await this.options.send(fields, this.#last.key)
      this.#last.content = ''
      if (this.text.value === fields.body) {
        this.text.value = ''
        device.set(this.draft, '')
      }
      this.#count()
    } catch (error) {
      this.#fail(error)
    }
    this.#setBusy(false)
  }

  /** @param {boolean} busy */
  #setBusy(busy) {
    this.#busy = busy
    this.submit.ariaDisabled = `${busy}`
    this.element.ariaBusy = `${busy}`
  }
}

/** Moves the focus among buttons with the arrow keys. @param {KeyboardEvent} event */
function byArrows(event) {
  const buttons = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll('button')]
  const place = buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target))
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: buttons.length - 1 - place }[event.key]
  if (place < 0 || step === undefined) return
  event.preventDefault()
  buttons.at((place + step) % buttons.length)?.focus()
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} rejected when aborted */
const pause = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener('abort', () => (clearTimeout(timer), reject(signal.reason)))
  })

/** The picture of a user, or the first letter of the name. @param {User} user */
function avatar({ name, avatar }) {
  const letter = h('span', { class: 'avatar letter', 'aria-hidden': 'true' }, [...name][0]?.toUpperCase())
  if (!avatar) return letter
  const picture = h('img', {
    class: 'avatar',
    src: avatar,
    alt: '',
    loading: 'lazy',
    referrerpolicy: 'no-referrer',
    error: () => picture.replaceWith(letter),
  })
  return picture
}

// Comments

/** Replies below this depth are refused. */
const MAX_DEPTH = 10

/** One comment on the page, with its replies. */
class CommentView {
  /** The next page of its replies; null when none is left. @type {string | null} */
  #cursor = ''
  /** Whether a like is on its way. */
  #isLiking = false

  /** @param {Thread} thread @param {Comment} comment @param {CommentView | null} parent */
  constructor(thread, comment, parent) {
    this.thread = thread
    this.comment = comment
    this.parent = parent
    this.depth = parent ? parent.depth + 1 : 0
    this.head = h('header')
    this.body = h('div', { class: 'body', part: 'body' })
    this.actions = h('div', { class: 'actions', part: 'actions' })
    /** Where this comment is answered or edited. */
    this.slot = h('div')
    this.list = h('div', { class: 'replies' })
    this.more = button('', { class: 'more', click: () => this.#loadReplies() })
    const { id } = comment
    this.element = h(
      'article',
      { id: `comment-${id}`, tabindex: -1, 'aria-labelledby': `author-${id}` },
      comment.is_deleted ? h('span', { class: 'avatar' }) : avatar(comment.user),
      h('div', { class: 'content' }, this.head, this.body, this.actions, this.slot),
      h('div', { class: 'below' }, this.list, this.more),
    )
    this.show(comment)
    thread.views.set(id, this)
    comment.replies.forEach((reply) => this.addReply(reply))
    this.#showMore()
  }

  /** Shows the comment as it is now. @param {Comment} comment */
  show(comment) {
    const { say, ui, language } = this.thread
    const { id, user } = comment
    this.comment = comment
    this.element.setAttribute('part', `comment${this.parent ? ' reply' : ''}${comment.pinned ? ' pinned' : ''}`)
    if (comment.is_deleted) {
      this.body.replaceChildren(h('span', { class: 'muted', id: `author-${id}` }, say('deleted')))
      return
    }
    const badge = (/** @type {unknown} */ isShown, /** @type {string} */ text) => isShown && h('span', { class: 'badge' }, text)
    const { badges } = ui.features
    this.head.replaceChildren(
      h('b', { part: 'author', id: `author-${id}`, dir: 'auto' }, user.name),
      ...[
        badge(badges && comment.is_author, say('author')),
        badge(badges && comment.is_moderator, say('moderator')),
        badge(badges && comment.is_guest, say('guest')),
        badge(comment.pinned, say('pinned')),
        badge(!comment.is_approved, say('pending_approval')),
      ].filter((node) => node instanceof Node),
      h(
        'a',
        { class: 'muted', href: `${location.pathname}${location.search}#comment-${id}`, click: () => this.thread.reveal(id) },
        h('time', { datetime: comment.created_at, title: inFull(comment.created_at, language) }, ago(comment.created_at, language)),
      ),
      comment.updated_at > comment.created_at ? h('span', { class: 'muted', title: inFull(comment.updated_at, language) }, say('edited')) : '',
    )
    showHtml(this.body, comment.html, comment.body)
    this.#showActions()
  }

  #showActions() {
    const { thread, comment } = this
    const { say, ui } = thread
    const { features } = ui
    const isWritable = !features.read_only && !ui.auth.banned
    this.like = button(icon('heart'), { class: 'like', click: () => this.#like() })
    const action = (/** @type {unknown} */ isOffered, /** @type {string} */ name, /** @type {() => void} */ click) =>
      isOffered ? [button(name, { class: 'action', click })] : []
    this.reported = button(say('report'), { class: 'action', click: () => this.#report() })
    this.actions.replaceChildren(
      this.like,
      ...action(isWritable && features.nesting && comment.is_approved && this.depth < MAX_DEPTH, say('reply'), () => this.#reply()),
      ...action(isWritable && comment.can.update, say('edit'), () => this.#edit()),
      ...action(isWritable && comment.can.delete, say('delete'), () => this.#delete()),
      ...action(isWritable && comment.can.pin, comment.pinned ? say('unpin') : say('pin'), () => this.#pin()),
      ...(isWritable && features.reporting && !comment.can.update ? [this.reported] : []),
    )
    this.#showLike()
    this.#showReported()
  }

  // Likes, reports, pins

  #showLike() {
    const { say, ui } = this.thread
    const { liked, likes_count: count } = this.comment
    this.like?.replaceChildren(icon('heart'), count ? `${count}` : '')
    this.like?.setAttribute('aria-label', `${say('like')}${count ? ` ${count}` : ''}`)
    this.like?.setAttribute('aria-pressed', `${liked}`)
    this.like?.toggleAttribute('disabled', ui.features.read_only || ui.auth.banned)
  }

  /** Shows the like at once and takes it back if the API refuses it. */
  async #like() {
    const { thread, comment } = this
    const { ui, api } = thread
    if (!ui.auth.authenticated && !ui.guest.likes) return thread.signIn()
    if (this.#isLiking) return
    this.#isLiking = true
    const { liked, likes_count } = comment
    const show = (/** @type {{ liked: boolean, likes_count: number }} */ like) => {
      Object.assign(this.comment, like)
      this.#showLike()
    }
    show({ liked: !liked, likes_count: likes_count + (liked ? -1 : 1) })
    try {
      show(await api.request('POST', `comments/${comment.id}/like`))
      thread.hasWritten()
    } catch (error) {
      show({ liked, likes_count })
      thread.announce(thread.explain(error))
    }
    this.#isLiking = false
  }

  #showReported() {
    if (!this.comment.reported || !this.reported) return
    this.reported.textContent = this.thread.say('reported')
    this.reported.ariaDisabled = 'true'
  }

  #report() {
    const { thread, comment } = this
    const { say, ui, api } = thread
    if (comment.reported) return
    const details = h('textarea', { rows: 3, maxlength: ui.limits.report_details, 'aria-label': say('report_details'), placeholder: say('report_details') })
    const reasons = ui.report_reasons.map((reason, place) =>
      h('label', null, h('input', { type: 'radio', name: 'reason', value: reason, required: true, checked: place === 0 }), ` ${say(reason)}`),
    )
    const key = newKey()
    thread.ask(say('report_reason'), [...reasons, details], say('report'), async (form) => {
      const reason = new FormData(form).get('reason')
      try {
        const body = { reason, additional_details: details.value || null }
        await api.request('POST', `comments/${comment.id}/report`, { body, key })
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'already_reported') throw error
      }
      comment.reported = true
      this.#showReported()
      thread.hasWritten()
      thread.announce(say('report_thanks'))
    })
  }

  async #pin() {
    const { thread, comment } = this
    try {
      const { data } = await thread.api.request(comment.pinned ? 'DELETE' : 'POST', `comments/${comment.id}/pin`)
      for (const view of thread.views.values()) if (view.comment.pinned) view.show({ ...view.comment, pinned: false })
      this.show(data)
      this.element.focus({ preventScroll: true })
    } catch (error) {
      thread.announce(thread.explain(error))
    }
  }

  // Writing

  /** Opens an editor below the comment. @param {Partial<Purpose> & Pick<Purpose, 'send'>} options */
  #write(options) {
    const { say } = this.thread
    const close = () => {
      this.slot.replaceChildren()
      this.body.hidden = false
      this.element.focus({ preventScroll: true })
    }
    const editor = new Editor(this.thread, {
      draft: `reply ${this.comment.id}`,
      placeholder: say('write_reply'),
      action: say('reply'),
      cancel: close,
      ...options,
    })
    this.slot.replaceChildren(editor.element)
    editor.focus()
    return close
  }

  #reply() {
    const { thread, comment } = this
    const close = this.#write({
      send: async (fields, key) => {
        const reply = await thread.post({ ...fields, parent_id: comment.id }, key)
        comment.replies_count += 1
        close()
        this.addReply(reply).element.focus()
      },
    })
  }

  #edit() {
    const { thread, comment } = this
    const { say, api } = thread
    const close = this.#write({
      draft: `edit ${comment.id}`,
      text: comment.body,
      placeholder: say('edit'),
      action: say('save'),
      isEdit: true,
      send: async ({ body }) => {
        const { data } = await api.request('PATCH', `comments/${comment.id}`, { body: { body } })
        close()
        this.show(data)
        thread.announce(say('edited'))
      },
    })
    this.body.hidden = true
  }

  #delete() {
    const { thread, comment, parent } = this
    const { say, api } = thread
    thread.ask(say('delete_confirm'), [], say('delete'), async () => {
      await api.request('DELETE', `comments/${comment.id}`)
      const next = this.element.nextElementSibling ?? parent?.element
      this.#forget()
      this.element.remove()
      if (parent) {
        parent.comment.replies_count -= 1
        parent.#showMore()
      }
      thread.showEmpty()
      thread.announce(say('deleted'))
      return /** @type {HTMLElement | null} */ (next)
    })
  }

  /** Takes this comment and its replies out of the thread's register. */
  #forget() {
    this.thread.views.delete(this.comment.id)
    for (const view of this.thread.views.values()) if (view.parent === this) view.#forget()
  }

  // Replies

  /** Shows a reply in its place among the others, oldest first. @param {Comment} reply */
  addReply(reply) {
    const known = this.thread.views.get(reply.id)
    if (known) return known
    const view = new CommentView(this.thread, reply, this)
    const later = [...this.list.children].find((element) => idOf(element) > reply.id)
    this.list.insertBefore(view.element, later ?? null)
    this.#showMore()
    return view
  }

  #showMore() {
    const left = this.comment.replies_count - this.list.childElementCount
    this.more.hidden = left <= 0 || this.#cursor === null
    this.more.textContent = `${this.thread.say('view_replies')} (${left})`
  }

  async #loadReplies() {
    const { api } = this.thread
    this.more.ariaBusy = 'true'
    try {
      const { data, meta } = await api.get(`comments/${this.comment.id}/replies`, { cursor: this.#cursor, per_page: 20 })
      const added = /** @type {Comment[]} */ (data).filter(({ id }) => !this.thread.views.has(id))
      this.#cursor = meta.next_cursor
      const views = added.map((reply) => this.addReply(reply))
      this.#showMore()
      views[0]?.element.focus({ preventScroll: true })
    } catch (error) {
      this.thread.announce(this.thread.explain(error))
      this.more.textContent = `${this.thread.explain(error)} · ${this.thread.say('retry')}`
    }
    this.more.ariaBusy = 'false'
  }
}

/** The id of the comment that an article shows. @param {Element} article */
const idOf = (article) => Number(article.id.slice('comment-'.length))

// The thread

const SORTS = ['newest', 'oldest', 'most_liked', 'most_replied']

/** What may have to be said before the first answer with labels. A test compares it with the labels of the API. */
const FIRST_WORDS = /** @type {Record<string, Record<string, string>>} */ ({
  en: { error: 'Something went wrong', offline: 'No connection', retry: 'Try again' },
  es: { error: 'Algo ha salido mal', offline: 'Sin conexión', retry: 'Reintentar' },
  de: { error: 'Etwas ist schiefgelaufen', offline: 'Keine Verbindung', retry: 'Erneut versuchen' },
  fr: { error: 'Une erreur est survenue', offline: 'Pas de connexion', retry: 'Réessayer' },
})

/** The labels that explain a refusal. */
const REASONS = /** @type {Record<string, string>} */ ({
  offline: 'offline',
  comment_banned: 'banned',
  read_only: 'read_only',
  unauthenticated: 'sign_in_to_comment',
  rate_limited: 'rate_limited',
  payload_too_large: 'too_large',
})

/** A thread in the shadow root of its element. */
class Thread {
  api = new Client()
  /** Every comment on the page by its id. @type {Map<number, CommentView>} */
  views = new Map()
  /** @type {Ui} */
  ui = /** @type {any} */ (null)
  language = ''
  path = ''
  sort = ''
  #ids = 0
  /** Stops what was begun for the thread or the visitor before. */
  #work = new AbortController()
  /** The query of the next page, null after the last. @type {Record<string, any> | null} */
  #next = null
  /** Comments that `changes` has named before. @type {Set<number>} */
  #seen = new Set()

  /** @param {CommentThread} host @param {ShadowRoot} root */
  constructor(host, root) {
    this.host = host
    this.status = h('p', { class: 'visually-hidden', role: 'status' })
    this.section = h('section')
    this.list = h('div', { class: 'list' })
    this.fresh = button('', { class: 'primary fresh', hidden: true, click: () => this.#showFresh() })
    this.foot = h('div', { class: 'foot' })
    root.append(this.section, this.status)
    root.adoptedStyleSheets = [styles, threadStyles]
    this.#showSkeleton()
  }

  newId() {
    this.#ids += 1
    return `part-${this.#ids}`
  }

  /** The text of a label in the reader's language. @param {string} key */
  say = (key) => {
    const first = FIRST_WORDS[this.language.slice(0, 2)] ?? FIRST_WORDS.en
    return this.host.labels?.[key] ?? this.ui?.labels[key] ?? first[key] ?? key
  }

  /** @param {unknown} error */
  explain(error) {
    if (!(error instanceof ApiError)) throw error
    const fields = Object.values(error.errors).flat()
    const label = REASONS[error.code]
    if (label) return this.say(label)
    return error.status === 422 ? [...new Set([error.message, ...fields])].join(' ') : this.say('error')
  }

  /** Speaks to those who cannot see. @param {string} text */
  announce(text) {
    this.status.textContent = text
  }

  /** @param {string} name @param {object} [detail] @returns {boolean} whether the host let the default happen */
  emit(name, detail) {
    return this.host.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }))
  }

  signIn() {
    if (this.emit('comment-sign-in')) this.announce(this.say('sign_in_to_comment'))
  }

  /** From now on this guest's reads come from no shared cache. */
  hasWritten() {
    if (this.ui.auth.authenticated) return
    this.api.mine = true
    device.set(`${API} mine`, '1')
  }

  stop() {
    this.#work.abort()
  }

  // Loading

  /** Shows the thread from its beginning. */
  async load() {
    this.#work.abort()
    const { signal } = (this.#work = new AbortController())
    const { type, record, sort, theme } = this.host
    const path = `${encodeURIComponent(type)}/${encodeURIComponent(record)}`
    if (path !== this.path) this.#showSkeleton()
    this.path = path
    this.language = this.api.language = languageOf(this.host)
    this.api.mine = device.get(`${API} mine`) === '1'
    if (!this.sort && sort && SORTS.includes(sort)) this.sort = sort
    this.section.ariaBusy = 'true'
    try {
      const answer = await this.#first(signal)
      if (signal.aborted) return
      this.ui = answer.ui
      this.#show(answer)
      this.showTheme()
      this.emit('comment-ready')
      await this.revealAddressed()
      this.#watch(signal)
    } catch (error) {
      if (!signal.aborted) this.#showFailure(this.section, error, () => this.load())
    }
    if (!signal.aborted) this.section.ariaBusy = 'false'
  }

  /** The first page with the configuration. A token that was not accepted is replaced once. @param {AbortSignal} signal */
  async #first(signal) {
    const ask = () => this.api.get(`${this.path}/comments`, { include: 'ui', cursor: '', sort: this.sort || null }, signal)
    const token = await this.api.token()
    const answer = await ask()
    if (!token || answer.ui.auth.authenticated) return answer
    const isRenewed = await this.api.renew(token)
    if (!isRenewed) this.api.forget()
    return isRenewed ? ask() : answer
  }

  /** @param {{ data: Comment[], meta: any }} answer */
  #show(answer) {
    const { auth, features } = this.ui
    const { say } = this
    const focused = this.host.shadowRoot?.activeElement?.id
    this.views.clear()
    this.list.replaceChildren()
    const sorts = SORTS.map((sort) => h('option', { value: sort, selected: sort === (this.sort || this.ui.default_sort) }, say(sort)))
    const select = h('select', { 'aria-label': say('sort'), change: () => this.#sortBy(select.value) }, ...sorts)
    this.section.ariaLabel = say('comments')
    this.section.className = ''
    this.section.replaceChildren(
      h('div', { class: 'top' }, h('h2', null, say('comments')), features.sorting && select),
      this.#composer(auth, features),
      this.fresh,
      this.list,
      this.foot,
    )
    this.#add(answer)
    if (focused) this.host.shadowRoot?.getElementById(focused)?.focus({ preventScroll: true })
  }

  /** Where comments are written, or why they are not. @param {Ui['auth']} auth @param {Ui['features']} features */
  #composer(auth, features) {
    const { say } = this
    if (features.read_only) return h('p', { class: 'notice' }, say('read_only'))
    if (auth.banned) return h('p', { class: 'notice' }, say('banned'))
    if (!auth.can_comment) {
      return h('p', { class: 'notice' }, button(say('sign_in_to_comment'), { class: 'primary', click: () => this.signIn() }))
    }
    const editor = new Editor(this, {
      draft: 'new',
      placeholder: say('write_comment'),
      action: say('send'),
      send: async (fields, key) => {
        const comment = await this.post(fields, key)
        const view = new CommentView(this, comment, null)
        this.#prepend(view)
        this.showEmpty()
        view.element.focus()
      },
    })
    return editor.element
  }

  /** Publishes a comment. @param {object} body @param {string} key @returns {Promise<Comment>} */
  async post(body, key) {
    const { data } = await this.api.request('POST', `${this.path}/comments`, { body, key })
    this.hasWritten()
    this.announce(this.say(data.is_approved ? 'posted' : 'pending_approval'))
    this.emit('comment-posted', { id: data.id })
    return data
  }

  /** Puts a top-level comment first, after the pinned one. @param {CommentView} view */
  #prepend(view) {
    const pinned = [...this.views.values()].find((other) => other.comment.pinned && other.element.parentNode === this.list)
    if (pinned) pinned.element.after(view.element)
    else this.list.prepend(view.element)
    return view
  }

  /** Appends a page. @param {{ data: Comment[], meta: any }} page @returns {CommentView[]} */
  #add({ data, meta }) {
    const added = data.filter(({ id }) => !this.views.has(id)).map((comment) => new CommentView(this, comment, null))
    this.list.append(...added.map((view) => view.element))
    const isWalk = 'next_cursor' in meta
    const hasMore = isWalk ? meta.next_cursor : meta.current_page < meta.last_page
    this.#next = hasMore ? { sort: this.sort || null, ...(isWalk ? { cursor: meta.next_cursor } : { page: meta.current_page + 1 }) } : null
    this.foot.replaceChildren(...(this.#next ? [button(this.say('load_more'), { class: 'outlined', click: () => this.#loadMore() })] : []))
    this.showEmpty()
    return added
  }

  showEmpty() {
    const empty = this.list.querySelector('.empty')
    if (this.views.size > 0) empty?.remove()
    else if (!empty) this.list.append(h('p', { class: 'empty muted' }, this.say('no_comments')))
  }

  async #loadMore() {
    const { signal } = this.#work
    this.foot.ariaBusy = 'true'
    try {
      const added = this.#add(await this.api.get(`${this.path}/comments`, this.#next ?? {}, signal))
      added[0]?.element.focus({ preventScroll: true })
    } catch (error) {
      if (!signal.aborted) this.#showFailure(this.foot, error, () => this.#loadMore())
    }
    this.foot.ariaBusy = 'false'
  }

  /** @param {string} sort */
  async #sortBy(sort) {
    this.sort = sort
    const { signal } = this.#work
    this.list.ariaBusy = 'true'
    try {
      const answer = await this.api.get(`${this.path}/comments`, { cursor: '', sort }, signal)
      this.views.clear()
      this.list.replaceChildren()
      this.#add(answer)
    } catch (error) {
      if (!signal.aborted) this.#showFailure(this.foot, error, () => this.#sortBy(sort))
    }
    this.list.ariaBusy = 'false'
  }

  #showSkeleton() {
    this.section.className = 'waiting'
    this.section.replaceChildren(...[0, 1, 2, 3].map(() => h('div', { class: 'skeleton' })))
  }

  /** @param {HTMLElement} place @param {unknown} error @param {() => void} again */
  #showFailure(place, error, again) {
    const retry = () => {
      removeEventListener('online', retry)
      again()
    }
    addEventListener('online', retry, { once: true, signal: this.#work.signal })
    place.replaceChildren(
      h('p', { class: 'notice', role: 'alert' }, `${this.explain(error)} `, button(this.say('retry'), { class: 'outlined', click: retry })),
    )
  }

  showTheme() {
    const theme = this.host.getAttribute('theme') || this.ui?.theme
    for (const name of ['light', 'dark']) this.section.classList.toggle(name, theme === name)
  }

  // One comment anywhere

  /** Shows the comment that the address of the page names. */
  async revealAddressed() {
    const id = location.hash.match(/^#comment-(\d+)$/)?.[1]
    if (id && this.ui) await this.reveal(Number(id))
  }

  /** Shows and focuses a comment, wherever it is in the thread. @param {number} id */
  async reveal(id) {
    try {
      if (!this.views.has(id)) await this.#fetch(id)
    } catch (error) {
      this.announce(this.explain(error))
    }
    const element = this.views.get(id)?.element
    this.section.querySelector('.target')?.classList.remove('target')
    element?.classList.add('target')
    element?.scrollIntoView({ block: 'center' })
    element?.focus({ preventScroll: true })
  }

  /** Puts a comment and those above it where they belong. @param {number} id */
  async #fetch(id) {
    const { data, ancestors, thread } = await this.api.get(`comments/${id}`, {}, this.#work.signal)
    if (thread.type !== this.host.type || thread.id !== this.host.record) return
    /** @type {CommentView | null} */
    let parent = null
    for (const comment of /** @type {Comment[]} */ ([...ancestors, data])) {
      if (parent) parent = /** @type {CommentView} */ (parent).addReply(comment)
      else parent = this.views.get(comment.id) ?? this.#prepend(new CommentView(this, comment, null))
    }
    this.showEmpty()
  }

  // New comments of others

  /** Asks for changes while the page is visible, as often as the API allows. @param {AbortSignal} signal */
  async #watch(signal) {
    if (!this.ui.features.realtime) return
    let isFirst = true
    while (!signal.aborted) {
      let wait = 120
      try {
        const { data } = await this.api.request('GET', `${this.path}/changes`, { signal, anonymous: true })
        wait = data.next
        if (isFirst) this.#seen = new Set(data.newest)
        isFirst = false
        this.#announceFresh(data.newest)
      } catch {
        // It asks again later.
      }
      await pause(wait * 1000, signal).catch(() => {})
      while (document.hidden && !signal.aborted) await pause(1000, signal).catch(() => {})
    }
  }

  /** @param {number[]} newest */
  #announceFresh(newest) {
    const ids = newest.filter((id) => !this.#seen.has(id) && !this.views.has(id))
    this.waiting = ids
    this.fresh.hidden = ids.length === 0
    this.fresh.textContent = `${ids.length} ${this.say(ids.length === 1 ? 'new_comment' : 'new_comments')}`
    if (ids.length) this.announce(this.fresh.textContent)
  }

  async #showFresh() {
    const ids = this.waiting ?? []
    this.fresh.hidden = true
    await Promise.allSettled(ids.toReversed().map((id) => this.#fetch(id)))
    ids.forEach((id) => this.#seen.add(id))
    if (ids[0]) await this.reveal(ids[0])
  }

  // Dialogs

  /**
   * Asks the reader in a dialog. The focus returns to where it was, or goes to what `act` returns.
   * @param {string} title
   * @param {Node[]} fields
   * @param {string} action
   * @param {(form: HTMLFormElement) => Promise<HTMLElement | null | void>} act
   */
  ask(title, fields, action, act) {
    const opener = /** @type {HTMLElement | null} */ (this.host.shadowRoot?.activeElement)
    const error = h('p', { class: 'error', role: 'alert' })
    const id = this.newId()
    /** @type {HTMLElement | null | void} */
    let next
    const form = h(
      'form',
      {
        submit: async (event) => {
          event.preventDefault()
          try {
            next = await act(form)
            dialog.close()
          } catch (reason) {
            error.textContent = this.explain(reason)
          }
        },
      },
      h('h3', { id }, title),
      ...fields,
      error,
      h('div', { class: 'bar' }, button(this.say('cancel'), { class: 'outlined', click: () => dialog.close() }), h('button', { class: 'primary', part: 'button' }, action)),
    )
    const close = () => {
      dialog.remove()
      const target = next ?? opener
      target?.focus({ preventScroll: true })
    }
    const dialog = h('dialog', { 'aria-labelledby': id, close }, form)
    this.section.append(dialog)
    dialog.showModal()
  }

  /** Brings the times up to date. */
  showTimes() {
    for (const time of this.section.querySelectorAll('time')) time.textContent = ago(time.dateTime, this.language)
  }
}

const threadStyles = sheet(`
h2, h3 { margin: 0; font-size: 1.125em; line-height: 1.3 }
h3 { margin-block-end: .75em }
.top, .bar, header, .actions, .guest { display: flex; flex-wrap: wrap; align-items: center; gap: .25em .5em }
.top { justify-content: space-between; min-block-size: 36px; margin-block-end: .75em }
.waiting { min-block-size: 100vh }
.skeleton { block-size: 4.5em; margin-block-end: 1.5em; border-radius: var(--radius); background: var(--border); opacity: .4; animation: breathe 1.6s infinite alternate }
@keyframes breathe { to { opacity: .2 } }
@media (prefers-reduced-motion) { .skeleton { animation: none } }
.editor { margin-block: .5em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface) }
.editor:focus-within { border-color: var(--accent) }
.field { position: relative }
.editor textarea { display: block; inline-size: 100%; min-block-size: 5.75em; max-block-size: 60vh; padding: .75em; border: 0; background: none; resize: vertical; field-sizing: content; outline: 0 }
.preview { min-block-size: 5.75em; padding: .75em; border-radius: var(--radius) }
.editor .guest, .bar, .editor > label, .editor > .error, .emoji { margin: 0; padding: .25em .5em .5em }
.guest input { flex: 1 1 12em; min-inline-size: 0 }
.error:empty { display: none }
.bar { justify-content: end }
.toolbar { flex: 1; display: flex; flex-wrap: wrap; color: var(--muted) }
[aria-pressed=true], [aria-expanded=true] { color: var(--accent) }
.emoji { display: flex; flex-wrap: wrap }
.emoji button { min-inline-size: 36px; min-block-size: 36px; font-size: 1.125em }
.people { position: absolute; z-index: 2; inset-block-start: 100%; inset-inline-start: .5em; min-inline-size: 14em; padding: .25em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface); box-shadow: 0 4px 20px #0002 }
.people div { display: flex; align-items: center; gap: .5em; padding: .25em .5em; border-radius: var(--radius); cursor: pointer }
.people [aria-selected=true] { background: var(--tint) }
.people .avatar { inline-size: 24px; block-size: 24px; font-size: .75em }
svg { inline-size: 1.125em; block-size: 1.125em; vertical-align: -.2em; fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }
.notice { margin: .5em 0; padding: .75em 1em; border-radius: var(--radius); background: var(--tint) }
.list { margin-block-start: 1.5em }
.empty { padding-block: 2em; text-align: center }
article { display: grid; grid-template-columns: 36px minmax(0, 1fr); column-gap: .75em; margin-block-end: 1.25em; border-radius: var(--radius); scroll-margin: 1em }
article:focus-visible { outline-offset: 6px }
.target > .content { box-shadow: 0 0 0 .5em var(--tint); border-radius: 2px; background: var(--tint) }
.below { grid-column: 2; min-inline-size: 0 }
.replies > article:first-child { margin-block-start: 1em }
.replies article { grid-template-columns: 28px minmax(0, 1fr); margin-block-end: 1em; font-size: 1em }
.replies .avatar { inline-size: 28px; block-size: 28px; font-size: .875em }
.replies .replies .below { grid-column: 1 / -1 }
.letter { display: grid; place-items: center; color: var(--muted); font-weight: 600 }
header { font-size: .9375em }
header a { font-size: .875em; text-decoration: none }
header a:hover { text-decoration: underline }
a.muted { color: var(--muted) }
.body { overflow-wrap: anywhere; unicode-bidi: plaintext }
.plain { white-space: pre-wrap }
.body > * { margin-block: .5em; unicode-bidi: plaintext; text-align: start }
.body > :first-child { margin-block-start: .125em }
.body > :last-child { margin-block-end: .25em }
.body :is(h1, h2, h3, h4, h5, h6) { font-size: 1.0625em }
.body :is(ul, ol) { padding-inline-start: 1.5em }
.body img { max-inline-size: 100%; block-size: 14em; object-fit: scale-down; border-radius: var(--radius) }
.body :is(pre, table) { overflow: auto; max-block-size: 30em; padding: .75em; border-radius: var(--radius); background: var(--tint) }
.body table { display: block }
.body code { font-size: .875em; unicode-bidi: isolate }
.body blockquote { margin-inline: 0; padding-inline-start: .875em; border-inline-start: 3px solid var(--border); color: var(--muted) }
.actions { margin-inline-start: -.5em; color: var(--muted); font-size: .875em }
.like svg { margin-inline-end: .25em }
.like[aria-pressed=true] svg { fill: currentColor }
.more { padding: 0 .5em; margin-inline-start: -.5em; color: var(--accent); font-size: .875em }
.foot { text-align: center }
.fresh { position: sticky; z-index: 1; inset-block-start: .5em; display: block; margin: 0 auto -36px; border-radius: 2em; box-shadow: 0 2px 12px #0003 }
.count { min-inline-size: 2.5em; text-align: end; font-size: .875em }
dialog label { display: block; padding-block: .125em }
dialog textarea { inline-size: 100%; margin-block: .5em }
[aria-busy=true] > .list, .list[aria-busy=true], .foot[aria-busy=true], .more[aria-busy=true] { opacity: .6 }
@media (hover: hover) {
  .action { opacity: 0 }
  .content:hover .action, .content:focus-within .action, article:focus > .content .action { opacity: 1 }
}
`)

// The elements

/** `<comment-thread type="posts" record="42">` */
class CommentThread extends HTMLElement {
  static observedAttributes = ['type', 'record', 'sort', 'lang', 'theme']

  #thread = new Thread(this, this.attachShadow({ mode: 'open' }))
  #isScheduled = false
  /** Whether the element has come near, so that its thread is wanted. */
  #isNear = false
  /** @type {AbortController | undefined} */
  #connection
  /** Labels of the host, which come before those of the API. @type {Record<string, string> | undefined} */
  labels = /** @type {any} */ (this).labels

  constructor() {
    super()
    this.#adopt()
  }

  /** Takes what the page has set before this module was loaded. */
  #adopt() {
    if (!Object.hasOwn(this, 'auth')) return
    const { auth } = this
    delete (/** @type {any} */ (this).auth)
    this.auth = auth
  }

  /** A token, or a function that answers one, a promise of one, or null for a guest. */
  get auth() {
    return this.#thread.api.auth
  }
  set auth(auth) {
    this.#thread.api.auth = auth ?? null
    this.#schedule()
  }

  get type() {
    return this.getAttribute('type') ?? ''
  }
  get record() {
    return this.getAttribute('record') ?? ''
  }
  get sort() {
    return this.getAttribute('sort')
  }
  get theme() {
    return this.getAttribute('theme')
  }

  connectedCallback() {
    const { signal } = (this.#connection = new AbortController())
    const near = new IntersectionObserver(
      ([entry]) => {
        if (!entry.isIntersecting) return
        near.disconnect()
        this.#isNear = true
        this.#schedule()
      },
      { rootMargin: '600px' },
    )
    const languages = new MutationObserver(() => this.attributeChangedCallback('lang'))
    languages.observe(document, { subtree: true, attributeFilter: ['lang'] })
    const minutes = setInterval(() => this.#thread.showTimes(), 60_000)
    addEventListener('hashchange', () => this.#thread.revealAddressed(), { signal })
    signal.addEventListener('abort', () => {
      near.disconnect()
      languages.disconnect()
      clearInterval(minutes)
    })
    if (this.#isNear || this.getAttribute('loading') === 'eager' || location.hash.startsWith('#comment-')) {
      this.#isNear = true
      this.#schedule()
    } else near.observe(this)
  }

  disconnectedCallback() {
    this.#connection?.abort()
    this.#thread.stop()
  }

  /** @param {string} name */
  attributeChangedCallback(name) {
    if (name === 'theme') this.#thread.showTheme()
    else if (name !== 'lang' || languageOf(this) !== this.#thread.language) this.#schedule()
  }

  /** Loads once after all changes of one moment. */
  #schedule() {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      if (this.isConnected && this.#isNear && this.type && this.record) this.#thread.load()
    })
  }
}

/** `<comment-count type="posts" record="42">` */
class CommentCount extends HTMLElement {
  static observedAttributes = ['type', 'record']
  /** Elements whose number is to be asked for. @type {Set<CommentCount>} */
  static #waiting = new Set()

  get thread() {
    return `${this.getAttribute('type')}/${this.getAttribute('record')}`
  }

  connectedCallback() {
    this.attributeChangedCallback()
  }

  attributeChangedCallback() {
    if (CommentCount.#waiting.size === 0) setTimeout(CommentCount.#ask, 50)
    CommentCount.#waiting.add(this)
  }

  static async #ask() {
    const elements = [...CommentCount.#waiting].filter((element) => /^[a-z][\w-]*\/[\w.~:-]{1,128}$/i.test(element.thread))
    CommentCount.#waiting.clear()
    /** @type {string[][]} */
    const requests = []
    for (const thread of new Set(elements.map((element) => element.thread))) {
      const last = requests.at(-1)
      if (last && last.length < 50 && [...last, thread].join().length < 5000) last.push(thread)
      else requests.push([thread])
    }
    for (const threads of requests) {
      const { data } = await new Client().request('GET', 'counts', { query: { threads: threads.join() }, anonymous: true })
      for (const element of elements) if (element.thread in data) element.textContent = data[element.thread]
    }
  }
}

for (const [name, element] of /** @type {const} */ ([['comment-thread', CommentThread], ['comment-count', CommentCount]])) {
  if (!customElements.get(name)) customElements.define(name, element)
}
