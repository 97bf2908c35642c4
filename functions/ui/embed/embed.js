/**
 * Comment threads on any page: `<comment-thread>` and `<comment-count>`.
 *
 * One module without imports and without a build step: browsers load this file as it is. From top to bottom: the API,
 * comments' HTML, building elements, languages and dates, styles.
 *
 * @typedef {{ id: number | null, name: string, avatar: string }} User
 * @typedef {{
 *   id: number, body: string, html: string, parent_id: number | null, is_approved: boolean, user: User,
 *   likes_count: number, liked: boolean, reported: boolean, replies_count: number, replies: Comment[],
 *   can: { update: boolean, delete: boolean, pin: boolean }, is_author: boolean, is_moderator: boolean,
 *   is_guest: boolean, is_deleted?: boolean, pinned: boolean, pinned_at: string | null,
 *   created_at: string, updated_at: string,
 * }} Comment
 * @typedef {{
 *   labels: Record<string, string>, features: Record<string, boolean>, report_reasons: string[], theme: string,
 *   default_sort: string, per_page: number, users_route_prefix: string,
 *   guest: { require_email: boolean, show_gravatar: boolean, likes: boolean },
 *   auth: { authenticated: boolean, banned: boolean, can_comment: boolean, moderator: boolean, user: User | null },
 *   limits: { body: number, report_details: number, media_bytes: number },
 * }} Ui
 * @typedef {string | null | (() => string | null | Promise<string | null>)} Auth
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
   * @param {{
   *   query?: Record<string, string | number | null | undefined>, body?: object | FormData, key?: string,
   *   signal?: AbortSignal, keepalive?: boolean,
   * }} [options] `key` is the `Idempotency-Key`
   * @returns {Promise<any>}
   */
  async request(method, path, options = {}) {
    const token = await this.token()
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
   * @param {Parameters<Client['request']>[2] & {}} options
   * @param {string | null} token
   */
  async #exchange(method, path, { query = {}, body, key, signal, keepalive }, token) {
    const url = new URL(path, API)
    for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, `${value}`)
    if (this.mine && !token && method === 'GET') url.searchParams.set('mine', '1')
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

// Building elements

/**
 * An element with attributes and children. Functions among the attributes are listeners; true is an attribute without a
 * value; false, null and undefined are none. There is no way to give it HTML.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Node | string | null | undefined | false)} children
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
