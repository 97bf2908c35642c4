import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { card, deliver, focused, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { dialogCloses, hold, newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true' })
const { emptyQueue, open, isApproved } = moderatorsPage(w)
beforeEach(emptyQueue)

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page */
const boxIn = (page) => page.getByRole('textbox', { name: 'Reply to Ada' })

/** Sends a reply, and waits until the box is closed. @param {import('playwright-core').Locator} box @param {string} text */
async function send(box, text) {
  await box.fill(text)
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
}

/** @param {number} id @param {{ token: string }} who @returns {Promise<string[]>} */
const repliesTo = async (id, who) => (await w.service.call('GET', `comments/${id}/replies`, who.token)).data.map((/** @type {any} */ { body }) => body)

/** @param {string} record */
const addressOf = (record) => new RegExp(`/posts/${record}/comments$`)

/** Collects the replies that a page sends, with their keys. @param {Page} page @param {string} record */
function replies(page, record) {
  /** @type {{ body: string, key: string | null }[]} */
  const sent = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && addressOf(record).test(request.url())) sent.push({ body: request.postDataJSON().body, key: request.headers()['idempotency-key'] })
  })
  return sent
}

/** Posts a comment by a new member called Ada, and approves it if an approver is given. @param {string} text @param {{ token: string }} [approver] */
async function comment(text, approver) {
  const [record, writer] = [newRecord(), member('Ada')]
  const { id } = await w.service.comment(record, text, { who: writer.token })
  if (approver) await w.service.call('POST', `comments/${id}/approve`, approver.token)
  return { id, record }
}

/** Sends the next matching request, but holds its response. @param {Page} page @param {RegExp} pattern @returns {Promise<() => void>} releases it */
async function holdResponse(page, pattern) {
  let release = () => {}
  const released = new Promise((resolve) => (release = () => resolve(null)))
  await page.route(pattern, async (route) => {
    const response = await route.fetch()
    await released
    await route.fulfill({ response })
  }, { times: 1 })
  return release
}

/** Shows all comments, and opens the reply box of the first one with this text. @param {Page} page @param {string} text */
async function openBox(page, text) {
  await tab(page, 'All')
  await card(page, text).first().click()
  await press(page, 'Enter')
}

test('a reply with an approval has the text at that moment, and text typed later stays in the box', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Two replies?')
  const { page } = await open(t, { who: grace.token, clock: true })
  const sent = replies(page, record)
  const box = boxIn(page)
  await openBox(page, 'Two replies?')
  await send(box, 'First')
  await card(page, 'Two replies?').click()
  await press(page, 'Enter')
  await box.fill('Second')
  const replied = page.waitForResponse(addressOf(record))
  await deliver(page)
  await (await replied).finished()
  assert.deepEqual(await repliesTo(id, grace), ['First'])
  assert.equal(await box.inputValue(), 'Second')
  assert.ok(await box.evaluate((element) => element.matches(':focus')))
  await tab(page, 'Pending')
  await openBox(page, 'Two replies?')
  assert.equal(await box.inputValue(), 'Second')
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
  assert.deepEqual(sent.map(({ body }) => body), ['First', 'Second'])
  assert.deepEqual(await repliesTo(id, grace), ['First', 'Second'])
})

test('a box that is open again when its reply arrives is empty and works', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Anything else?')
  const { page } = await open(t, { who: grace.token, clock: true })
  const box = boxIn(page)
  await openBox(page, 'Anything else?')
  await send(box, 'No')
  await card(page, 'Anything else?').click()
  await press(page, 'Enter')
  await deliver(page)
  await until(() => box.inputValue(), (text) => !text)
  assert.equal(await box.inputValue(), '')
  assert.ok(await box.evaluate((element) => element.matches(':focus')), 'the next keys are no shortcuts')
  await page.keyboard.type('Yes')
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
  assert.deepEqual(await repliesTo(id, grace), ['No', 'Yes'])
})

