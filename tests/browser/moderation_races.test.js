import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { card, deliver, focused, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { hold, newRecord, token, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_WEBHOOKS: 'true', SVC_WEBHOOK_PRIVATE: 'true' })
const { emptyQueue, open, isApproved, logOf } = moderatorsPage(w)
beforeEach(emptyQueue)

/** @typedef {import('playwright-core').Page} Page */

/** @param {string} text @param {ReturnType<typeof member>} [who] */
const comment = (text, who = member('Ada')) => w.service.comment(newRecord(), text, { who: who.token })

/** @param {Page} page @param {unknown} auth */
const setAuth = (page, auth) => page.locator('comment-moderation').evaluate((element, auth) => Object.assign(element, { auth }), auth)

/** Records, in order, which moderators' tokens the page's POST requests contain. @param {Page} page */
function senders(page) {
  /** @type {string[]} */
  const names = []
  page.on('request', (request) => {
    if (request.method() === 'POST') names.push(JSON.parse(`${Buffer.from(request.headers().authorization.split('.')[1], 'base64url')}`).name)
  })
  return names
}

/** Releases the list's response, and waits until the loaded list could have moved the focus. @param {Page} page @param {() => void} release */
async function arrives(page, release) {
  const loaded = page.waitForResponse(/moderation.comments.*per_page=50/)
  release()
  await (await loaded).finished()
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)))
}

const LIST = /moderation.comments.*per_page=50/

test('a list that loads late doesn’t take the focus from a field, whatever loads it', async (t) => {
  for (let i = 0; i < 3; i++) await comment(`Spam number ${i}`)
  const { page, sent } = await open(t, { who: moderator('Grace').token })
  await card(page, 'Spam number 2').waitFor()
  const field = page.getByRole('searchbox')
  /** @type {[string, (page: Page) => Promise<unknown>][]} */
  const ways = [
    ['a tab', (page) => tab(page, 'All')],
    ['a refresh', (page) => page.getByRole('button', { name: 'Refresh' }).click()],
    ['a search', async () => {
      await field.fill('spam')
      await press(page, 'Enter')
    }],
  ]
  for (const [name, start] of ways) {
    const release = await hold(page, LIST)
    await start(page)
    await field.click()
    await page.keyboard.type('x')
    await arrives(page, release)
    await page.keyboard.type('ra')
    assert.match(await field.inputValue(), /xra$/, name)
    await page.unroute(LIST)
    await field.fill('')
    await card(page, 'Spam number 2').waitFor()
  }
  assert.deepEqual(sent, [])
})

test('a list that loads late doesn’t take the focus from a field of the host page', async (t) => {
  await comment('Embedded')
  const { page } = await open(t, { who: moderator('Grace').token })
  await card(page, 'Embedded').waitFor()
  await page.evaluate(() => document.body.prepend(Object.assign(document.createElement('input'), { id: 'host' })))
  const release = await hold(page, LIST)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.locator('#host').focus()
  await arrives(page, release)
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'host')
})

test('a thread that is closed while another moderator signs in is closed once, for the one who closed it', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  await comment('Close this')
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Close this').waitFor()
  await page.waitForLoadState('networkidle')
  const asked = page.waitForRequest(/moderation.log/)
  const release = await hold(page, /moderation.log/)
  const names = senders(page)
  await press(page, 'c')
  await page.clock.runFor(5_100)
  await asked
  await setAuth(page, linus.token)
  await until(async () => names.length, (n) => n > 0)
  release()
  await page.waitForTimeout(500)
  assert.deepEqual(names, ['Grace'])
})

test('the second request of a delivery is not sent for a moderator who signs in during the first', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const record = newRecord()
  for (const text of ['One', 'Two']) await w.service.comment(record, text, { who: member('Ada').token })
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Two').waitFor()
  await press(page, 'a', 'r')
  const asked = page.waitForRequest((request) => request.method() === 'POST')
  const release = await hold(page, /moderation.comments$/)
  await page.clock.runFor(5_100)
  await asked
  const names = senders(page)
  await setAuth(page, linus.token)
  await page.waitForTimeout(200)
  release()
  await until(() => logOf(grace), (entries) => entries.length >= 2)
  await page.waitForTimeout(500)
  assert.deepEqual(names, ['Grace', 'Grace'])
})

for (const [how, finish] of /** @type {[string, (page: Page) => Promise<unknown>][]} */ ([
  ['sent together', (page) => page.clock.runFor(6_000)],
  ['sent while the page is left', (page) => page.evaluate(() => dispatchEvent(new Event('pagehide')))],
])) {
  test(`the last decision about a comment and a thread is the only one ${how}`, async (t) => {
    await comment('Changed my mind')
    const { page, sent } = await open(t, { who: moderator('Grace').token, clock: true })
    await tab(page, 'All')
    const shown = card(page, 'Changed my mind')
    for (const key of ['r', 'a', 'r', 'c', 'c', 'c']) {
      await shown.locator('time').first().click()
      await press(page, key)
    }
    await finish(page)
    await until(async () => sent.length, (n) => n >= 2)
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.deepEqual(sent.map(({ path, body }) => body?.action ?? path.split('/').at(-1)), ['close', 'reject'])
  })
}

