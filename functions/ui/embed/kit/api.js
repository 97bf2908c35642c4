/**
 * Calls the API as one visitor.
 * @import { Auth, RequestOptions } from '../types.d.ts'
 */

export const API = new URL('.', import.meta.url).href

export class ApiError extends Error {
  constructor(status = 0, { message = '', code = 'server_error', errors = /** @type {Record<string, string[]>} */ ({}) } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.errors = errors
  }
}

/** Sets what has a value. @param {URLSearchParams | Headers} target @param {object} values */
function fill(target, values) {
  for (const [name, value] of Object.entries(values)) if (value != null) target.set(name, `${value}`)
}

export class Client {
  /** @type {Auth} */
  #auth = null
  /** @type {Promise<string | null> | undefined} */
  #token
  mine = false
  /** The `Comment-Key` of a guest who has written. @type {string | undefined} */
  guestKey
  /** @type {string | undefined} */
  language

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

  /** Whether anything that is sent tells this visitor apart from others. */
  async isKnown() {
    return this.mine || this.guestKey || this.token()
  }

  /** @param {RequestOptions} options */
  async request(method, path, options = {}, isLast = false) {
    const { query, headers: own, signal = new AbortController().signal, timeout = 30_000, send = fetch, ...init } = options
    const token = await this.token()
    const url = new URL(path, API)
    fill(url.searchParams, { ...query, mine: !token && method === 'GET' && (await this.isKnown()) ? 1 : null })
    const headers = new Headers()
    fill(headers, {
      ...own,
      'Accept-Language': this.language,
      Authorization: token && `Bearer ${token}`,
      'Comment-Key': token ? null : this.guestKey,
    })
    let response, json
    try {
      response = await send(url, {
        ...init,
        method,
        headers,
        signal: AbortSignal.any([AbortSignal.timeout(timeout), signal]),
        credentials: 'omit',
        redirect: token ? 'error' : 'follow',
      })
      json = await response.text()
    } catch (error) {
      throw signal.aborted ? error : new ApiError(0, { code: 'offline' })
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

/** Asks for what is the same for everybody, which every cache may keep. */
export const anonymous = new Client()