test('an undo and a failure return the reply to its box, together with text typed later', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Undo?')
  const { page } = await open(t, { who: grace.token, clock: true })
  const sent = replies(page, record)
  const box = boxIn(page)
  const decideAndType = async (/** @type {string} */ reply, /** @type {string} */ later) => {
    await send(box, reply)
    await card(page, 'Undo?').click()
    await press(page, 'Enter')
    await box.fill(later)
  }
  await openBox(page, 'Undo?')
  await decideAndType('First', 'First, corrected')
  await page.getByRole('button', { name: 'Undo' }).click()
  assert.equal(await box.inputValue(), 'First, corrected')
  await decideAndType('First', 'Second')
  await page.getByRole('button', { name: 'Undo' }).click()
  assert.equal(await box.inputValue(), 'First\n\nSecond')
  await page.clock.runFor(20_000)
  assert.deepEqual(sent, [])
  await page.route(addressOf(record), (route) => route.abort())
  await decideAndType('Third', 'Fourth')
  await deliver(page)
  await card(page, 'Undo?').locator('.note', { hasText: 'Couldn\'t send your reply' }).waitFor()
  assert.equal(await isApproved(id, grace), true)
  assert.equal(await box.inputValue(), 'Third\n\nFourth')
  await page.reload()
  await page.goto(`${w.service.api}/moderate#token=${grace.token}`)
  await openBox(page, 'Undo?')
  assert.equal(await box.inputValue(), 'Third\n\nFourth', 'the draft')
})

test('a reply is sent once when the page is left and shown again while its decision is under way', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Once?')
  const { page } = await open(t, { who: grace.token, clock: true })
  const sent = replies(page, record)
  const box = boxIn(page)
  await openBox(page, 'Once?')
  await send(box, 'Once')
  await page.waitForLoadState('networkidle')
  const release = await holdResponse(page, /moderation.comments$/)
  const asked = page.waitForRequest(/moderation.comments$/)
  await page.clock.runFor(5_100)
  await asked
  await until(() => isApproved(id, grace), (approved) => approved)
  await page.evaluate(() => dispatchEvent(new Event('pagehide')))
  await until(() => repliesTo(id, grace), (found) => found.length > 0)
  // A delivery ends with a request for the counts of the tabs.
  const delivered = page.waitForRequest(/state=pending/)
  release()
  await delivered
  assert.deepEqual(await repliesTo(id, grace), ['Once'])
  assert.equal(sent.length, 1)
})

test('a reply whose response was lost is repeated with its key, and another text has another key', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Heard?', grace)
  const { page } = await open(t, { who: grace.token })
  const sent = replies(page, record)
  const box = boxIn(page)
  const address = addressOf(record)
  const lose = () => page.route(address, (route) => route.fetch().then(() => route.abort()), { times: 1 })
  const fails = () => page.getByRole('alert').getByText('No connection to the service.').waitFor()
  await openBox(page, 'Heard?')
  await lose()
  await box.fill('Yes')
  await box.press('Control+Enter')
  await fails()
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
  assert.deepEqual(await repliesTo(id, grace), ['Yes'])
  await press(page, 'Enter')
  await lose()
  await box.fill('Yes, wel')
  await box.press('Control+Enter')
  await fails()
  await send(box, 'Yes, well')
  await press(page, 'Enter')
  await send(box, 'Yes')
  assert.deepEqual(await repliesTo(id, grace), ['Yes', 'Yes, wel', 'Yes, well', 'Yes'])
  const [first, again, ...others] = sent.map(({ key }) => key)
  assert.equal(again, first)
  assert.equal(new Set([first, ...others]).size, 4)
})

