/**
 * Builds each recipe for a service, opens the result in a browser, and reads and posts a comment there. Usage: node --test
 * recipes.js, with RECIPES naming a copy of packages/recipes whose packages are installed.
 */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { extname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { load } from '../../packages/npm/index.js'
import { LocalServer, world } from './world.js'

const RECIPES = `${process.env.RECIPES}`
const TYPES = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript' }
const run = promisify(execFile)
const w = world({ SVC_PROFILE: 'blog', SVC_REQUIRE_APPROVAL: 'false' })

/** The address of the API in recipes that need no build. */
const EXAMPLE = 'https://comments.example.org/svc/api/v1'

/** Serves the files of a folder, with the address of the API replaced. */
class Files extends LocalServer {
  /** @param {string} folder @param {string} api */
  constructor(folder, api) {
    super()
    this.folder = folder
    this.api = api
  }

  /** @override @type {LocalServer['respond']} */
  async respond({ url = '/' }, response) {
    const path = normalize(url.endsWith('/') ? `${url}index.html` : url)
    const file = await readFile(join(this.folder, path), 'utf8').catch(() => null)
    response.writeHead(file ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(file?.replaceAll(EXAMPLE, this.api))
  }
}

const NPM = /** @type {const} */ ({ command: ['npm', 'run', '--silent', 'build'], built: 'dist' })
/** For each recipe: the build command, the folder with the pages, and whether they show the thread without scripts. */
const BUILDS = {
  html: { command: null, built: '.', isStatic: false },
  react: { ...NPM, isStatic: false },
  vue: { ...NPM, isStatic: false },
  astro: { ...NPM, isStatic: true },
  hugo: { command: ['hugo', '--quiet'], built: 'public', isStatic: true },
}

test('the package has the version of the service, and no script of more than 1,024 bytes compressed', async () => {
  const root = new URL('../../', import.meta.url)
  const read = (/** @type {string} */ path) => readFile(new URL(path, root), 'utf8')
  assert.equal(JSON.parse(await read('packages/npm/package.json')).version, (await read('Cargo.toml')).match(/^version = "(.*)"/m)?.[1])
  for (const name of ['index.js', 'client.js']) {
    const size = gzipSync(await read(`packages/npm/${name}`), { level: 9 }).length
    assert.ok(size <= 1_024, `${name}: ${size}`)
  }
})

test('load does nothing on a server', () => {
  assert.ok(!('document' in globalThis))
  load(EXAMPLE)
  assert.ok(!('document' in globalThis))
})

test('load adds the module to a page once', async (t) => {
  const page = await w.browser.newPage()
  t.after(() => page.close())
  await page.route(/^https:/, (route) => route.abort())
  const module = await readFile(new URL('../../packages/npm/index.js', import.meta.url), 'utf8')
  await page.route('https://www.example.org/load.js', (route) => route.fulfill({ contentType: 'text/javascript', body: module }))
  await page.route('https://www.example.org/', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
  await page.goto('https://www.example.org/')
  const scripts = await page.evaluate(async (api) => {
    const path = '/load.js'
    const { load } = await import(path)
    for (const address of [api, `${api}/`, api]) load(address)
    return [...document.scripts].map(({ type, src }) => ({ type, src }))
  }, EXAMPLE)
  assert.deepEqual(scripts, [{ type: 'module', src: `${EXAMPLE}/embed.js` }])
})

for (const [name, { command, built, isStatic }] of Object.entries(BUILDS)) {
  test(`a comment is read and written in the recipe ${name}`, async (t) => {
    const folder = join(RECIPES, name)
    const { api } = w.service
    await w.service.comment(name, 'Here before it was built.')
    const env = { ...process.env, VITE_COMMENTS_API: api, PUBLIC_COMMENTS_API: api, HUGO_PARAMS_COMMENTS: api, ASTRO_TELEMETRY_DISABLED: '1' }
    if (command) await run(command[0], command.slice(1), { cwd: folder, env })
    const files = new Files(join(folder, built), api)
    await files.start()
    t.after(() => files.stop())
    for (const javaScriptEnabled of isStatic ? [false, true] : [true]) {
      const context = await w.browser.newContext({ javaScriptEnabled })
      t.after(() => context.close())
      const page = await context.newPage()
      await page.route(/^https:/, (route) => route.abort())
      await page.goto(`${files.url}/`)
      await page.locator('article').getByText('Here before it was built.').filter({ visible: true }).waitFor()
      if (!javaScriptEnabled) continue
      await page.getByPlaceholder('Write a comment…').fill(`Written in ${name}.`)
      await page.getByLabel('Your name').fill('Zoë')
      await page.getByRole('button', { name: 'Post comment' }).click()
      await page.locator('article').getByText(`Written in ${name}.`).waitFor()
    }
    const { data } = await w.service.call('GET', `posts/${name}/comments`, null)
    assert.deepEqual(data.map((/** @type {any} */ { body }) => body), [`Written in ${name}.`, 'Here before it was built.'])
  })
}
