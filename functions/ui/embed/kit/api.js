/**
 * Calls the API as one visitor.
 * @import { Auth, RequestOptions } from '../types.d.ts'
 */

import { API } from './address.js'
import { alone, hostDecides, keepSession, ownSession } from './session.js'

export class ApiError extends Error {
  code = 'server_error'
  /** @type {Record<string, string[]>} */
  errors = {}

  /** @param {{ message?: string, code?: string, errors?: Record<string, string[]> }} [said] */
  constructor(status = 0, said) {
    super()
    this.status = status
    Object.assign(this, said)
  }
}

/** @param {URLSearchParams | Headers} target @param {object} values */
function fill(target, values) {
  for (const [name, value] of Object.entries(values)) if (value != null) target.set(name, `${value}`)
}

export class Client {
  /** @type {Auth} */
  #auth = null
  /** @type {Promise<string | null> | undefined} */
  #token
  #refused
  mine = false
  /** The `Comment-Key` header, which lets a guest change their comments. @type {string | undefined} */
  guestKey
  /** @type {string | undefined} */
  language

  /** @returns {Auth} */
  get auth() {
    return this.#auth
  }
  /** `undefined` selects the session of the service's own sign-in. @param {Auth | undefined} auth */
  set auth(auth) {
    hostDecides(auth !== undefined)
    this.#auth = auth ?? null
    this.#token = undefined
  }

  /** Returns the token of the session or of the host page. If `isNeeded`, rejects when the session's token can't be refreshed. */
  token(isNeeded = false) {
    const auth = this.#auth
    if (ownSession()) return this.#ownToken().catch((error) => (isNeeded ? Promise.reject(error) : null))
    this.#token ??= (async () => (typeof auth === 'function' ? auth() : auth))().then((token) => token || null, () => null)
    return this.#token
  }

  /** Returns the subject of the current token, so that callers can detect a change of visitor. */
  async who() {
    try {
      return JSON.parse(atob((await this.token()).split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))).sub
    } catch {}
  }

  /** Returns the session's token, refreshed if it has expired or was refused. */
  async #ownToken() {
    const isOver = () => ownSession() && (ownSession().access_token === this.#refused || Date.now() > ownSession().until)
    const refresh = async () => {
      const { refresh_token } = ownSession() ?? {}
      // With the default content type, text/plain, the request needs no preflight.
      if (isOver()) keepSession((await anonymous.request('POST', 'sign_in/refresh', { body: JSON.stringify({ refresh_token }) })).data)
    }
    if (isOver()) {
      await alone(refresh).catch((error) => {
        if (error.code !== 'sign_in_failed') throw error
        keepSession()
        throw new ApiError(401, { code: 'unauthenticated' })
      })
    }
    return ownSession()?.access_token
  }

  async renew(refused, isNeeded = false) {
    this.#refused = refused
    const asked = this.#token
    if ((await asked) === refused && this.#token === asked && typeof this.#auth === 'function') this.#token = undefined
    const isNew = (await this.token(isNeeded)) !== refused
    if (!isNew) this.#token = Promise.resolve(null)
    return isNew
  }

  /** @param {RequestOptions} options */
  async request(method, path, options = {}, isLast = false) {
    const { query, headers: own, signal, timeout = 30_000, send = fetch, ...init } = options
    const isWrite = method !== 'GET'
    const token = await this.token(isWrite)
    const who = await this.who()
    const url = new URL(path, API)
    fill(url.searchParams, { ...query, mine: !token && !isWrite && (this.mine || this.guestKey) ? 1 : null })
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
        signal: AbortSignal.any([AbortSignal.timeout(timeout), ...(signal ? [signal] : [])]),
        credentials: 'omit',
        redirect: token ? 'error' : 'follow',
      })
      json = await response.text()
    } catch (error) {
      throw signal?.aborted ? error : new ApiError(0, { code: 'offline' })
    }
    const { ok, status } = response
    if (status === 401 && !isLast && (await this.renew(token, isWrite)) && (!isWrite || (await this.who()) === who)) {
      return this.request(method, path, options, true)
    }
    try {
      json = JSON.parse(json || 'null')
    } catch {
      throw new ApiError(status)
    }
    if (ok) return json
    throw new ApiError(status, json)
  }

  /** @param {RequestOptions['query']} [query] @param {AbortSignal} [signal] @param {RequestCache} [cache] */
  get(path, query, signal, cache) {
    return this.request('GET', path, { query, signal, cache })
  }
}

/** Sends no token, so that any cache may store the responses to its reads. */
export const anonymous = new Client()
anonymous.token = async () => null
