/** Code shared by all tests: a browser, the service on one port, and a host's pages on another, so that CORS applies. */

import { spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { after, before } from 'node:test'
import { chromium } from 'playwright-core'

const LOCAL = new URL(`../../${process.env.CARGO_TARGET_DIR ?? 'target'}/debug/comments-server`, import.meta.url).pathname
const AXE = createRequire(import.meta.url).resolve('axe-core')
/** More rules than axe applies by default. */
const WCAG = { runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] } }
const SECRET = 'only-for-tests-in-a-browser-0123456789'
/** A one-pixel image that replaces everything that pages load from other servers. */
export const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64')

/** The settings of a service that sends emails at once. */
export const MAIL = {
  SVC_SUBSCRIPTIONS: 'true',
  SVC_MAIL_FROM: 'comments@example.org',
  SVC_PUBLIC_URL: 'https://api.example.org',
  SVC_PAGE_URL: 'https://www.example.org/{type}/{id}',
  SVC_MAIL_WAIT: '0',
}

/** Guests' connections, limited per network. */
const guests = new Agent({ keepAlive: true, maxSockets: 4 })

/** A process of `cargo local` with a separate table. */
export class Service {
  /** @param {Record<string, string>} [settings] @param {string[]} [flags] */
  static async start(settings = {}, flags = []) {
    const limits = { SVC_READ_LIMIT: '1000000', SVC_WRITE_LIMIT: '1000000', SVC_UPLOAD_LIMIT: '1000000' }
    const process = spawn(LOCAL, ['--ephemeral', '--port', '0', ...flags], {
      env: { SVC_JWT_SECRET: SECRET, ...limits, ...settings },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let output = ''
    for await (const chunk of process.stdout) {
      output += chunk
      if (/^moderator/m.test(output)) break
    }
    const api = output.match(/^API +(\S+)/m)?.[1]
    if (!api) throw new Error(`cargo local did not start: ${output}`)
    return new Service(process, api)
  }

  /** @param {import('node:child_process').ChildProcess} process @param {string} api */
  constructor(process, api) {
    this.process = process
    this.api = api
    this.ada = token(7, 'Ada Lovelace')
    this.bob = token(8, 'Bob')
    this.moderator = token(9, 'Grace', { roles: ['moderator'] })
  }

  async stop() {
    this.process.kill()
    await once(this.process, 'exit')
  }

  /** @param {string} method @param {string} path @param {string | null} who a token @param {object} [body] */
  async call(method, path, who, body) {
    const headers = { 'content-type': 'application/json', ...(who && { authorization: `Bearer ${who}` }) }
    const response = await fetch(`${this.api}/${path}`, { method, headers, body: body && JSON.stringify(body) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text ? JSON.parse(text) : null
  }

  /** @param {string} record @param {string} body @param {{ who?: string | null, parent?: number }} [options] @returns {Promise<any>} */
  async comment(record, body, { who = this.ada, parent } = {}) {
    const guest = who ? {} : { guest_name: 'Zoë', guest_email: 'zoe@example.org' }
    const { data } = await this.call('POST', `posts/${record}/comments`, who, { body, parent_id: parent, ...guest })
    return data
  }

  /**
   * Posts a comment as a guest on a network and returns the response. Each loopback address is a separate network.
   * @param {string} localAddress @param {string} record @param {string} body @returns {Promise<any>}
   */
  async commentFrom(localAddress, record, body) {
    const headers = { 'content-type': 'application/json' }
    const asked = request(`${this.api}/posts/${record}/comments`, { method: 'POST', localAddress, agent: guests, headers })
    asked.end(JSON.stringify({ body, guest_name: `Guest of ${localAddress}`, guest_email: 'guest@example.org' }))
    const [response] = await once(asked, 'response')
    return JSON.parse(await text(response))
  }

  /** Waits for the first email to this address. The table's events trigger the email, so it may take a moment. @param {string} address */
  async mailTo(address) {
    for (;;) {
      const page = await (await fetch(new URL('/_mail', this.api))).text()
      const mail = page.split('<article>').find((mail) => mail.includes(`<p>${address}</p>`))
      if (mail) return mail
    }
  }
}

/** @param {number} id @param {string} name @param {object} [claims] */
export function token(id, name, claims = {}) {
  const now = Math.floor(Date.now() / 1000)
  const part = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: `${id}`, name, iat: now, exp: now + 3600, ...claims })}`
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`
}

export const newRecord = () => randomUUID()

/** A script that shortens waits of more than five seconds to a hundredth of their length. */
export const HASTE = 'const timeout = setTimeout; window.setTimeout = (act, wait) => timeout(act, wait > 5000 ? wait / 100 : wait)'

/** A server on a separate port. Subclasses override `respond`. */
export class LocalServer {
  #server = createServer((request, response) => this.respond(request, response))