test('a decision that is refused returns the comment as it was before the decisions that it replaced', async (t) => {
  await comment('Refused in the end')
  const { page } = await open(t, { who: moderator('Grace').token, clock: true })
  await tab(page, 'All')
  const shown = card(page, 'Refused in the end')
  await page.route(/moderation.comments$/, (route) => route.fulfill({ status: 403, json: { code: 'forbidden' } }))
  for (const key of ['r', 'a']) {
    await shown.locator('time').first().click()
    await press(page, key)
  }
  await page.clock.runFor(6_000)
  await shown.getByText("Couldn't apply your decision").waitFor()
  await shown.locator('.why', { hasText: 'Awaiting approval' }).waitFor()
})

test('another moderator’s decision about a visible comment takes precedence over an undelivered one', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const { id } = await comment('Contested')
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await tab(page, 'All')
  const shown = card(page, 'Contested')
  await shown.locator('time').first().click()
  await page.waitForLoadState('networkidle')
  await page.clock.runFor(11_000)
  await press(page, 'r')
  await w.service.call('POST', `comments/${id}/approve`, linus.token)
  await page.clock.runFor(4_500)
  await shown.getByText('Linus approved').waitFor()
  await page.clock.runFor(2_000)
  await page.locator('.bar', { hasText: 'Linus approved' }).waitFor()
  assert.deepEqual(sent, [])
  assert.equal(await isApproved(id, grace), true)
})

test('lists that are opened before a decision is sent show it, until it is undone', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const { id } = await comment('To be decided', ada)
  await comment('By the same writer', ada)
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  const shown = card(page, 'To be decided')
  const why = shown.locator('.why')
  const reject = async () => {
    await tab(page, 'Pending')
    await shown.locator('time').first().click()
    await press(page, 'r')
    await shown.waitFor({ state: 'detached' })
  }
  await reject()
  await tab(page, 'All')
  await why.getByText('Rejected').waitFor()
  assert.equal(await shown.getByRole('button', { name: 'Reject' }).count(), 0)
  await press(page, 'u')
  await why.getByText('Awaiting approval').waitFor()
  await reject()
  await card(page, 'By the same writer').getByRole('button', { name: 'All by Ada' }).click()
  await page.getByRole('dialog').locator('article', { hasText: 'To be decided' }).locator('.why').getByText('Rejected').waitFor()
  await press(page, 'Escape')
  // The list's response is older than the delivery, but arrives after it.
  const response = page.waitForResponse(/state=all.*per_page=50/)
  /** @type {(() => void) | undefined} */
  let release
  await page.route(/state=all.*per_page=50/, async (route) => {
    const response = await route.fetch()
    await new Promise((resolve) => (release = () => resolve(null)))
    await route.fulfill({ response })
  }, { times: 1 })
  await tab(page, 'All')
  await until(async () => release, Boolean, 5_000)
  await deliver(page)
  release?.()
  await (await response).finished()
  await why.getByText('Rejected').waitFor()
  assert.equal(sent.length, 1)
  assert.equal(await isApproved(id, grace), false)
})

test('the dialog of an expired sign-in stays until the moderator has signed in', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Decided too late')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Decided too late')
  const refuse = (/** @type {import('playwright-core').Route} */ route) => route.fulfill({ status: 401, json: { code: 'unauthenticated' } })
  await page.route(/moderation.comments$/, refuse)
  await press(page, 'a')
  await page.clock.runFor(5_100)
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  await dialog.getByRole('textbox').fill('half')
  await press(page, 'Escape', 'Escape', 'Escape')
  // Some browsers close the dialog anyway.
  await dialog.evaluate((/** @type {HTMLDialogElement} */ element) => element.close())
  await page.waitForTimeout(200)
  assert.equal(await dialog.getByRole('textbox').inputValue(), 'half')
  await page.unroute(/moderation.comments$/, refuse)
  await setAuth(page, token(grace.id, 'Grace', { roles: ['moderator'], jti: 'new' }))
  await dialog.waitFor({ state: 'detached' })
  await page.clock.runFor(100)
  assert.equal(await until(() => isApproved(id, grace), (approved) => approved), true)
})

