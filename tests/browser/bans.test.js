import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { LOOKS, card, deliver, focused, isAccessible, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { answering, dialogCloses, newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_ALLOW_GUESTS: 'true' })
const { emptyQueue, open, logOf } = moderatorsPage(w)
beforeEach(emptyQueue)

/** Milliseconds between the page's checks of the log. */
const WATCH = 15_000

/** @typedef {import('playwright-core').Page} Page */

/** Numbers the networks, so that each test has a separate one. */
let networks = 10
const network = () => `127.0.1.${++networks}`

/** Returns the texts of the cards, newest first. @param {Page} page */
const texts = (page) => page.locator('article .body').evaluateAll((bodies) => bodies.map((body) => body.textContent?.trim()))

/** @param {{ id: number, token: string }} who */
const actionsOf = async (who) => (await logOf(who)).map(({ action }) => action)

/** @param {{ method: string, path: string }[]} sent */
const bansIn = (sent) => sent.filter(({ method }) => method === 'PUT').map(({ path }) => path)

test('a network is blocked from the card of a guest, and its guests’ recent comments are rejected with it', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const [spam, other] = [network(), network()]
  const record = newRecord()
  await w.service.commentFrom(other, record, 'Of another network')
  await w.service.comment(record, 'Of a member', { who: ada.token })
  for (const body of ['Spam 1', 'Spam 2', 'Spam 3']) await w.service.commentFrom(spam, record, body)
  const { page, sent } = await open(t, { who: grace.token })
  await until(() => focused(page), (text) => text === 'Spam 3')
  await card(page, 'Spam 3').getByRole('button', { name: 'Block network…' }).click()
  const dialog = page.getByRole('dialog', { name: `Block Guest of ${spam}'s network` })
  assert.equal(await dialog.getByRole('radio', { name: '1 day' }).isChecked(), true)
  for (const name of ['30 days', 'Permanently']) assert.equal(await dialog.getByRole('radio', { name }).count(), 0)
  await dialog.getByRole('radio', { name: 'Reject all pending' }).check()
  await dialog.getByRole('button', { name: 'Block' }).click()
  await dialogCloses(page)
  await until(() => focused(page), (text) => text === 'Of a member')
  assert.deepEqual(await texts(page), ['Of a member', 'Of another network'])
  assert.deepEqual(sent.map(({ path, body }) => [path.split('/')[0], path.split('/')[2], body.reject_recent]), [['comments', 'ban', true]])
  assert.deepEqual(await until(() => actionsOf(grace), ({ length }) => length === 4), ['reject', 'reject', 'reject', 'ban'])
  assert.equal((await w.service.commentFrom(spam, record, 'Once more')).code, 'comment_banned')
  assert.equal((await w.service.commentFrom(other, record, 'Still here')).code, undefined)
})

test('comments that a ban rejects stay away while the service rejects them', async (t) => {
  const grace = moderator('Grace')
  const spam = network()
  const record = newRecord()
  await w.service.comment(record, 'Of a member')
  for (const body of ['Spam 1', 'Spam 2']) await w.service.commentFrom(spam, record, body)
  /** @type {any} */
  let before
  const prepare = (/** @type {Page} */ page) => page.route(/moderation\/comments\?state=pending&cursor=&per_page=50/, async (route) => {
    before ??= await (await route.fetch()).json()
    await route.fulfill({ json: before })
  })
  const { page } = await open(t, { who: grace.token, prepare })
  await until(() => focused(page), (text) => text === 'Spam 2')
  await press(page, 'b')
  await page.getByRole('dialog').getByRole('radio', { name: 'Reject all pending' }).check()
  await press(page, 'Enter')
  await until(() => focused(page), (text) => text === 'Of a member')
  await page.getByRole('button', { name: 'Refresh' }).click()
  await until(() => focused(page), (text) => text === 'Of a member')
  assert.deepEqual(await texts(page), ['Of a member'])
})

