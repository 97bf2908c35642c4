import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, choose, deleteComment, newRecord, openMenu, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })
const held = world({ SVC_ALLOW_GUESTS: 'true', SVC_REQUIRE_APPROVAL: 'true' })
const KEY = /^[\w-]{43}$/

/** @typedef {import('playwright-core').Page} Page */

/** Writes as a guest, and returns the comment's id. @param {Page} page @param {string} body */
async function write(page, body) {
  await page.getByPlaceholder('Write a comment…').fill(body)
  await page.getByLabel('Your name').fill('Zoë')
  await page.getByLabel('Your e-mail address').fill('zoe@example.org')
  await page.getByRole('button', { name: 'Post comment' }).click()
  const comment = page.locator('article').filter({ hasText: body })
  await comment.waitFor()
  return Number((await comment.getAttribute('id'))?.slice(8))
}

/** Records a page's requests to the API with their keys. @param {Page} page */
function keys(page) {
  /** @type {{ method: string, url: string, key: string | undefined }[]} */
  const seen = []
  page.on('request', (request) => {
    if (request.url().includes('/svc/api/v1/') && request.method() !== 'OPTIONS') seen.push({ method: request.method(), url: request.url(), key: request.headers()['comment-key'] })
  })
  return seen
}

test('a guest’s key is created when the first comment is sent, and all later requests from that device include it', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), prepare: async (page) => void (seen = keys(page)) })
  await page.getByPlaceholder('Write a comment…').fill('Hello.')
  await page.getByLabel('Your name').waitFor()
  assert.deepEqual(seen.filter(({ key }) => key), [], 'nobody who only reads has a key')
  await write(page, 'Hello.')
  const [{ key }] = seen.filter(({ method }) => method === 'POST')
  assert.match(key ?? '', KEY)
  seen.length = 0
  await page.reload()
  await page.locator('article').waitFor()
  const read = seen.find(({ url }) => url.includes('/comments?'))
  assert.equal(read?.key, key)
  assert.match(read?.url ?? '', /[?&]mine=1/)
  assert.ok(seen.every(({ url }) => !url.includes(key ?? '')), 'the key is in no address')
})
/** @type {ReturnType<typeof keys>} */
let seen = []

test('the address of a guest is sent as it was typed, whatever letters its domain has', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await page.getByPlaceholder('Write a comment…').fill('Hello.')
  await page.getByLabel('Your name').fill('Zoë')
  await page.getByLabel('Your e-mail address').pressSequentially('zoe@faß.example')
  const posted = page.waitForRequest((request) => request.method() === 'POST')
  await page.getByRole('button', { name: 'Post comment' }).click()
  assert.equal((await posted).postDataJSON().guest_email, 'zoe@faß.example')
})

test('a guest whose comment was approved is notified at that comment once, and no one else is', async (t) => {
  const record = newRecord()
  const { page } = await held.open(t, { record })
  const id = await write(page, 'May I?')
  const news = page.getByText('Your comment is public now.')
  await article(page, id).getByText('Only you see this').waitFor()
  await page.reload()
  await article(page, id).getByText('Only you see this').waitFor()
  await held.service.call('POST', `comments/${id}/approve`, held.service.moderator)
  await page.reload()
  await article(page, id).getByText('Your comment is public now.').waitFor()
  await page.reload()
  await article(page, id).waitFor()
  assert.equal(await news.count(), 0)
  const other = await held.open(t, { record })
  await article(other.page, id).waitFor()
  assert.equal(await other.page.getByText('Your comment is public now.').count(), 0)
})

test('a guest edits and deletes their comment, even after a reload', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  const id = await write(page, 'Teh text.')
  await choose(page, id, 'Edit')
  await article(page, id).locator('textarea').fill('The text.')
  await article(page, id).getByRole('button', { name: 'Save' }).click()
  await article(page, id).getByText('The text.').waitFor()
  await page.reload()
  await article(page, id).waitFor()
  await deleteComment(page, id)
  await article(page, id).waitFor({ state: 'detached' })
})

