import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, hold, newRecord, token, world } from './world.js'

const w = world()

test('a thread that could not be loaded is loaded when the network is back', async (t) => {
  const { page, context } = await w.open(t, { comment: 'Hello.', ready: false, prepare: (page) => page.route(/\/comments\?/, (route) => route.abort(), { times: 1 }) })
  await page.getByRole('alert').waitFor()
  await context.setOffline(true)
  await context.setOffline(false)
  await page.getByText('Hello.').waitFor()
})

test('a response that isn’t from the API is an error, not a crash', async (t) => {
  const { page, errors } = await w.open(t, {
    record: newRecord(),
    ready: false,
    prepare: (page) => page.route(/\/comments\?/, (route) => route.fulfill({ status: 200, headers: { 'access-control-allow-origin': '*' }, body: '<html>Sign in to the network' })),
  })
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  assert.deepEqual(errors, [])
})

test('when load more fails the comments stay, and it can be tried again', async (t) => {
  const record = newRecord()
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Comment ${i}`)
  const { page, context } = await w.open(t, { record })
  await context.setOffline(true)
  await page.getByRole('button', { name: /more comment/ }).click()
  await page.getByRole('alert').getByText('No connection').waitFor()
  assert.equal(await page.locator('article').count(), 10)
  await context.setOffline(false)
  await page.locator('article').nth(11).waitFor()
  assert.equal(await page.getByRole('alert').getByText('No connection').count(), 0)
})

test('when replies fail a message says so, and the button stays', async (t) => {
  const record = newRecord()
  const parent = await w.service.comment(record, 'Ask me.')
  for (let i = 0; i < 5; i++) await w.service.comment(record, `Reply ${i}`, { parent: parent.id })
  const { page, context } = await w.open(t, { record })
  await context.setOffline(true)
  await page.getByRole('button', { name: '2 more replies' }).click()
  const status = page.getByRole('status')
  await status.getByText('No connection').waitFor()
  // The status is visible, not only available to screen readers.
  assert.equal(await status.evaluate((element) => getComputedStyle(element).clipPath), 'none')
  await context.setOffline(false)
  await page.getByRole('button', { name: '2 more replies' }).click()
  await page.locator('.replies article').nth(4).waitFor()
})

test('on a slow network the place is kept, and a second click sends nothing twice', async (t) => {
  const record = newRecord()
  let show = () => {}
  const { page } = await w.open(t, { record, who: w.service.ada, ready: false, prepare: async (page) => (show = await hold(page, /\/comments\?/)) })
  await page.locator('.skeleton').first().waitFor()
  assert.ok(((await page.locator('comment-thread').boundingBox())?.height ?? 0) > 300)
  show()
  const answer = await hold(page, /\/comments$/)
  /** @type {string[]} */
  const sent = []
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()))
  const text = page.getByPlaceholder('Write a comment…')
  await text.fill('Once.')
  const send = page.locator('form .primary')
  await send.click()
  await send.getByText('Posting…').waitFor()
  assert.equal(await text.isEditable(), false)
  await send.click()
  await text.press('Control+Enter')
  answer()
  await page.locator('article').waitFor()
  assert.equal(sent.length, 1)
  const { data } = await w.service.call('GET', `posts/${record}/comments`, null)
  assert.equal(data.length, 1)
})

test('a token that expires while the visitor writes is requested again, once', async (t) => {
  const init = `window.asked = 0
    document.addEventListener('DOMContentLoaded', () => {
      document.querySelector('comment-thread').auth = () => ['', ${JSON.stringify(token(7, 'Ada', { jti: 'old' }))}, ${JSON.stringify(w.service.ada)}][++asked]
    })`
  const { page } = await w.open(t, { record: newRecord(), init })
  /** @type {number[]} */
  const answers = []
  page.on('response', (response) => response.request().method() === 'POST' && answers.push(response.status()))
  await page.route(/\/comments$/, async (route) => {
    const headers = await route.request().allHeaders()
    if (!headers.authorization?.endsWith(w.service.ada)) headers.authorization += 'expired'
    await route.continue({ headers })
  })
  await page.getByPlaceholder('Write a comment…').fill('Still me.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  assert.deepEqual(answers, [401, 201])
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).asked), 2)
})

test('a text written after the session has ended is not sent as a guest', async (t) => {
  const init = `window.asked = 0
    document.addEventListener('DOMContentLoaded', () => {
      document.querySelector('comment-thread').auth = () => [${JSON.stringify(w.service.ada)}, null][window.asked++]
    })`
  const { page } = await w.open(t, { record: newRecord(), init })
  /** @type {(string | undefined)[]} */
  const sent = []
  await page.route(/\/comments$/, async (route) => {
    sent.push((await route.request().allHeaders()).authorization)
    await route.fulfill({ status: 401, headers: { 'access-control-allow-origin': '*' }, json: { message: 'Sign in.', code: 'unauthenticated', errors: {} } })
  })
  await page.getByPlaceholder('Write a comment…').fill('Still me.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('Your session has ended').waitFor()
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  assert.deepEqual(sent, [`Bearer ${w.service.ada}`])
  assert.equal(await page.getByPlaceholder('Write a comment…').inputValue(), 'Still me.')
})

test('too many requests have their own message', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', who: w.service.ada })
  const refusal = { message: 'Too many requests.', code: 'rate_limited', errors: {} }
  await page.route(/\/like$/, (route) => route.fulfill({ status: 429, headers: { 'access-control-allow-origin': '*' }, json: refusal }))
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await page.getByRole('status').getByText('Too many requests. Try again in a moment.').waitFor()
})

test('an error without a body is an error, not a crash', async (t) => {
  const { page, id, errors } = await w.open(t, { comment: 'Hello.', who: w.service.ada })
  await page.route(/\/like$/, (route) => route.fulfill({ status: 502, headers: { 'access-control-allow-origin': '*' }, body: '' }))
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await page.getByRole('status').getByText('Something went wrong').waitFor()
  assert.deepEqual(errors, [])
})
