/** A shared cache in front of a service, which honors `Cache-Control` (RFC 5861, RFC 9111). */

import { LocalServer } from './world.js'

/** @param {string} control @param {string} name */
const seconds = (control, name) => Number(control.match(new RegExp(`(?<![\\w-])${name}=(\\d+)`))?.[1] ?? 0)

/** Returns the seconds for which a shared cache serves a response without revalidating it. @param {string} control */
const freshness = (control) => seconds(control, control.includes('s-maxage') ? 's-maxage' : 'max-age')

export class Cache extends LocalServer {
  /** Seconds by which the cache's clock is ahead. */
  later = 0
  /** @type {Map<string, { at: number, control: string, headers: Record<string, string>, body: Buffer }>} */
  #kept = new Map()

  /** @param {string} origin */
  constructor(origin) {
    super()
    this.origin = new URL(origin).origin
  }

  /** @override @type {LocalServer['respond']} */
  async respond({ url = '', method, headers }, response) {
    // Responses to requests with a token are not shared.
    const key = method === 'GET' && !headers.authorization ? url : ''
    const kept = this.#kept.get(key)
    const age = kept ? this.#now() - kept.at : Infinity
    const control = kept?.control ?? ''
    const fresh = freshness(control)
    /** @param {number} bound */
    const mayServe = (bound) => age <= bound
    if (kept && mayServe(fresh + seconds(control, 'stale-while-revalidate'))) {
      response.writeHead(200, kept.headers).end(kept.body)
      if (!mayServe(fresh)) await this.#ask(url, key).catch(() => {})
      return
    }
    const answer = await this.#ask(url, key).catch(() => null)
    if (answer) response.writeHead(answer.status, answer.headers).end(answer.body)
    else if (kept && mayServe(fresh + seconds(control, 'stale-if-error'))) response.writeHead(200, kept.headers).end(kept.body)
    else response.writeHead(502).end()
  }

  #now() {
    return Date.now() / 1000 + this.later
  }

  /** Fetches a response from the service and stores it if allowed. @param {string} url @param {string} key */
  async #ask(url, key) {
    const answer = await fetch(this.origin + url, { headers: { 'accept-encoding': 'identity' } })
    const body = Buffer.from(await answer.arrayBuffer())
    const control = answer.headers.get('cache-control') ?? ''
    const headers = { 'content-type': answer.headers.get('content-type') ?? '', 'access-control-allow-origin': '*' }
    if (answer.status === 200 && key && freshness(control) > 0) this.#kept.set(key, { at: this.#now(), control, headers, body })
    return { status: answer.status, headers, body }
  }
}
