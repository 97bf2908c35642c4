/** A shared cache before a service, which honours what `Cache-Control` says (RFC 5861, RFC 9111). */

import { once } from 'node:events'
import { createServer } from 'node:http'

/** The seconds of a directive. @param {string} control @param {string} name */
const seconds = (control, name) => Number(control.match(new RegExp(`${name}=(\\d+)`))?.[1] ?? 0)

export class Cache {
  /** How many seconds the clock of the cache is ahead. */
  later = 0
  /** @type {Map<string, { at: number, control: string, headers: Record<string, string>, body: Buffer }>} */
  #kept = new Map()
  #server = createServer(async ({ url = '', method, headers }, response) => {
    // What is asked with a token is nobody else's.
    const key = method === 'GET' && !headers.authorization ? url : ''
    const kept = this.#kept.get(key)
    const age = kept ? this.#now() - kept.at : Infinity
    const control = kept?.control ?? ''
    const fresh = seconds(control, 's-maxage')
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
  })

  /** @param {string} origin */
  constructor(origin) {
    this.origin = new URL(origin).origin
  }

  async start() {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const address = /** @type {import('node:net').AddressInfo} */ (this.#server.address())
    this.url = `http://127.0.0.1:${address.port}`
  }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #now() {
    return Date.now() / 1000 + this.later
  }

  /** Asks the service, and keeps what may be kept. @param {string} url @param {string} key */
  async #ask(url, key) {
    const answer = await fetch(this.origin + url, { headers: { 'accept-encoding': 'identity' } })
    const body = Buffer.from(await answer.arrayBuffer())
    const control = answer.headers.get('cache-control') ?? ''
    const headers = { 'content-type': answer.headers.get('content-type') ?? '', 'access-control-allow-origin': '*' }
    if (answer.status === 200 && key && seconds(control, 's-maxage') > 0) this.#kept.set(key, { at: this.#now(), control, headers, body })
    return { status: answer.status, headers, body }
  }
}
