import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Cache } from './cache.js'
import { article, fromDisk, HASTE, newRecord, Service, token, world } from './world.js'

/** The pages' policy blocks script elements, so the tests evaluate axe instead. */
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
const w = world()
/** A service whose pages poll for new comments. */
const live = world({ SVC_REALTIME: 'true' })
const guests = world({ SVC_PROFILE: 'blog', SVC_REQUIRE_APPROVAL: 'false' })

/** @param {import('node:test').TestContext} t @param {import('playwright-core').BrowserContextOptions} [options] */
async function browse(t, options) {
  const context = await w.browser.newContext({ viewport: { width: 900, height: 900 }, ...options })
  t.after(() => context.close())
  context.setDefaultTimeout(10_000)
  return context.newPage()
}

/** Opens a thread that polls for new comments, and waits for the first response. @param {import('node:test').TestContext} t @param {string} record */
async function watching(t, record) {
  /** @type {Promise<any>} */
  let told = Promise.resolve()
  const prepare = async (/** @type {import('playwright-core').Page} */ page) => void (told = page.waitForResponse(/\/changes$/))
  const opened = await live.open(t, { record, init: HASTE, prepare })
  await told
  return opened
}

/** Posts a pinned comment with code, replies (one is a placeholder), and further comments. @param {string} record */
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
    test(`axe finds nothing on a page in ${lang} and ${colorScheme} colors, and nothing is wider than a phone`, async (t) => {
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

test('with function and table stopped, a cache that honours the headers still shows the page and the widget', async (t) => {
  const service = await Service.start()
  const cache = new Cache(service.api)
  await cache.start()
  t.after(() => cache.stop())
  const api = `${cache.url}/svc/api/v1`
  const html = `<!doctype html><meta charset="utf-8"><script type="module" src="${api}/embed.js"></script><comment-thread type="posts" record="1"></comment-thread>`
  const addresses = [`${api}/posts/1/comments.html`, w.site.add(html)]
  /** Waits until a browser with an empty cache shows the text. @param {string} address @param {string} text */
  const shows = async (address, text) => {
    const page = await browse(t)
    await fromDisk(page.context(), api)
    await page.goto(address)
    await page.getByText(text).waitFor()
    await page.context().close()
  }
  await service.comment('1', 'Here before the outage.')
  for (const address of addresses) await shows(address, 'Here before the outage.')
  assert.equal((await fetch(`${api}/posts/1/comments`)).status, 200)
  await service.stop()
  // The response is fresh at first, then stale during revalidation, then stale because the service fails.
  for (const later of [0, 100, 7_200]) {
    cache.later = later
    for (const address of addresses) await shows(address, 'Here before the outage.')
  }
  // Caches store no private responses. After a day, the public ones have expired too.
  assert.equal((await fetch(`${api}/posts/1/comments`)).status, 502)
  cache.later = 88_000
  assert.equal((await fetch(addresses[0])).status, 502)
  await shows(addresses[1], 'No connection')
})

test('a guest who has done nothing gets the public list with one request, and a member doesn’t', async (t) => {
  const record = newRecord()
  for (let n = 0; n < 12; n++) await w.service.comment(record, `Comment ${n}`)
  for (const [who, address] of /** @type {[string | null, string][]} */ ([[null, `/public/posts/${record}/comments`], [w.service.ada, `/v1/posts/${record}/comments`]])) {
    /** @type {string[]} */
    const asked = []
    const prepare = async (/** @type {import('playwright-core').Page} */ page) =>
      void page.on('request', (request) => request.url().startsWith(w.service.api) && !request.url().endsWith('.js') && asked.push(request.url()))
    const { page } = await w.open(t, { record, who, attributes: 'lang="de"', prepare })
    assert.equal(asked.length, 1)
    await page.getByRole('button', { name: '2 weitere Kommentare' }).click()
    await page.locator('article').nth(11).waitFor()
    assert.equal(asked.length, 2)
    for (const url of asked) assert.ok(url.includes(address) && url.includes('lang=de') === !who && !url.includes('newest'), url)
  }
})

test('a reload shows comments written since, though a cache may serve an older list while it revalidates', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Before.')
  // Routing requests would disable the browser's cache.
  const context = await w.browser.newContext()
  t.after(() => context.close())
  const page = await context.newPage()
  const visit = async (/** @type {Promise<any>} */ loaded, /** @type {string} */ text) => {
    const list = page.waitForResponse(/\/public\/.*\/comments\?/)
    await loaded
    await page.locator('article').getByText(text).waitFor({ timeout: 5_000 })
    return (await list).request()
  }
  await visit(page.goto(w.add({ html: `<comment-thread type="posts" record="${record}"></comment-thread>` })), 'Before.')
  await w.service.comment(record, 'Since.')
  await visit(page.reload(), 'Since.')
  const again = await visit(page.reload(), 'Since.')
  assert.match((await again.allHeaders())['if-none-match'] ?? '', /^(W\/)?"/, 'the browser asks whether it has changed')
})

test('another person’s new comment is offered as a button with the count', async (t) => {
  const record = newRecord()
  const { service } = live
  const seen = await service.comment(record, 'Seen.')
  const { page } = await watching(t, record)
  const fresh = await service.comment(record, 'New.', { who: service.bob })
  const reply = await service.comment(record, 'New too.', { who: service.bob, parent: seen.id })
  const button = page.getByRole('button', { name: '2 new comments' })
  await button.click()
  await article(page, fresh.id).waitFor()
  await page.locator(`#comment-${seen.id} #comment-${reply.id}`).waitFor()
  await article(page, reply.id).and(page.locator(':focus')).waitFor()
  assert.equal(await button.isVisible(), false)
})

test('once a new comment was announced, the list is requested with its id', async (t) => {
  const record = newRecord()
  for (let n = 0; n < 12; n++) await live.service.comment(record, `Comment ${n}`)
  const { page, thread } = await watching(t, record)
  const { id } = await live.service.comment(record, 'New.')
  await page.getByRole('button', { name: '1 new comment' }).waitFor()
  const list = page.waitForRequest(/\/public\/.*cursor=/)
  await page.getByRole('button', { name: /more comment/ }).click()
  assert.equal(new URL((await list).url()).searchParams.get('newest'), `${id}`)
  // A different thread doesn't send the previous thread's newest comment.
  const first = page.waitForRequest(/\/public\/.*cursor=/)
  await thread.evaluate((element, record) => element.setAttribute('record', record), newRecord())
  assert.ok(!(await first).url().includes('newest'))
})

test('new comments are shown newest first, although a response is late or lost', async (t) => {
  for (const isLost of [false, true]) {
    const record = newRecord()
    await live.service.comment(record, 'Old.')
    const { page } = await watching(t, record)
    const { id } = await live.service.comment(record, 'First.')
    for (const body of ['Second.', 'Third.']) await live.service.comment(record, body)
    const answer = async (/** @type {import('playwright-core').Route} */ route) => {
      await new Promise((resolve) => setTimeout(resolve, 500))
      await (isLost ? route.abort() : route.fallback())
    }
    await page.route(`**/comments/${id}`, answer, { times: 1 })
    const button = page.getByRole('button', { name: '3 new comments' })
    await button.click()
    if (isLost) {
      await page.locator('.toast.error').getByText('No connection').waitFor()
      await button.click()
    }
    await page.locator('article').getByText('First.').waitFor()
    await page.locator('article').getByText('Third.').waitFor()
    assert.deepEqual(await page.locator('.list > article .body').allTextContents(), ['Third.', 'Second.', 'First.', 'Old.'])
    await button.waitFor({ state: 'hidden' })
  }
})

test('a comment that a new reply shows isn’t counted among those that are left, and a new comment never was', async (t) => {
  const record = newRecord()
  const oldest = await live.service.comment(record, 'The oldest.')
  for (let i = 0; i < 11; i++) await live.service.comment(record, `Newer ${i}`)
  const { page } = await watching(t, record)
  const more = page.getByRole('button', { name: /more comment/ })
  const fresh = page.getByRole('button', { name: '1 new comment' })
  assert.equal(await more.textContent(), '2 more comments')
  const reply = await live.service.comment(record, 'A late reply.', { who: live.service.bob, parent: oldest.id })
  await fresh.click()
  await article(page, reply.id).waitFor()
  assert.equal(await more.textContent(), '1 more comment')
  const { id } = await live.service.comment(record, 'A new comment.', { who: live.service.bob })
  await fresh.click()
  await article(page, id).waitFor()
  assert.equal(await more.textContent(), '1 more comment')
  await more.click()
  await more.waitFor({ state: 'detached' })
  assert.equal(await page.locator('.list > article').count(), 13)
})

test('a guest who writes after the first page continues with a private list', async (t) => {
  const record = newRecord()
  for (let n = 0; n < 12; n++) await guests.service.comment(record, `Comment ${n}`)
  const { page } = await guests.open(t, { record })
  await page.getByPlaceholder('Write a comment…').fill('Mine.')
  await page.getByLabel('Your name').fill('Zoë')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').getByText('Mine.').waitFor()
  const list = page.waitForRequest(/\/comments\?.*cursor=/)
  await page.getByRole('button', { name: /more comment/ }).click()
  const { pathname, searchParams } = new URL((await list).url())
  assert.deepEqual([pathname.includes('/public/'), searchParams.get('mine')], [false, '1'])
  await page.locator('article').nth(12).waitFor()
})

test('content inside the element shows until the first list, and is not removed', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  const html = `<comment-thread type="posts" record="${record}"><p id="fallback">The comments as they were.</p></comment-thread>`
  const { page, thread } = await w.open(t, { record, html, ready: false, prepare: (page) => page.route(/\/comments\?/, (route) => route.abort(), { times: 1 }) })
  await page.getByRole('alert').getByText('No connection').waitFor()
  assert.ok(await page.locator('#fallback').isVisible())
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Hello.').waitFor()
  assert.ok(!(await page.locator('#fallback').isVisible()))
  assert.equal(await page.locator('comment-thread > #fallback').count(), 1)
  // Content added later stays hidden.
  await thread.evaluate((element) => element.insertAdjacentHTML('beforeend', '<p id="later">Added later.</p>'))
  assert.ok(!(await page.locator('#later').isVisible()))
})

test('content that a script puts into an element shows, and so does that of one without a record', async (t) => {
  const { page } = await w.open(t, { html: '<comment-thread type="posts"><p id="fallback">What there is.</p></comment-thread>' })
  await page.locator('.mistake').waitFor()
  assert.ok(await page.locator('#fallback').isVisible())
  await page.route(/\/comments\?/, (route) => route.abort())
  await page.evaluate((record) => {
    const element = document.createElement('comment-thread')
    element.innerHTML = '<p id="made">Made by a script.</p>'
    element.setAttribute('type', 'posts')
    element.setAttribute('record', record)
    document.querySelector('main')?.append(element)
  }, newRecord())
  await page.getByRole('alert').waitFor()
  assert.ok(await page.locator('#made').isVisible())
})

test('another thread hides the content of the element at once', async (t) => {
  const record = newRecord()
  const html = `<comment-thread type="posts" record="${record}"><p id="fallback">The comments as they were.</p></comment-thread>`
  const { page, thread } = await w.open(t, { record, html, ready: false, prepare: (page) => page.route(/\/comments\?/, (route) => route.abort()) })
  await page.getByRole('alert').waitFor()
  await thread.evaluate((element, record) => element.setAttribute('record', record), newRecord())
  await page.locator('#fallback').waitFor({ state: 'hidden' })
})