test('another guest can’t edit or delete the comment, and neither can the writer after fifteen minutes', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, prepare: (page) => page.clock.install() })
  const id = await write(page, 'Hello.')
  const offered = async (/** @type {Page} */ page) => {
    await openMenu(page, id)
    await page.getByRole('menu').waitFor()
    const items = await page.getByRole('menuitem').allTextContents()
    await page.keyboard.press('Escape')
    return items
  }
  assert.deepEqual(await offered(page), ['Copy link', 'Edit', 'Delete'])
  const other = await w.open(t, { record })
  assert.deepEqual(await offered(other.page), ['Copy link', 'Report'])
  await page.clock.setSystemTime(Date.now() + 15 * 60_000)
  assert.deepEqual(await offered(page), ['Copy link'])
})

test('a guest who edits too late sees the reason, and the text is kept', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  const id = await write(page, 'Hello.')
  await choose(page, id, 'Edit')
  const text = article(page, id).locator('textarea')
  await text.fill('Hello, all.')
  const refusal = { message: 'This comment can no longer be edited or deleted.', code: 'edit_closed', errors: {} }
  await page.route(/\/comments\/\d+$/, (route) => route.fulfill({ status: 403, headers: { 'access-control-allow-origin': '*' }, json: refusal }))
  await article(page, id).getByRole('button', { name: 'Save' }).click()
  await article(page, id).getByRole('alert').getByText(refusal.message).waitFor()
  assert.equal(await text.inputValue(), 'Hello, all.')
})

test('if storage throws, the key lasts as long as the page', async (t) => {
  const init = `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('No.', 'SecurityError') } })`
  const { page, errors } = await w.open(t, { record: newRecord(), init })
  const id = await write(page, 'Hello.')
  await deleteComment(page, id)
  await article(page, id).waitFor({ state: 'detached' })
  assert.deepEqual(errors, [])
})

test('a member sends no key on a device that a guest has used', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await write(page, 'Hello.')
  const seen = keys(page)
  const asked = page.waitForRequest(/\/comments\?/)
  await page.locator('comment-thread').evaluate((element, auth) => Object.assign(element, { auth }), w.service.ada)
  await asked
  assert.deepEqual(seen.filter(({ key }) => key), [])
})

test('threads on a page, and tabs, share the key of the device, by which each comment can be changed', async (t) => {
  const html = [newRecord(), newRecord()].map((record) => `<comment-thread loading="eager" type="posts" record="${record}"></comment-thread>`).join('')
  const { page, context, url } = await w.open(t, { html })
  const tab = await context.newPage()
  await tab.goto(url)
  const seen = [page, tab].map(keys)
  for (const here of [page, tab]) await here.locator('comment-thread h2').nth(1).waitFor()
  const places = [[page, 0], [page, 1], [tab, 1]].map(([here, place], n) => ({ here: /** @type {Page} */ (here), place: Number(place), body: `Number ${n}` }))
  for (const { here, place, body } of places) {
    const thread = here.locator('comment-thread').nth(place)
    await thread.getByPlaceholder('Write a comment…').fill(body)
    await thread.getByLabel('Your name').fill('Zoë')
    await thread.getByLabel('Your e-mail address').fill('zoe@example.org')
    await thread.getByRole('button', { name: 'Post comment' }).click()
    await thread.locator('article', { hasText: body }).waitFor()
  }
  const posted = seen.flat().filter(({ method }) => method === 'POST').map(({ key }) => key)
  assert.equal(posted.length, 3)
  assert.equal(new Set(posted).size, 1)
  await page.reload()
  for (const { body } of places) {
    await page.locator('article', { hasText: body }).getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Edit' }).waitFor()
    await page.keyboard.press('Escape')
  }
})

test('if storage is full, the key and the name last as long as the page', async (t) => {
  const init = `const full = new Proxy({}, { set() { throw new DOMException('Full.', 'QuotaExceededError') }, get: () => undefined })
    Object.defineProperty(window, 'localStorage', { value: full })`
  const { page, thread, errors } = await w.open(t, { record: newRecord(), init })
  const id = await write(page, 'Hello.')
  await thread.evaluate((element) => element.setAttribute('lang', 'de'))
  await page.getByPlaceholder('Schreibe einen Kommentar…').waitFor()
  await article(page, id).locator('.opener').click()
  await page.getByRole('menuitem', { name: 'Löschen' }).waitFor()
  assert.deepEqual(errors, [])
})