  /** @param {import('node:http').IncomingMessage} _request @param {import('node:http').ServerResponse} response @returns {any} */
  respond(_request, response) {
    response.writeHead(404).end()
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
}

export class Site extends LocalServer {
  /** @type {Map<string, { html: string, headers: Record<string, string> }>} */
  #pages = new Map()

  /** @override @type {LocalServer['respond']} */
  respond({ url = '/' }, response) {
    const page = this.#pages.get(url.split('?')[0])
    response.writeHead(page ? 200 : 404, { 'content-type': 'text/html; charset=utf-8', ...page?.headers })
    response.end(page?.html)
  }

  /** @param {string} html @param {Record<string, string>} [headers] @param {string} [path] */
  add(html, headers = {}, path = `/${randomUUID()}`) {
    this.#pages.set(path, { html, headers })
    return `${this.url}${path}`
  }
}

/** Serves an image at every path, and records the requests. */
export class Images extends LocalServer {
  /** @type {{ path: string, referer: string | undefined }[]} */
  requests = []

  /** @override @type {LocalServer['respond']} */
  respond({ url = '', headers: { referer } }, response) {
    this.requests.push({ path: url, referer })
    response.writeHead(200, { 'content-type': 'image/png', 'cache-control': 'no-store' }).end(PIXEL)
  }

