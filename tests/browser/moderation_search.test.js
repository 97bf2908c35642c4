import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { LOOKS, card, deliver, focused, isAccessible, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { hold, newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_ALLOW_GUESTS: 'true' })
const { emptyQueue, open, isApproved } = moderatorsPage(w)
beforeEach(emptyQueue)

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page */
const texts = (page) => page.locator('article .body').allTextContents()

/** Waits until the cards have exactly these texts. @param {Page} page @param {string[]} expected */
async function shows(page, expected) {
  const same = (/** @type {string[]} */ found) => JSON.stringify(found.map((text) => text.trim())) === JSON.stringify(expected)
  assert.deepEqual((await until(() => texts(page), same)).map((text) => text.trim()), expected)
}

/** @param {Page} page */
const field = (page) => page.getByRole('searchbox', { name: 'Search comments' })

test('a queue is searched by words, a writer, a thread and a day', async (t) => {
  const [ada, zoe] = [member('Ada Search'), member('Zoe Search')]
  const [first, second] = [newRecord(), newRecord()]
  await w.service.comment(first, 'Green tea', { who: ada.token })
  await w.service.comment(first, 'Coffee for Ada', { who: zoe.token })
  await w.service.comment(second, 'Black TEA', { who: zoe.token })
  const { page } = await open(t, { who: moderator('Grace').token })
  await shows(page, ['Black TEA', 'Coffee for Ada', 'Green tea'])
  const today = new Date().toISOString().slice(0, 10)
  const tomorrow = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10)
  for (const [query, expected] of /** @type {[string, string[]][]} */ ([
    ['tea', ['Black TEA', 'Green tea']],
    ['tea from:zoe', ['Black TEA']],
    [`from:id:${ada.id}`, ['Green tea']],
    ['from:"zoe search" coffee', ['Coffee for Ada']],
    [`in:posts/${second}`, ['Black TEA']],
    [`since:${tomorrow}`, []],
    ['', ['Black TEA', 'Coffee for Ada', 'Green tea']],
  ])) {
    await field(page).fill(query)
    await shows(page, expected)
  }
  await field(page).fill(`tea since:${today.slice(0, 4)}-01-01`)
  await shows(page, ['Black TEA', 'Green tea'])
  await tab(page, 'All')
  await page.getByText('All goes back 30 days.').waitFor()
  assert.equal(await field(page).inputValue(), `tea since:${today.slice(0, 4)}-01-01`, 'the search goes on in another queue')
  await field(page).fill('in:posts')
  await page.locator('input[aria-invalid=true]').waitFor()
  await field(page).fill('nowhere to be found')
  await page.getByRole('heading', { name: 'No comments found' }).waitFor()
  await field(page).fill('green')
  await shows(page, ['Green tea'])
  await field(page).press('Enter')
  await until(() => focused(page), (text) => text === 'Green tea')
  assert.equal(await focused(page), 'Green tea')
})

test('a search sends five requests, and then offers to continue', async (t) => {
  const { id } = await w.service.comment(newRecord(), 'A needle')
  const grace = moderator('Grace')
  const needle = await w.service.call('GET', `moderation/comments?id=${id}`, grace.token)
  let asked = 0
  const prepare = (/** @type {Page} */ page) =>
    page.route(/moderation\/comments\?.*q=needle/, (route) => {
      asked++
      const meta = { ...needle.meta, next_cursor: asked < 7 ? `${asked}` : null }
      return route.fulfill({ json: { ...needle, data: asked === 7 ? needle.data : [], meta } })
    })
  const { page } = await open(t, { who: grace.token, prepare })
  await shows(page, ['A needle'])
  await field(page).fill('needle')
  const button = page.getByRole('button', { name: 'Search further' })
  await button.waitFor()
  assert.equal(asked, 5)
  await button.click()
  await shows(page, ['A needle'])
  assert.equal(asked, 7)
  await until(() => focused(page), (text) => text === 'A needle')
  assert.equal(await focused(page), 'A needle')
})

test('a thread that was closed by mistake is opened before anyone notices', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'In a thread')
  const { page, sent } = await open(t, { who: moderator('Grace').token, clock: true })
  await until(() => focused(page), (text) => text === 'In a thread')
  const closed = card(page, 'In a thread').locator('.closed')
  await press(page, 'c')
  await closed.waitFor()
  await press(page, 'u')
  await closed.waitFor({ state: 'detached' })
  await page.clock.runFor(20_000)
  assert.equal(sent.length, 0)
  await press(page, 'c')
  await closed.waitFor()
  await deliver(page)
  assert.deepEqual(sent.map(({ path }) => path), [`posts/${record}/close`])
  assert.equal((await w.service.call('GET', `posts/${record}/comments?cursor=`, null)).meta.closed, true)
})