test('a reply whose response was lost is posted once, even after a reload or another reply', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Once?', grace)
  const { page } = await open(t, { who: grace.token })
  const address = addressOf(record)
  const box = boxIn(page)
  const reload = async () => {
    await page.goto('about:blank')
    await page.goto(`${w.service.api}/moderate#token=${grace.token}`)
    // The reply's card quotes the comment.
    await openBox(page, '1 comment approved')
  }
  await openBox(page, 'Once?')
  await page.route(address, (route) => route.fetch().then(() => route.abort()), { times: 1 })
  await box.fill('Once')
  await box.press('Control+Enter')
  await page.getByRole('alert').getByText('No connection to the service.').waitFor()
  await reload()
  await send(box, 'Another')
  await reload()
  await send(box, 'Once')
  await reload()
  await send(box, 'Once')
  assert.deepEqual(await repliesTo(id, grace), ['Once', 'Another', 'Once'])
})

test('a reply is posted on a page without https', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Plain?', grace)
  const { page } = await open(t, { who: grace.token })
  await page.evaluate(() => Object.defineProperty(crypto, 'randomUUID', { value: undefined }))
  await openBox(page, 'Plain?')
  await send(boxIn(page), 'Yes')
  assert.deepEqual(await repliesTo(id, grace), ['Yes'])
})

test('a reply whose box was closed while it was sent leaves the focus, and comes back if it fails', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Slow?', grace)
  await comment('Another one', grace)
  const { page } = await open(t, { who: grace.token })
  const box = boxIn(page)
  await openBox(page, 'Slow?')
  const address = addressOf(record)
  for (const leave of [['Escape'], ['Escape', 'k']]) {
    await page.route(address, (route) => route.abort())
    const release = await hold(page, address)
    await box.fill('Yes')
    await box.press('Control+Enter')
    await press(page, ...leave)
    await box.waitFor({ state: 'detached' })
    release()
    await card(page, 'Slow?').getByRole('alert').getByText('No connection to the service.').waitFor()
    await page.getByText('Couldn\'t send your reply').first().waitFor()
    assert.equal(await box.inputValue(), 'Yes')
    assert.equal(await focused(page), leave.length > 1 ? 'Another one' : 'Slow?')
    await page.unroute(address)
  }
  const release = await hold(page, address)
  await box.locator('xpath=..').getByRole('button', { name: 'Reply' }).click()
  await card(page, 'Another one').click()
  release()
  await page.getByText('Replied to Ada').first().waitFor()
  await box.waitFor({ state: 'detached' })
  assert.equal(await focused(page), 'Another one')
  assert.deepEqual(await repliesTo(id, grace), ['Yes'])
})

test('a box that a drawer takes over comes back when the drawer closes, and is gone once its reply was sent', async (t) => {
  const grace = moderator('Grace')
  const { id, record } = await comment('Who asks?', grace)
  const { page } = await open(t, { who: grace.token })
  const box = boxIn(page)
  await openBox(page, 'Who asks?')
  await box.fill('A reply')
  const drawer = page.getByRole('dialog')
  const openDrawer = async () => {
    await card(page, 'Who asks?').getByRole('button', { name: 'All by' }).click()
    await drawer.locator('article', { hasText: 'Who asks?' }).waitFor()
  }
  await openDrawer()
  await drawer.getByRole('button', { name: 'Close', exact: true }).click()
  await dialogCloses(page)
  assert.equal(await box.inputValue(), 'A reply')
  assert.equal(await focused(page), 'Who asks?')
  const release = await hold(page, addressOf(record))
  await box.press('Control+Enter')
  await openDrawer()
  release()
  await page.getByText('Replied to Ada').first().waitFor()
  await box.waitFor({ state: 'detached' })
  assert.deepEqual(await repliesTo(id, grace), ['A reply'])
})

test('a reply that waits for an approval when another user signs in is sent for the moderator who wrote it', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const { id } = await comment('Who answers?')
  const { page } = await open(t, { who: grace.token, clock: true })
  await openBox(page, 'Who answers?')
  await send(boxIn(page), 'Grace does')
  await page.locator('comment-moderation').evaluate((element, auth) => Object.assign(element, { auth }), linus.token)
  const [reply] = await until(async () => (await w.service.call('GET', `comments/${id}/replies`, grace.token)).data, (found) => found.length)
  assert.equal(reply.user.name, grace.name)
})
