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

export class Client {
  /** @type {Auth} */
  #auth = null
  /** @type {Promise<string | null> | undefined} */
  #token
  mine = false
  /** The `Comment-Key` of a guest who has written. */
  guestKey = ''
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
    const { query = {}, body, key, signal, keepalive, anonymous, send = fetch } = options
    const token = anonymous ? null : await this.token()
    const guestKey = token || anonymous ? '' : this.guestKey
    const url = new URL(path, API)
    for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, `${value}`)
    if ((this.mine || guestKey) && !token && !anonymous && method === 'GET') url.searchParams.set('mine', '1')
    const headers = new Headers(this.language ? { 'Accept-Language': this.language } : {})
    if (token) headers.set('Authorization', `Bearer ${token}`)
    if (key) headers.set('Idempotency-Key', key)
    if (guestKey) headers.set('Comment-Key', guestKey)
    const isForm = body instanceof FormData
    if (body && !isForm) headers.set('Content-Type', 'application/json')
    const signals = [AbortSignal.timeout(isForm ? 600_000 : 30_000), ...(signal ? [signal] : [])]
    let response, json
    try {
      response = await send(url, {
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