  /** Waits until an image has been requested. @param {string} path */
  async asked(path) {
    for (const end = Date.now() + 60_000; !this.requests.some((request) => request.path === path); ) {
      if (Date.now() > end) throw new Error(`nobody asked for ${path}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

const STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
  body { background: light-dark(#fff, #111); color: light-dark(#111, #eee) }
  footer { margin-block: 2rem }
`

/**
 * Serves the scripts from the working tree, if `EMBED_FROM_DISK` is set.
 * @param {import('playwright-core').BrowserContext} context @param {string} api
 */
export async function fromDisk(context, api) {
  if (!process.env.EMBED_FROM_DISK) return
  for (const [address, name] of [['embed.js', 'embed.js'], ['embed/writer.*.js', 'writer.js'], ['moderation.js', 'moderation.js']]) {
    const path = new URL(`../../functions/ui/dist/${name}`, import.meta.url).pathname
    const headers = { 'access-control-allow-origin': '*' }
    await context.route(`${api}/${address}`, (route) => route.fulfill({ path, contentType: 'text/javascript', headers }))
  }
}

/**
 * Starts a browser, a site and a service for the tests of one file.
 * @param {Record<string, string> | ((site: Site) => Record<string, string>)} [settings] of the service
 * @param {string[]} [flags] of the service
 */
export function world(settings, flags) {
  const site = new Site()
  /** @type {Service} */
  let service
  /** @type {import('playwright-core').Browser} */
  let browser

  before(async () => {
    await site.start()
    service = await Service.start(typeof settings === 'function' ? settings(site) : settings, flags)
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
  })
  after(async () => {
    await browser.close()
    await service.stop()
    site.stop()
  })

  /**
   * Adds a page with this content and returns its URL.
   * @param {{ html: string, head?: string, lang?: string, dir?: string, headers?: Record<string, string>, path?: string, service?: Service }} page
   */
  const add = ({ html, head = '', lang = 'en', dir = 'ltr', headers, path, service: { api } = service }) =>
    site.add(
      `<!doctype html><html lang="${lang}" dir="${dir}"><head><meta charset="utf-8"><title>A post</title>
       <meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
       ${headers ? '' : `<style>${STYLE}</style>`}${head}<script type="module" src="${api}/embed.js"></script></head>
       <body><main><h1>A post</h1><p>What it says.</p>${html}</main><footer>The end of the page.</footer></body></html>`,
      headers,
      path,
    )

  /**
   * Opens a page with a thread, as a visitor would.
   * @param {import('node:test').TestContext | null} t
   * @param {{
   *   record?: string, who?: string | null, attributes?: string, html?: string, head?: string, hash?: string, host?: string, lang?: string, dir?: string,
   *   headers?: Record<string, string>, path?: string, context?: import('playwright-core').BrowserContextOptions, init?: string,
   *   ready?: boolean, prepare?: (page: import('playwright-core').Page) => Promise<any>, service?: Service, comment?: string, by?: string | null,
   * }} options `ready: false` does not wait for the thread; `service`: another one than the world's; `comment`: the text of a first
   * comment, by this token or by Ada
   */
  async function open(t, options) {
    const { comment, by, record = comment && newRecord(), service: from = service } = options
    const { who, attributes = '', hash = '', host, init, ready = true, prepare } = options
    const { id } = comment ? await from.comment(`${record}`, comment, { who: by }) : { id: 0 }
    const context = await browser.newContext({ viewport: { width: 900, height: 900 }, ...options.context })
    t?.after(() => context.close())
    // No request leaves this machine.
    await context.route(/^https:/, (route) => route.fulfill({ contentType: 'image/png', body: PIXEL }))
    context.setDefaultTimeout(10_000)
    await fromDisk(context, from.api)
    const page = await context.newPage()
    /** @type {string[]} */
    const errors = []
    page.on('pageerror', (error) => errors.push(`${error}`))
    if (init) await page.addInitScript(init)
    await prepare?.(page)
    const thread = `<comment-thread type="posts" record="${record}" ${attributes}></comment-thread>`
    const auth = who ? `<script>document.querySelector('comment-thread').auth = ${JSON.stringify(who)}</script>` : ''
    const url = add({ html: record ? thread + auth : '', ...options, ...(options.html && { html: options.html }) })
    await page.goto((host ? url.replace('127.0.0.1', host) : url) + hash)
    if (ready && record) await page.locator('comment-thread h2').first().waitFor()
    return { page, context, errors, url, thread: page.locator('comment-thread'), record: `${record}`, id }
  }

  /**
   * Opens a page with the moderation element, as a host would.
   * @param {import('node:test').TestContext} t @param {Partial<Parameters<typeof open>[1]>} [options]
   */
  const moderate = (t, options) =>
    open(t, {
      html: `<comment-moderation></comment-moderation><script>document.querySelector('comment-moderation').auth = ${JSON.stringify(service.moderator)}</script>
        <script type="module" src="${service.api}/moderation.js"></script>`,
      ...options,
    })

  return {
    site,
    add,
    open,
    moderate,
    get service() {
      return service
    },
    get browser() {
      return browser
    },
  }
}

/**
 * Changes the JSON of the list's response, or of those that match.
 * @param {(json: any) => void} change
 */
export const answering = (change, pattern = /\/comments\?/) => (/** @type {import('playwright-core').Page} */ page) =>
  page.route(pattern, async (route) => {
    const response = await route.fetch()
    const json = await response.json()
    change(json)
    await route.fulfill({ response, json })
  })

/**
 * Delays matching requests until the returned function is called.
 * @param {import('playwright-core').Page} page @param {RegExp} pattern
 */
export async function hold(page, pattern) {
  let release = () => {}
  const released = new Promise((resolve) => (release = () => resolve(null)))
  await page.route(pattern, async (route) => {
    await released
    await route.fallback()
  })
  return release
}

/** Chooses an image with the button, and waits for its chip. @param {import('playwright-core').Page} page */
export async function chooseImage(page, name = 'cat.png') {
  const chips = await page.locator('.chip').count()
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: 'Upload an image' }).click()
  await (await chooser).setFiles({ name, mimeType: 'image/png', buffer: PIXEL })
  await page.locator('.chip').nth(chips).waitFor()
}

/** @param {import('playwright-core').Page} page */
export const composer = (page) => page.getByPlaceholder('Write a comment…')

/** @param {import('playwright-core').Page} page @param {number} id */
export const article = (page, id) => page.locator(`#comment-${id}`)

/** @param {import('playwright-core').Page} page @param {number} id */
export const openMenu = (page, id) => article(page, id).locator('> .content > header').getByRole('button', { name: 'More' }).click()

/** @param {import('playwright-core').Page} page @param {number} id @param {string} name */
export async function choose(page, id, name) {
  await openMenu(page, id)
  await page.getByRole('menuitem', { name, exact: true }).click()
}

/** @param {import('playwright-core').Page} page @param {number} id */
export async function deleteComment(page, id) {
  await choose(page, id, 'Delete')
  await article(page, id).locator('> .content').getByRole('button', { name: 'Delete' }).click()
}

/** Waits until the composer names this visitor. @param {import('playwright-core').Page} page @param {string} name */
export async function isVisitor(page, name) {
  await composer(page).focus()
  await page.getByText(`Posting as ${name}`).waitFor()
}

/** Changes the page, and waits until the thread is rendered again. @param {import('playwright-core').Page} page @param {() => Promise<any>} change */
export async function rebuilding(page, change) {
  const heading = await page.locator('.top h2').elementHandle()
  await change()
  await page.waitForFunction((element) => !element?.isConnected, heading)
}

/** Changes the visitor, as a host does. @param {import('playwright-core').Locator} thread @param {unknown} auth */
export const become = (thread, auth) => thread.evaluate((element, auth) => Object.assign(element, { auth }), auth)

/**
 * Waits until every dialog is closed and removed. A closing dialog is hidden first, so waiting for its role to disappear would end
 * too early.
 * @param {import('playwright-core').Page} page
 */
export const dialogCloses = (page) => page.locator('dialog').waitFor({ state: 'detached' })

/** @param {import('playwright-core').Page} page */
export const focusedComment = (page) =>
  page.evaluate(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.closest('article')?.id)

/**
 * Returns the parts of our element that overflow the page, except code, tables and tabs, which scroll, and clipped content.
 * @param {import('playwright-core').Page} page
 */
export const stickingOut = (page) =>
  page.evaluate(() => {
    const root = document.querySelector('comment-thread, comment-moderation')?.shadowRoot
    /** @param {Element | null} element @returns {boolean} */
    const isCut = (element) => !!element && ((!element.matches('dialog') && getComputedStyle(element).overflowX !== 'visible') || isCut(element.parentElement))
    const out = [...(root?.querySelectorAll('*') ?? [])].filter((element) => {
      const { left, right, width } = element.getBoundingClientRect()
      return width > 1 && (left < -1 || right > innerWidth + 1) && !isCut(element.parentElement)
    })
    const wide = document.documentElement.scrollWidth > innerWidth ? ['the page'] : []
    return [...wide, ...out.map(({ outerHTML }) => outerHTML.slice(0, 120))]
  })

/** Applies axe to part of a page. @param {import('playwright-core').Page} page @param {string} [place] @param {object} [options] @returns {Promise<any>} */
export async function axe(page, place = 'html', options = {}) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.addScriptTag({ path: AXE })
  return page.evaluate(({ place, options }) => /** @type {any} */ (globalThis).axe.run(place, options), { place, options })
}

/** Returns what axe finds in part of a page. @param {import('playwright-core').Page} page @param {string} [place] @param {object} [options] */
export async function violations(page, place = 'comment-thread', options = WCAG) {
  const found = await axe(page, place, options)
  return found.violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(' ')}`)
}