test('a moderator replies from a card at once where everyone sees the comment, and what is typed meanwhile is not taken', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const { id } = await w.service.comment(record, 'A question')
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const { page } = await open(t, { who: grace.token })
  await tab(page, 'All')
  await card(page, 'A question').first().click()
  await press(page, 'Enter')
  const box = page.getByRole('textbox', { name: 'Reply to Ada Lovelace' })
  await box.fill('An unfinished')
  await press(page, 'Escape')
  await box.waitFor({ state: 'detached' })
  assert.equal(await focused(page), 'A question')
  await press(page, 'Enter')
  assert.equal(await box.inputValue(), 'An unfinished')
  await page.route(/comments$/, (route) => route.abort())
  const release = await hold(page, /comments$/)
  await box.press('Control+Enter')
  await page.keyboard.type(' and typed too late')
  release()
  await page.getByText('No connection to the service.').first().waitFor()
  assert.equal(await box.inputValue(), 'An unfinished')
  assert.ok(await box.isEditable())
  await page.unroute(/comments$/)
  await box.fill('An answer, with ? and a')
  await box.press('Control+Enter')
  await page.getByText('Replied to Ada Lovelace').first().waitFor()
  await box.waitFor({ state: 'detached' })
  const { data } = await w.service.call('GET', `comments/${id}/replies`, grace.token)
  assert.deepEqual(data.map((/** @type {any} */ { body, is_moderator }) => [body, is_moderator]), [['An answer, with ? and a', true]])
})

test('the key that commits an input method’s text neither sends or closes a reply nor leaves the search', async (t) => {
  await w.service.comment(newRecord(), 'A question')
  await w.service.comment(newRecord(), 'No match')
  const { page, sent } = await open(t, { who: moderator('Grace').token })
  await page.locator('article.current').waitFor()
  // Safari sends the key after the end of the composition.
  const commit = (/** @type {import('playwright-core').Locator} */ element, /** @type {object} */ keys) => element.dispatchEvent('keydown', { keyCode: 229, ...keys })
  await field(page).fill('question')
  await commit(field(page), { key: 'Enter' })
  await shows(page, ['A question'])
  assert.ok(await field(page).evaluate((element) => element.matches(':focus')))
  await card(page, 'A question').click()
  await press(page, 'Enter')
  const box = page.getByRole('textbox', { name: 'Reply to Ada Lovelace' })
  await box.fill('回答')
  for (const keys of [{ key: 'Enter', ctrlKey: true }, { key: 'Enter', metaKey: true }, { key: 'Escape' }]) {
    await commit(box, keys)
    assert.ok(await box.isVisible(), JSON.stringify(keys))
  }
  assert.equal(await box.inputValue(), '回答')
  assert.deepEqual(sent, [])
})

test('a reply to a comment that waits approves it too, and both wait for an undo', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const { id } = await w.service.comment(record, 'May I ask?')
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'May I ask?')
  await press(page, 'Enter')
  const box = page.getByRole('textbox', { name: 'Reply to Ada Lovelace' })
  await box.fill('Please do')
  await page.getByRole('button', { name: 'Approve and reply' }).click()
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  await press(page, 'u')
  assert.equal(await box.inputValue(), 'Please do')
  await page.clock.runFor(20_000)
  assert.equal(sent.length, 0)
  let fails = true
  await page.route(`**/posts/${record}/comments`, (route) => (fails ? route.abort() : route.continue()))
  await box.press('Control+Enter')
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  await deliver(page)
  await card(page, 'May I ask?').locator('.note', { hasText: 'Couldn\'t send your reply' }).waitFor()
  assert.equal(await isApproved(id, grace), true)
  assert.equal(await box.inputValue(), 'Please do')
  fails = false
  await box.press('Control+Enter')
  await page.getByText('Replied to Ada Lovelace').first().waitFor()
  assert.deepEqual(sent.map(({ path, body }) => [path, body.action ?? body.body]), [
    ['moderation/comments', 'approve'], [`posts/${record}/comments`, 'Please do'], [`posts/${record}/comments`, 'Please do'],
  ])
  assert.equal((await w.service.call('GET', `comments/${id}/replies`, grace.token)).data[0].body, 'Please do')
})