test('signing out waits for decisions, and stops if they can’t be sent', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Before I go')
  const { page, context } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Before I go')
  await page.waitForLoadState('networkidle')
  await press(page, 'a')
  await context.setOffline(true)
  await page.getByRole('button', { name: 'Sign out' }).click()
  const notice = page.locator('.bar', { hasText: 'Try again' })
  await notice.waitFor()
  await context.setOffline(false)
  await notice.getByRole('button', { name: 'Try again' }).click()
  await page.clock.runFor(100)
  assert.equal(await until(() => isApproved(id, grace), (approved) => approved), true)
  await page.clock.runFor(5_000)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('textbox').waitFor()
})

test('a decision that is refused because the token has expired is sent with the same moderator’s next token', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Renew me')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Renew me')
  await page.route(/moderation.comments$/, (route) => route.fulfill({ status: 401, json: { code: 'unauthenticated' } }), { times: 1 })
  await press(page, 'a')
  await setAuth(page, token(grace.id, 'Grace', { roles: ['moderator'], jti: 'renewed' }))
  await page.locator('.bar', { hasText: 'Try again' }).waitFor()
  await page.clock.runFor(6_000)
  assert.equal(await until(() => isApproved(id, grace), (approved) => approved), true)
})

test('a comment whose decision was discarded is shown to the moderator who signs in next', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  await comment('Not decided')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Not decided')
  const refuse = (/** @type {import('playwright-core').Route} */ route) => route.fulfill({ status: 401, json: { code: 'unauthenticated' } })
  await page.route(/moderation.comments$/, refuse)
  await press(page, 'a')
  await page.clock.runFor(5_100)
  await page.getByRole('dialog').waitFor()
  await page.unroute(/moderation.comments$/, refuse)
  await setAuth(page, linus.token)
  await card(page, 'Not decided').waitFor()
})

test('another moderator finds no open box or draft from the previous moderator', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  await comment('Private thoughts')
  const { page } = await open(t, { who: grace.token })
  await until(() => focused(page), (text) => text === 'Private thoughts')
  const box = page.getByRole('textbox', { name: 'Reply to Ada' })
  await press(page, 'Enter')
  await box.fill('Written by Grace')
  for (const [who, text] of /** @type {const} */ ([[linus, ''], [grace, 'Written by Grace']])) {
    await setAuth(page, who.token)
    await page.getByRole('banner').getByText(who.name).waitFor()
    await until(() => focused(page), (text) => text === 'Private thoughts')
    assert.equal(await box.count(), 0)
    await press(page, 'Enter')
    assert.equal(await box.inputValue(), text)
  }
})

test('the dialogs of a ban and a webhook stay open while they are sent', async (t) => {
  await comment('Ban me')
  const { page } = await open(t, { who: moderator('Grace').token })
  const dialog = page.getByRole('dialog')
  const stays = async (/** @type {RegExp} */ path, /** @type {string} */ send) => {
    const asked = page.waitForRequest((request) => path.test(request.url()) && request.method() !== 'GET')
    const release = await hold(page, path)
    await dialog.getByRole('button', { name: send, exact: true }).click()
    await asked
    await press(page, 'Escape', 'Escape', 'Escape')
    assert.equal(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled(), true)
    assert.equal(await dialog.count(), 1)
    release()
  }
  await until(() => focused(page), (text) => text === 'Ban me')
  await press(page, 'b')
  await stays(/ban$/, 'Ban')
  await dialog.waitFor({ state: 'detached' })
  await tab(page, 'Webhooks')
  await page.getByRole('button', { name: 'Add webhook' }).click()
  await dialog.getByLabel('URL').fill('http://127.0.0.1:9/hook')
  await stays(/moderation.webhooks$/, 'Save')
  await dialog.getByLabel('Secret').waitFor()
  await press(page, 'Escape')
  await dialog.waitFor({ state: 'detached' })
})

test('a reply and a ban that are refused because the sign-in has expired ask to sign in again', async (t) => {
  const grace = moderator('Grace')
  const { id } = await comment('Expired meanwhile')
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const { page } = await open(t, { who: grace.token })
  await until(() => focused(page), (text) => text === 'Expired meanwhile')
  await page.route(/ban$|posts.*comments$/, (route) => route.fulfill({ status: 401, json: { code: 'unauthenticated' } }))
  const expired = page.getByRole('dialog', { name: 'sign-in has expired' })
  let n = 0
  const renew = async () => {
    await expired.waitFor()
    await setAuth(page, token(grace.id, 'Grace', { roles: ['moderator'], jti: `${++n}` }))
    await expired.waitFor({ state: 'detached' })
  }
  await press(page, 'Enter')
  await page.getByRole('textbox', { name: 'Reply to Ada' }).fill('My reply')
  await press(page, 'Control+Enter')
  await renew()
  assert.equal(await page.getByRole('textbox', { name: 'Reply to Ada' }).inputValue(), 'My reply')
  await press(page, 'Escape', 'b')
  await page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click()
  await renew()
  await page.getByRole('dialog', { name: 'Ban Ada' }).waitFor()
})