test('comments that the service rejects while further writers are being banned leave the queue with the rest', async (t) => {
  const grace = moderator('Grace')
  const [first, second] = [network(), network()]
  const record = newRecord()
  await w.service.comment(record, 'Of a member')
  await w.service.commentFrom(second, record, 'Spam of the second')
  await w.service.commentFrom(first, record, 'Spam of the first')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Spam of the first')
  /** @type {(value?: unknown) => void} */
  let release = () => {}
  const held = new Promise((resolve) => (release = resolve))
  let bans = 0
  await page.route(/comments\/\d+\/ban$/, async (route) => {
    if (bans++) await held
    await route.continue()
  })
  await press(page, 'x', 'j', 'x', 'b')
  await page.getByRole('dialog').getByRole('radio', { name: 'Reject all pending' }).check()
  await press(page, 'Enter')
  await until(() => actionsOf(grace), (actions) => actions.includes('reject'))
  const seen = page.waitForResponse(/moderation\/log/)
  await page.clock.runFor(WATCH)
  await (await seen).finished()
  await card(page, 'Spam of the first').getByText('Rejected').first().waitFor()
  release()
  await dialogCloses(page)
  await until(() => focused(page), (text) => text === 'Of a member')
  assert.deepEqual(await texts(page), ['Of a member'])
})

test('in the list of all comments, those that a ban rejects are marked, and the card keeps the focus', async (t) => {
  const [grace, mallory] = [moderator('Grace'), member('Mallory')]
  const record = newRecord()
  for (const body of ['Mallory once', 'Mallory twice']) await w.service.comment(record, body, { who: mallory.token })
  const { page } = await open(t, { who: grace.token })
  await tab(page, 'All')
  await until(() => focused(page), (text) => text === 'Mallory twice')
  await press(page, 'b')
  await page.getByRole('dialog', { name: 'Ban Mallory' }).getByRole('radio', { name: 'Reject all pending' }).check()
  await press(page, 'Enter')
  for (const body of ['Mallory once', 'Mallory twice']) {
    await card(page, body).locator('.why', { hasText: 'Rejected' }).waitFor()
    await card(page, body).getByText('Banned').first().waitFor()
  }
  await until(() => focused(page), (text) => text === 'Mallory twice')
  await until(() => actionsOf(grace), ({ length }) => length === 3)
})

test('a selection bans its writers, each network once, and the next dialog remembers the choice for their comments', async (t) => {
  const [grace, mallory] = [moderator('Grace'), member('Mallory')]
  const record = newRecord()
  const spam = [network(), network()]
  const ids = []
  for (const address of [...spam, ...spam]) ids.push((await w.service.commentFrom(address, record, 'Buy')).data.id)
  await w.service.comment(record, 'Buy, too', { who: mallory.token })
  const { page, sent } = await open(t, { who: grace.token })
  await until(() => focused(page), (text) => text === 'Buy, too')
  await press(page, '*', 'b')
  const dialog = page.getByRole('dialog', { name: 'Ban 3 writers' })
  await dialog.getByText('Guests on this network can read').waitFor()
  await press(page, 'ArrowDown', 'Enter')
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  assert.deepEqual(bansIn(sent), [`users/${mallory.id}/ban`, `comments/${ids[1]}/ban`, `comments/${ids[0]}/ban`])
  await until(() => actionsOf(grace), ({ length }) => length === 8)
  await w.service.commentFrom(network(), record, 'Another one')
  await page.getByRole('button', { name: 'Refresh' }).click()
  await until(() => focused(page), (text) => text === 'Another one')
  await press(page, 'b')
  assert.equal(await page.getByRole('radio', { name: 'Reject all pending' }).isChecked(), true)
})

test('a ban that is refused stays in its dialog, and the next press continues with the remaining writers', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const ids = []
  for (let i = 0; i < 3; i++) ids.unshift((await w.service.commentFrom(network(), record, `Number ${i}`)).data.id)
  const { page, sent } = await open(t, { who: grace.token })
  await until(() => focused(page), (text) => text === 'Number 2')
  const busy = { status: 429, headers: { 'access-control-allow-origin': '*' }, json: { message: '', code: 'rate_limited', errors: {} } }
  const second = new RegExp(`comments/${ids[1]}/ban`)
  await page.route(second, (route) => route.fulfill(busy))
  await press(page, '*', 'b', 'Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('alert').getByText('Too many requests').waitFor()
  await page.unroute(second)
  await dialog.getByRole('button', { name: 'Block' }).click()
  await dialogCloses(page)
  assert.deepEqual(bansIn(sent), [ids[0], ids[1], ids[1], ids[2]].map((id) => `comments/${id}/ban`))
})