test('the numbers of tabs fall with each decision, and rise with an undo', async (t) => {
  for (const text of ['One', 'Two']) await w.service.comment(newRecord(), text)
  const { page } = await open(t, { who: moderator('Grace').token, clock: true })
  await until(() => focused(page), (text) => text === 'Two')
  const tally = page.locator('#tab-pending .tally')
  await tally.filter({ hasText: /^2$/ }).waitFor()
  await press(page, 'a')
  await tally.filter({ hasText: /^1$/ }).waitFor()
  await press(page, 'u')
  await tally.filter({ hasText: /^2$/ }).waitFor()
})

test('a card names the page that its comment came from, and leads there', async (t) => {
  const record = newRecord()
  await w.service.call('POST', `posts/${record}/comments`, member('Ada').token, { body: 'From a page', page: { title: 'On tea', url: `${new URL(w.service.api).origin}/tea#x` } })
  const { page } = await open(t, { who: moderator('Grace').token })
  const link = card(page, 'From a page').getByRole('link', { name: 'On tea' })
  await link.waitFor()
  assert.match((await link.getAttribute('href')) ?? '', /\/tea#comment-\d+$/)
})

test('the users tab begins with members who wrote recently, and the log shows the first words of comments', async (t) => {
  const [grace, ada] = [moderator('Grace of words'), member('Ada of late')]
  const { id } = await w.service.comment(newRecord(), 'These are words', { who: ada.token })
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const { page } = await open(t, { who: grace.token })
  await page.getByRole('tab', { name: 'All', selected: true }).waitFor()
  await tab(page, 'Users')
  await page.getByRole('heading', { name: 'Recent writers' }).waitFor()
  await page.locator('.recent .user', { hasText: 'Ada of late' }).getByRole('button', { name: 'Comments' }).click()
  await page.getByRole('dialog', { name: 'All by Ada of late' }).locator('article', { hasText: 'These are words' }).waitFor()
  await press(page, 'Escape')
  await page.getByRole('searchbox', { name: 'Search by name' }).fill('nobody at all')
  await page.getByText('No users found').waitFor()
  assert.equal(await page.getByRole('heading', { name: 'Recent writers' }).count(), 0)
  await tab(page, 'Log')
  await page.locator('.log li', { hasText: 'Grace of words' }).locator('.excerpt', { hasText: 'Ada of late These are words' }).waitFor()
  for (const width of [1000, 320]) {
    await page.setViewportSize({ width, height: 800 })
    const boxes = await page.locator('.log li').first().evaluate((row) => ['.did', '.actions', '.excerpt'].map((part) => row.querySelector(part)?.getBoundingClientRect().toJSON()))
    const [did, actions, excerpt] = boxes
    assert.ok(did.height < 60 && (actions.bottom <= excerpt.top + 8 || actions.top >= excerpt.bottom - 1) && excerpt.width > width / 2, JSON.stringify(boxes))
  }
})

test('a reply that waits for an approval is still in its box after the page was closed', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  await w.service.comment(record, 'Will this be lost?')
  const { page } = await open(t, { who: grace.token })
  await page.route(`**/posts/${record}/comments`, (route) => route.abort())
  await until(() => focused(page), (text) => text === 'Will this be lost?')
  await press(page, 'Enter')
  const box = page.getByRole('textbox', { name: 'Reply to Ada Lovelace' })
  await box.fill('No')
  await box.press('Control+Enter')
  await box.waitFor({ state: 'detached' })
  await page.goto('about:blank')
  await page.goto(`${w.service.api}/moderate#token=${grace.token}`)
  await tab(page, 'All')
  await card(page, 'Will this be lost?').first().click()
  await press(page, 'Enter')
  assert.equal(await box.inputValue(), 'No')
  await page.unroute(`**/posts/${record}/comments`)
})

test('axe finds nothing in a search and in a reply, and nothing sticks out', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'A question')
  for (const look of LOOKS) {
    const { page } = await open(t, { who: grace.token, context: look })
    await page.locator('article.current').waitFor()
    const name = `${look.colorScheme} at ${look.viewport.width}`
    await press(page, 'Enter')
    await page.getByRole('textbox', { name: 'Reply to Ada Lovelace' }).fill('An answer')
    await isAccessible(page, `a reply, ${name}`)
    await tab(page, 'All')
    await field(page).fill('question')
    await page.getByText('All goes back 30 days.').waitFor()
    await isAccessible(page, `a search, ${name}`)
    await field(page).fill('nothing like it')
    await page.getByRole('heading', { name: 'No comments found' }).waitFor()
    await isAccessible(page, `nothing found, ${name}`)
    await field(page).fill('since:soon')
    await page.locator('input[aria-invalid=true]').waitFor()
    await isAccessible(page, `no filter, ${name}`)
  }
})
