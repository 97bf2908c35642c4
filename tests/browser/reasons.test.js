import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { LOOKS, card, decideNothing, deliver, focused, isAccessible, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { dialogCloses, newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_ALLOW_GUESTS: 'true' })
const { emptyQueue, open, isApproved } = moderatorsPage(w)
beforeEach(emptyQueue)

/** @typedef {import('playwright-core').Page} Page */

/** Returns the reason that is chosen in the notice. @param {Page} page */
const chosen = (page) => page.locator('.bar').getByRole('button', { pressed: true }).allTextContents()

/** @param {number} id @param {{ token: string }} who */
async function rejectionOf(id, who) {
  const { data: [{ rejection }] } = await w.service.call('GET', `moderation/comments?id=${id}`, who.token)
  return rejection && [rejection.reason, rejection.note, rejection.moderator.name]
}

test('a rejection takes one press, and its reason another while the decision is pending', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const [plain, off] = [await w.service.comment(record, 'Without a reason'), await w.service.comment(record, 'Off topic here')]
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Off topic here')
  await press(page, 'r', '1')
  assert.deepEqual(await chosen(page), ['1Spam'])
  await press(page, '2')
  assert.deepEqual(await chosen(page), ['2Off topic'])
  assert.equal(await focused(page), 'Without a reason')
  await press(page, 'r')
  assert.deepEqual(await chosen(page), [])
  await deliver(page)
  await until(async () => sent.length, (n) => n === 2)
  await until(() => isApproved(plain.id, grace), (approved) => !approved)
  assert.deepEqual(sent.map(({ body }) => [body.ids, body.reason, body.note]), [[[off.id], 'off_topic', null], [[plain.id], null, null]])
  assert.deepEqual(await until(() => rejectionOf(plain.id, grace), (rejection) => rejection), [null, null, 'Grace'])
  assert.deepEqual(await rejectionOf(off.id, grace), ['off_topic', null, 'Grace'])
})

test('pressing the same reason again removes it, and an approval offers no reasons', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  for (const text of ['One', 'Two']) await w.service.comment(record, text)
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Two')
  await press(page, 'r')
  const spam = page.getByRole('group', { name: 'Why?' }).getByRole('button', { name: 'Spam' })
  await spam.click()
  assert.equal(await spam.getAttribute('aria-pressed'), 'true')
  await spam.click()
  assert.equal(await spam.getAttribute('aria-pressed'), 'false')
  await press(page, 'a', '1')
  assert.equal(await page.getByRole('group', { name: 'Why?' }).count(), 0)
  await deliver(page)
  await until(async () => sent.length, (n) => n === 2)
  assert.deepEqual(sent.map(({ body }) => [body.action, body.reason]), [['reject', null], ['approve', undefined]])
})

test('a decision waits while its moderator writes a note, and can be undone after that', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Too rude')
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Too rude')
  await press(page, 'r', '3', '6')
  const dialog = page.getByRole('dialog', { name: 'Note to the writer' })
  await dialog.getByRole('textbox').fill('Please say it ')
  await page.clock.runFor(20_000)
  await page.keyboard.type('again, kindly.')
  assert.equal(sent.length, 0)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialogCloses(page)
  assert.deepEqual(await chosen(page), ['3Offensive', '6Note…'])
  await press(page, 'u')
  await card(page, 'Too rude').waitFor()
  await page.clock.runFor(20_000)
  assert.equal(sent.length, 0)
  await press(page, 'r', '3', '6')
  await dialog.getByRole('textbox').fill('Please say it again, kindly.')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialogCloses(page)
  await deliver(page)
  assert.deepEqual(await until(() => rejectionOf(id, grace), (rejection) => rejection), ['offensive', 'Please say it again, kindly.', 'Grace'])
})

test('a note that isn’t saved changes nothing, and the decision is sent', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Without a note')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Without a note')
  await press(page, 'r', '6')
  await page.getByRole('dialog').getByRole('textbox').fill('Never mind')
  await press(page, 'Escape')
  await dialogCloses(page)
  assert.deepEqual(await chosen(page), [])
  await deliver(page)
  assert.deepEqual(await until(() => rejectionOf(id, grace), (rejection) => rejection), [null, null, 'Grace'])
})