test('the list of bans shows networks with the comment that caused each ban, and can lift bans', async (t) => {
  const grace = moderator('Grace')
  const spam = network()
  const record = newRecord()
  const { data: { id } } = await w.service.commentFrom(spam, record, 'By which it was banned')
  await w.service.call('PUT', `comments/${id}/ban`, grace.token, { reason: 'Sells watches' })
  const { page, sent } = await open(t, { who: grace.token })
  await tab(page, 'Users')
  const row = page.locator('.user', { hasText: `Guest of ${spam}` })
  await row.getByText('Guest network').waitFor()
  await row.getByText('Sells watches').waitFor()
  await row.getByRole('button', { name: 'Show' }).click()
  await page.getByRole('dialog').locator('article', { hasText: 'By which it was banned' }).waitFor()
  await press(page, 'Escape')
  await row.getByRole('button', { name: 'Lift ban' }).click()
  await row.getByRole('button', { name: 'Block network…' }).waitFor()
  assert.match(sent[0].path, /^moderation\/networks\/[^/]+\/ban$/)
  assert.equal((await w.service.commentFrom(spam, record, 'Back again')).code, undefined)
  await row.getByRole('button', { name: 'Block network…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
  await row.getByText('Banned until').waitFor()
  assert.equal((await w.service.commentFrom(spam, record, 'Not any more')).code, 'comment_banned')
})

test('a guest whose network is not known cannot be banned', async (t) => {
  await w.service.comment(newRecord(), 'From nowhere', { who: null })
  const prepare = answering(({ data }) => {
    for (const item of data) item.network = null
  }, /moderation\/comments\?state/)
  const { page } = await open(t, { who: moderator('Grace').token, prepare })
  await until(() => focused(page), (text) => text === 'From nowhere')
  assert.equal(await card(page, 'From nowhere').getByRole('button', { name: /Block|Ban/ }).count(), 0)
  await press(page, 'b')
  await page.getByText("This guest's network is unknown").first().waitFor()
})

test('a thread is closed and opened from any of its cards, and the log says so', async (t) => {
  const [grace, ada] = [moderator('Grace who closes'), member('Ada')]
  const [record, other] = [newRecord(), newRecord()]
  await w.service.call('PUT', `posts/${record}`, grace.token, { title: 'A long story' })
  for (const [body, where] of [['One', record], ['Elsewhere', other], ['Two', record]]) await w.service.comment(where, body, { who: ada.token })
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Two')
  await press(page, 'c')
  await page.getByText('Closed: A long story').first().waitFor()
  for (const body of ['One', 'Two']) await card(page, body).locator('.closed').waitFor()
  assert.equal(await card(page, 'Elsewhere').locator('.closed').count(), 0)
  await deliver(page)
  await assert.rejects(w.service.comment(record, 'Too late', { who: ada.token }), /thread_closed/)
  await until(() => focused(page), (text) => text === 'Two')
  await card(page, 'One').getByRole('button', { name: 'Reopen thread' }).click()
  await page.getByText('Reopened: A long story').first().waitFor()
  await deliver(page)
  await w.service.comment(record, 'In time', { who: ada.token })
  await tab(page, 'Log')
  const rows = page.locator('.log li', { hasText: grace.name })
  await rows.nth(1).waitFor()
  assert.deepEqual(await rows.locator('.did').allTextContents(), [`${grace.name} reopened`, `${grace.name} closed`])
  assert.equal(await rows.first().locator('.thread').textContent(), `posts/${record}`)
})

for (const context of LOOKS) {
  test(`axe finds nothing in bans of networks and closed threads, ${context.colorScheme}, ${context.viewport.width} pixels`, async (t) => {
    const grace = moderator('Grace')
    const record = newRecord()
    const { data: { id } } = await w.service.commentFrom(network(), record, 'Buy watches')
    await w.service.commentFrom(network(), record, 'Buy more watches')
    await w.service.call('PUT', `comments/${id}/ban`, grace.token, {})
    await w.service.call('POST', `posts/${record}/close`, grace.token)
    const { page } = await open(t, { who: grace.token, context })
    await page.locator('article.current').waitFor()
    await isAccessible(page, 'closed threads')
    await press(page, '*', 'b')
    await page.getByRole('dialog').waitFor()
    await isAccessible(page, 'the ban')
    assert.ok(await page.locator('fieldset label').evaluateAll((labels) => labels.every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)), 'all choices can be read')
    await press(page, 'Escape')
    await dialogCloses(page)
    await tab(page, 'Users')
    await page.getByText('Guest network').first().waitFor()
    await isAccessible(page, 'the banned')
  })
}
