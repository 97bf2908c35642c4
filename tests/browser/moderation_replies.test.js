import assert from 'node:assert/strict'
import { test } from 'node:test'
import { card, member, moderator, moderatorsPage, press, tab } from './moderators_page.js'
import { newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true' })
const { emptyQueue, open } = moderatorsPage(w)

/** @typedef {import('playwright-core').Page} Page */

/** The box for a reply to Ada. @param {Page} page */
const boxIn = (page) => page.getByRole('textbox', { name: 'Reply to Ada' })

/** Sends a text, and waits until the box is closed. @param {import('playwright-core').Locator} box @param {string} text */
async function send(box, text) {
  await box.fill(text)
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
}

/** The bodies of the replies to a comment. @param {number} id @param {{ token: string }} who @returns {Promise<string[]>} */
const repliesTo = async (id, who) => (await w.service.call('GET', `comments/${id}/replies`, who.token)).data.map((/** @type {any} */ { body }) => body)

/** The address to which replies are posted. @param {string} record */
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

/** A comment by a new member called Ada, approved or waiting. @param {string} text @param {{ token: string }} [approver] */
async function comment(text, approver) {
  const [record, writer] = [newRecord(), member('Ada')]
  const { id } = await w.service.comment(record, text, { who: writer.token })
  if (approver) await w.service.call('POST', `comments/${id}/approve`, approver.token)
  return { id, record }
}

/** Shows all comments, and opens the box of one. @param {Page} page @param {string} text */
async function openBox(page, text) {
  await tab(page, 'All')
  await card(page, text).first().click()
  await press(page, 'Enter')
}

test('a reply whose response was lost is repeated with its key, and another text has another key', async (t) => {
  await emptyQueue()
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
