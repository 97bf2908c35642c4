/** A fake GitHub: its consent page, and the endpoints that sign-in calls. */

import { createHash, randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { LocalServer } from './world.js'

const CLIENT = { client_id: 'a client', client_secret: 'only for tests' }

export class GitHub extends LocalServer {
  /** The user who is signed in at GitHub. */
  user = { id: 7, login: 'octo-ada', avatar_url: 'https://avatars.github.example/7' }
  /** Whether the endpoints fail once the reader has been sent back. */
  isDown = false
  /** Sign-in requests, by the codes issued for them. @type {Map<string, URLSearchParams>} */
  #asked = new Map()
  /** @type {Map<string, GitHub['user']>} */
  #tokens = new Map()

  /** The settings of a service whose readers may sign in with this fake. */
  get settings() {
    return { SVC_GITHUB_URL: `${this.url}`, SVC_GITHUB_CLIENT_ID: CLIENT.client_id, SVC_GITHUB_CLIENT_SECRET: CLIENT.client_secret }
  }

  /** @override @type {LocalServer['respond']} */
  async respond(request, response) {
    const { pathname, searchParams } = new URL(`${request.url}`, this.url)
    if (pathname === '/login/oauth/authorize') {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      return response.end(this.#consent(searchParams))
    }
    const user = this.#tokens.get(request.headers.authorization?.replace('Bearer ', '') ?? '')
    const answer = pathname === '/login/oauth/access_token' ? this.#exchange(new URLSearchParams(await text(request))) : pathname === '/api/v3/user' && user
    const status = this.isDown ? 503 : answer ? 200 : 404
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer || {}))
  }

  /** @param {URLSearchParams} asked */
  #consent(asked) {
    const code = randomUUID()
    this.#asked.set(code, asked)
    const back = (/** @type {Record<string, string>} */ more) => `${asked.get('redirect_uri')}?${new URLSearchParams({ ...more, state: `${asked.get('state')}` })}`.replaceAll('&', '&amp;')
    return `<!doctype html><html lang="en"><title>GitHub</title><h1>Authorize the application</h1>
      <p><a href="${back({ code })}">Authorize</a> <a href="${back({ error: 'access_denied' })}">Cancel</a></p>`
  }

  /** @param {URLSearchParams} given */
  #exchange(given) {
    const asked = this.#asked.get(`${given.get('code')}`)
    this.#asked.delete(`${given.get('code')}`)
    const challenge = createHash('sha256').update(`${given.get('code_verifier')}`).digest('base64url')
    const isClient = Object.entries(CLIENT).every(([name, value]) => given.get(name) === value)
    if (!isClient || asked?.get('code_challenge') !== challenge) return { error: 'bad_verification_code' }
    const token = randomUUID()
    this.#tokens.set(token, { ...this.user })
    return { access_token: token, token_type: 'bearer', scope: '' }
  }
}