test('a decision whose note is being written is sent when the page is closed', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Left in the middle')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Left in the middle')
  await press(page, 'r', '1', '6')
  await page.getByRole('dialog').waitFor()
  await page.goto('about:blank')
  assert.deepEqual(await until(() => rejectionOf(id, grace), (rejection) => rejection), ['spam', null, 'Grace'])
})

test('a rejected comment shows who rejected it, when and why, immediately and later', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const record = newRecord()
  const before = await w.service.comment(record, 'Rejected before')
  await w.service.comment(record, 'Rejected now')
  await w.service.call('POST', `comments/${before.id}/reject`, linus.token, { reason: 'illegal', note: 'See the *rules*.' })
  const { page } = await open(t, { who: grace.token, clock: true })
  await tab(page, 'All')
  const rejection = (/** @type {string} */ text) => card(page, text).locator('.rejection')
  assert.match((await rejection('Rejected before').textContent()) ?? '', /^IllegalSee the \*rules\*\.Rejected by Linus · /)
  assert.equal(await rejection('Rejected now').count(), 0)
  await card(page, 'Rejected now').click()
  await press(page, 'r')
  assert.match((await rejection('Rejected now').textContent()) ?? '', /^Rejected by Grace · /)
  await press(page, '4')
  assert.match((await rejection('Rejected now').textContent()) ?? '', /^IllegalRejected by Grace · /)
  await press(page, 'u')
  assert.equal(await rejection('Rejected now').count(), 0)
  await card(page, 'Rejected before').click()
  await press(page, 'a')
  assert.equal(await rejection('Rejected before').count(), 0)
})

test('a card shows the earlier decisions on its writer’s comments', async (t) => {
  const [grace, ada, bob] = [moderator('Grace'), member('Ada'), member('Bob')]
  const record = newRecord()
  for (const verdict of ['approve', 'approve', 'reject']) {
    const { id } = await w.service.comment(record, verdict, { who: ada.token })
    await w.service.call('POST', `comments/${id}/${verdict}`, grace.token)
  }
  await w.service.comment(record, 'By Ada', { who: ada.token })
  await w.service.comment(record, 'By Bob', { who: bob.token })
  await w.service.comment(record, 'By a guest', { who: null })
  const { page } = await open(t, { who: grace.token })
  await card(page, 'By Ada').getByText('2 comments approved, 1 rejected in 30 days').waitFor()
  for (const text of ['By Bob', 'By a guest']) assert.equal(await card(page, text).locator('.record').count(), 0)
})

for (const context of LOOKS) {
  test(`axe finds nothing in reasons, notes and rejections, ${context.colorScheme}, ${context.viewport.width} pixels`, async (t) => {
    const grace = moderator('Grace')
    const record = newRecord()
    const { id } = await w.service.comment(record, 'Rejected')
    await w.service.call('POST', `comments/${id}/reject`, grace.token, { reason: 'off_topic', note: `A ${'long '.repeat(60)}note` })
    for (const text of ['One', 'Two']) await w.service.comment(record, text)
    const { page } = await open(t, { who: grace.token, context, prepare: decideNothing })
    await page.locator('article.current').waitFor()
    await press(page, 'r', '1', '6')
    await page.getByRole('dialog').waitFor()
    await isAccessible(page, 'a note')
    await press(page, 'Escape')
    await dialogCloses(page)
    await isAccessible(page, 'reasons')
    await tab(page, 'Rejected')
    await page.locator('.rejection').first().waitFor()
    await isAccessible(page, 'a rejection')
  })
}

test('a card shows which member’s name a guest’s name resembles', async (t) => {
  const record = newRecord()
  const grace = moderator('Grace Hopper')
  const { id } = await w.service.comment(record, 'I moderate here', { who: grace.token })
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const comment = { body: 'I am the moderator', guest_name: 'Grace Hopper ✓', guest_email: 'eve@example.org' }
  await w.service.call('POST', `posts/${record}/comments`, null, comment)
  const { page } = await open(t, { who: grace.token })
  await page.locator('article.current').getByText('Name looks like Grace Hopper').waitFor()
})
