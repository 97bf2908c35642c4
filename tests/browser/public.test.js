import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Cache } from './cache.js'
import { newRecord, Service, token, world } from './world.js'

/** The policy of pages lets no script in, so this one is evaluated. */
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
const w = world()

/** @param {import('node:test').TestContext} t @param {import('playwright-core').BrowserContextOptions} [options] */
async function browse(t, options) {
  const context = await w.browser.newContext({ viewport: { width: 900, height: 900 }, ...options })
  t.after(() => context.close())
  context.setDefaultTimeout(10_000)
  return context.newPage()
}

/** A comment with replies, one of which is gone, a pin, code and a picture. @param {string} record */
async function conversation(record) {
  const { service } = w
  const first = await service.comment(record, `# Title\n\nSee https://example.org/a_long_address/${'x'.repeat(90)}.\n\n\`\`\`\n${'code '.repeat(40)}\n\`\`\``)
  const gone = await service.comment(record, 'gone', { parent: first.id })
  await service.comment(record, 'An answer.\nOn two lines.', { parent: gone.id, who: service.bob })
  await service.call('DELETE', `comments/${gone.id}`, service.ada)
  for (let n = 0; n < 4; n++) await service.comment(record, `> quoted\n\nReply ${n}`, { parent: first.id, who: service.bob })
  await service.comment(record, 'مرحبا بالعالم', { who: token(70, 'عادل') })
  await service.call('POST', `comments/${first.id}/like`, service.bob)
  await service.call('POST', `comments/${first.id}/pin`, service.moderator)
  for (let n = 0; n < 10; n++) await service.comment(record, `Comment ${n}`)
  return first.id
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const [lang, dir] of /** @type {const} */ ([['en', 'ltr'], ['ar', 'rtl']])) {
    test(`axe finds nothing on a page in ${lang} and ${colorScheme} colours, and nothing is wider than a phone`, async (t) => {
      const record = newRecord()
      const parent = await conversation(record)
      const page = await browse(t, { colorScheme, viewport: { width: 320, height: 800 } })
      for (const query of ['', `&parent=${parent}`]) {
        await page.goto(`${w.service.api}/posts/${record}/comments.html?lang=${lang}${query}`)
        assert.equal(await page.locator('section').getAttribute('dir'), dir)
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320)
        await page.evaluate(AXE)
        const found = await page.evaluate(() => /** @type {any} */ (window).axe.run(document))
        assert.deepEqual(found.violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes[0].html}`), [])
      }
    })
  }
}

test('a browser without scripts reads a thread of 200 through its links', async (t) => {
  const record = newRecord()
  const written = []
  for (let n = 0; n < 40; n++) {
    const parent = await w.service.comment(record, `Comment ${n}`)
    const replies = await Promise.all([0, 1, 2, 3].map((m) => w.service.comment(record, `Reply ${n} ${m}`, { parent: parent.id })))
    written.push(parent.id, ...replies.map(({ id }) => id))
  }
  const page = await browse(t, { javaScriptEnabled: false })
  /** @type {Set<number>} */
  const read = new Set()
  const visit = async () => {
    for (const article of await page.locator('article').all()) read.add(Number((await article.getAttribute('id'))?.slice(8)))
    return Promise.all((await page.locator('a.replies').all()).map((link) => link.getAttribute('href')))
  }
  await page.goto(`${w.service.api}/posts/${record}/comments.html`)
  const below = await visit()
  while (await page.locator('a[rel=next]').count()) {
    await page.locator('a[rel=next]').click()
    below.push(...(await visit()))
  }
  for (const href of below) {
    await page.goto(`${href}`)
    await visit()
  }
  assert.equal(written.length, 200)
  assert.deepEqual([...read].sort(), written.sort())
})

test('a page shows its own style and no other, and nothing runs', async (t) => {
  const record = newRecord()
  await w.service.comment(record, '<script>document.title = "run"</script> ![a](javascript:document.title="run")')
  const page = await browse(t)
  /** @type {string[]} */
  const told = []
  page.on('console', (message) => told.push(message.text()))
  await page.goto(`${w.service.api}/posts/${record}/comments.html`)
  assert.equal(await page.title(), 'Comments')
  assert.equal(await page.locator('main').evaluate((main) => getComputedStyle(main).maxInlineSize), '704px')
  assert.deepEqual(told, [])
})

test('with function and table stopped, a cache that honours the headers still shows the page and the list', async (t) => {
  const service = await Service.start()
  const cache = new Cache(service.api)
  await cache.start()
  t.after(() => cache.stop())
  await service.comment('1', 'Here before the outage.')
  const base = `${cache.url}/svc/api/v1`
  const paths = ['posts/1/comments.html', 'public/posts/1/comments?include=ui&cursor=&lang=en']
  for (const path of paths) assert.match(await (await fetch(`${base}/${path}`)).text(), /Here before the outage\./)
  assert.equal((await fetch(`${base}/posts/1/comments`)).status, 200)
  await service.stop()
  // Fresh, then stale while it is asked for, then stale because nothing answers, and after a day no more.
  for (const [later, status] of [[0, 200], [100, 200], [7_200, 200], [90_000, 502]]) {
    cache.later = later
    for (const path of paths) {
      const response = await fetch(`${base}/${path}`)
      assert.equal(response.status, status, `${path} ${later} seconds later`)
      if (status === 200) assert.match(await response.text(), /Here before the outage\./)
    }
  }
  // What no cache may keep for longer is gone.
  cache.later = 100
  assert.equal((await fetch(`${base}/posts/1/comments`)).status, 502)
})
