import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { beforeEach, test } from 'node:test'
import { card, decideNothing, deliver, focused, member, moderator, moderatorsPage, press, tab, until } from './moderators_page.js'
import { answering, axe, dialogCloses, hold, newRecord, stickingOut, token, violations, world } from './world.js'

/** The write limit is the default, because moderators who work quickly must stay below it. */
const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_SPAM_REVIEW: 'casino', SVC_WRITE_LIMIT: '60', SVC_ALLOW_GUESTS: 'true', SVC_WEBHOOKS: 'true', SVC_WEBHOOK_PRIVATE: 'true', SVC_MODERATORS: '99' })
const { emptyQueue, open, logOf, isApproved } = moderatorsPage(w)
beforeEach(emptyQueue)

/** @typedef {import('playwright-core').Page} Page */

test('a queue of 200 is emptied by keyboard alone, and every decision is in the log', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const writers = Array.from({ length: 5 }, (_, i) => member(`Writer ${i}`))
  await Promise.all(writers.map(async (writer) => {
    for (let i = 0; i < 40; i++) await w.service.comment(record, `Number ${i} of ${writer.name}`, { who: writer.token })
  }))
  const { page } = await open(t, { who: grace.token })
  await page.locator('article.current').waitFor()
  const decided = []
  for (let i = 0; i < 200; i++) {
    const text = await until(() => focused(page), (text) => text != null && !decided.some((other) => other.text === text))
    assert.ok(text, `after ${i} decisions a card has the focus`)
    const key = i % 3 ? 'a' : 'r'
    decided.push({ text, action: key === 'a' ? 'approve' : 'reject' })
    await press(page, key)
  }
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  const entries = await until(() => logOf(grace), (entries) => entries.length === 200, 90_000)
  assert.equal(entries.length, 200)
  assert.equal(new Set(entries.map(({ comment_id }) => comment_id)).size, 200)
  const count = (/** @type {any[]} */ list, /** @type {string} */ action) => list.filter((entry) => entry.action === action).length
  for (const action of ['approve', 'reject']) assert.equal(count(entries, action), count(decided, action))
  assert.equal((await w.service.call('GET', `posts/${record}/comments?cursor=`, null)).meta.total, count(decided, 'approve'))
})

test('a decision can be undone for five seconds, and is then sent', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Think twice')
  await w.service.comment(newRecord(), 'The next one')
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'The next one')
  await press(page, 'j', 'r')
  assert.equal(await focused(page), 'The next one')
  await page.clock.runFor(4_900)
  await press(page, 'u')
  assert.equal(await focused(page), 'Think twice')
  await page.clock.runFor(20_000)
  await press(page, 'a')
  await page.getByText('Approved the comment by Ada Lovelace').first().waitFor()
  await deliver(page)
  assert.equal(await isApproved(id, grace), true)
  assert.deepEqual(sent.map(({ body }) => [body.action, body.ids, Object.keys(body.seen)]), [['approve', [id], [`${id}`]]])
  await press(page, 'u')
  await page.getByText('Nothing to undo').first().waitFor()
})

test('keys do nothing in a field, with Ctrl, Alt or Meta, or when letters are switched off', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'Stay')
  await w.service.comment(newRecord(), 'Stay, too')
  const { page } = await open(t, { who: grace.token })
  await page.locator('article.current').waitFor()
  await press(page, 'Control+j', 'Alt+a', 'Meta+r')
  assert.equal(await page.locator('article').count(), 2)
  await tab(page, 'Users')
  await page.getByRole('searchbox').fill('')
  await page.keyboard.type('?arb')
  assert.equal(await page.getByRole('searchbox').inputValue(), '?arb')
  assert.equal(await page.getByRole('dialog').count(), 0)
  await tab(page, 'Pending')
  await page.locator('article.current').waitFor()
  await press(page, '?')
  await page.getByRole('checkbox', { name: 'Use single-letter shortcuts' }).uncheck()
  await press(page, 'Escape')
  const first = await focused(page)
  await press(page, 'a', 'j', '?')
  assert.equal(await page.locator('article').count(), 2)
  assert.equal(await focused(page), first)
  await page.goto('about:blank')
  await page.goto(`${w.service.api}/moderate#token=${grace.token}`)
  await page.locator('article.current').waitFor()
  await press(page, 'a')
  assert.equal(await page.locator('article').count(), 2)
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByRole('checkbox', { name: 'Use single-letter shortcuts' }).check()
  await press(page, 'Escape')
  await card(page, 'Stay, too').click()
  await press(page, 'j')
  assert.equal(await focused(page), 'Stay')
})

test('a key right after the end of a dialog is for the element below it', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Below')
  await w.service.comment(record, 'In the drawer')
  const { page } = await open(t, { who: moderator('Grace').token, clock: true })
  await until(() => focused(page), (text) => text === 'In the drawer')
  const followed = (/** @type {string} */ key) =>
    page.evaluate((key) => {
      const root = document.querySelector('comment-moderation')?.shadowRoot
      root?.querySelector('dialog')?.close()
      root?.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, composed: true }))
    }, key)
  await press(page, '?')
  await followed('x')
  await page.getByText('1 selected').waitFor()
  await card(page, 'In the drawer').getByRole('button', { name: 'All by' }).click()
  const drawer = page.getByRole('dialog')
  await drawer.locator('article').nth(1).click()
  await followed('j')
  await dialogCloses(page)
  assert.equal(await focused(page), 'Below')
})

test('a selection is decided in one request and undone in one', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const ids = []
  for (let i = 0; i < 5; i++) ids.unshift((await w.service.comment(record, `Choice ${i}`)).id)
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Choice 4')
  await press(page, 'j', 'x', 'j', 'j', 'Shift+X')
  await page.getByText('3 selected').waitFor()
  await press(page, 'r')
  assert.equal(await focused(page), 'Choice 0')
  await press(page, 'u')
  assert.equal(await page.locator('article').count(), 5)
  await card(page, 'Choice 2').getByRole('checkbox').check()
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('article.selected').count(), 0)
  await page.getByRole('checkbox', { name: 'Select all' }).check()
  await page.locator('.toolbar').getByRole('button', { name: 'Reject' }).click()
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  await deliver(page)
  assert.equal((await logOf(grace)).length, 5)
  assert.deepEqual(sent.map(({ path, body }) => [path, body.action, body.ids]), [['moderation/comments', 'reject', ids]])
  await tab(page, 'Rejected')
  await card(page, 'Choice 3').getByRole('button', { name: 'Approve' }).click()
  await deliver(page)
  assert.equal(await isApproved(ids[1], grace), true)
})

test('a card shows why a comment is held, who wrote it and where, and the parent comment', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const record = newRecord()
  await w.service.call('PUT', `posts/${record}`, grace.token, { title: 'A long story', url: 'https://blog.example/story', author_id: ada.id })
  const parent = await w.service.comment(record, 'How does it end?', { who: grace.token })
  await w.service.call('POST', `comments/${parent.id}/approve`, grace.token)
  const reply = await w.service.comment(record, 'At the **casino**.', { who: ada.token, parent: parent.id })
  const edited = await w.service.comment(record, 'Well.', { who: ada.token })
  await w.service.call('POST', `comments/${edited.id}/approve`, grace.token)
  await w.service.call('PATCH', `comments/${edited.id}`, ada.token, { body: 'Well, casino.' })
  await w.service.comment(record, 'Hello from nobody', { who: null })
  const { page } = await open(t, { who: grace.token })
  const spam = card(page, 'At the casino.')
  await spam.getByText('Looks like spam').waitFor()
  assert.match((await spam.locator('.parent').textContent()) ?? '', /In reply to Grace.*How does it end\?/)
  assert.equal(await spam.locator('.body strong').textContent(), 'casino')
  const link = spam.getByRole('link', { name: 'A long story' })
  assert.equal(await link.getAttribute('href'), `https://blog.example/story#comment-${reply.id}`)
  assert.equal(await link.getAttribute('rel'), 'noopener')
  assert.deepEqual(await spam.locator('.badge').allTextContents(), ['Author'])
  await card(page, 'Well, casino.').getByText('Edited after approval').waitFor()
  const guest = card(page, 'Hello from nobody')
  await guest.getByText('Awaiting approval').waitFor()
  assert.deepEqual(await guest.locator('.badge').allTextContents(), ['Guest'])
})

test('the findings of checks are marked across the borders of elements, and every check is named', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const record = newRecord()
  await w.service.comment(record, 'A **cas**ino, and one more c~~as~~ino.', { who: ada.token })
  await w.service.comment(record, 'Look [here](http://casino.example).', { who: ada.token })
  await w.service.comment(record, 'Nothing to find', { who: ada.token })
  const { page } = await open(t, { who: grace.token })
  const found = card(page, 'and one more')
  await found.getByText('Phrase: casino').waitFor()
  assert.deepEqual(await found.locator('.body mark').allTextContents(), ['cas', 'ino', 'c', 'as', 'ino'])
  assert.equal(await found.locator('.body').textContent().then((text) => text?.trim()), 'A casino, and one more casino.')
  const address = card(page, 'Look here')
  assert.deepEqual(await address.locator('.checks li').allTextContents(), ['Phrase: casino'])
  assert.equal(await address.locator('mark').count(), 0, 'nothing of the text was found')
  assert.equal(await card(page, 'Nothing to find').locator('.checks').count(), 0)
})

test('reports are shown with their reasons, and a reported comment can be kept', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Perfectly harmless', { who: grace.token })
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const details = ['', 'a shop', 'the third time', 'again']
  for (const [i, text] of details.entries()) {
    await w.service.call('POST', `comments/${id}/report`, member(`Reader ${i}`).token, { reason: i ? 'spam' : 'offensive', additional_details: text || null })
  }
  const { page, sent } = await open(t, { who: grace.token, clock: true })
  await tab(page, 'Reported')
  const shown = card(page, 'Perfectly harmless')
  await shown.getByText('4 reports', { exact: true }).waitFor()
  const reasons = () => shown.locator('.reports li').evaluateAll((rows) => rows.map((row) => [...row.children].slice(0, -1).map((part) => part.textContent).join(': ')))
  assert.deepEqual(await reasons(), ['Spam: again', 'Spam: the third time', 'Spam: a shop'])
  await shown.getByRole('button', { name: 'Show all 4 reports' }).click()
  await shown.getByText('Reader 0').waitFor()
  assert.deepEqual((await reasons()).at(-1), 'Offensive')
  await press(page, 'a')
  await page.getByText('Kept the comment by Grace').first().waitFor()
  await deliver(page)
  assert.deepEqual((await logOf(grace)).map(({ action }) => action), ['dismiss', 'approve'])
  assert.equal(sent.at(-1).body.action, 'dismiss')
  assert.equal(await isApproved(id, grace), true)
})

test('a ban has a length and a reason, is sent at once, and can be lifted', async (t) => {
  const [grace, mallory] = [moderator('Grace'), member('Mallory Unique')]
  const { id } = await w.service.comment(newRecord(), 'You are all wrong', { who: mallory.token })
  const { page, sent } = await open(t, { who: grace.token })
  await card(page, 'You are all wrong').waitFor()
  await until(() => focused(page), (text) => text === 'You are all wrong')
  await press(page, 'b')
  const dialog = page.getByRole('dialog', { name: 'Ban Mallory Unique' })
  await dialog.getByRole('radio', { name: '1 day' }).check()
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Insults')
  await press(page, 'Enter')
  await dialogCloses(page)
  const [{ method, path, body }] = sent
  assert.deepEqual([method, path, body.reason], ['PUT', `users/${mallory.id}/ban`, 'Insults'])
  assert.ok(Math.abs(Date.parse(body.until) - Date.now() - 86_400_000) < 60_000)
  await tab(page, 'Users')
  const row = page.locator('.user', { hasText: 'Mallory Unique' })
  await row.getByText('Insults').waitFor()
  await row.getByRole('button', { name: 'Lift ban' }).click()
  await row.getByRole('button', { name: 'Ban…' }).click()
  const again = page.getByRole('dialog')
  await again.getByRole('radio', { name: 'Until' }).check()
  await again.getByRole('button', { name: 'Ban', exact: true }).click()
  await again.getByRole('alert').getByText('Choose a date in the future.').waitFor()
  await again.getByRole('radio', { name: 'Permanently' }).check()
  await again.getByRole('button', { name: 'Ban', exact: true }).click()
  await row.getByText('Banned permanently').waitFor()
  const entries = await until(() => logOf(grace), (entries) => entries.length === 4)
  assert.deepEqual(entries.map(({ action }) => action).sort(), ['ban', 'ban', 'reject', 'unban'])
  assert.equal(await isApproved(id, grace), false)
})

test('users are found by name, and a user’s comments are shown in the drawer', async (t) => {
  const [grace, ursula] = [moderator('Grace'), member('Ursula Franklin')]
  const record = newRecord()
  const [kept, refused] = [await w.service.comment(record, 'Kept', { who: ursula.token }), await w.service.comment(record, 'Refused', { who: ursula.token })]
  await w.service.call('POST', `comments/${kept.id}/approve`, grace.token)
  await w.service.call('POST', `comments/${refused.id}/reject`, grace.token)
  await w.service.comment(record, 'Waiting', { who: ursula.token })
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Waiting').waitFor()
  await tab(page, 'Users')
  await page.getByRole('searchbox', { name: 'Search by name' }).fill('frank')
  await page.clock.runFor(300)
  const button = page.locator('.user', { hasText: 'Ursula Franklin' }).getByRole('button', { name: 'Comments' })
  await button.click()
  const drawer = page.getByRole('dialog', { name: 'All by Ursula Franklin' })
  await drawer.locator('article').nth(2).waitFor()
  const states = await drawer.locator('article').evaluateAll((cards) => cards.map((card) => [card.querySelector('.body'), card.querySelector('.why')].map((part) => part?.textContent?.trim()).join(': ')))
  assert.deepEqual(states, ['Waiting: Awaiting approval', 'Refused: Rejected', 'Kept: Visible'])
  await drawer.locator('article', { hasText: 'Refused' }).getByRole('button', { name: 'Approve' }).click()
  await drawer.locator('article', { hasText: 'Refused' }).locator('.why', { hasText: 'Visible' }).waitFor()
  await press(page, 'u')
  await drawer.locator('article', { hasText: 'Refused' }).locator('.why', { hasText: 'Rejected' }).waitFor()
  await drawer.locator('article', { hasText: 'Refused' }).getByRole('button', { name: 'Approve' }).click()
  await deliver(page)
  assert.equal(await isApproved(refused.id, grace), true)
  await press(page, 'Escape')
  await dialogCloses(page)
  assert.equal(await button.evaluate((element) => /** @type {ShadowRoot} */ (element.getRootNode()).activeElement === element), true)
})

test('the log shows who did what, and links to the comment', async (t) => {
  const [grace, ada] = [moderator('Grace of the log'), member('Ada')]
  const record = newRecord()
  const { id } = await w.service.comment(record, 'For the record', { who: ada.token })
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  await w.service.call('POST', `comments/${id}/pin`, grace.token)
  await w.service.call('GET', 'ui', token(ada.id, 'Ada Lovelace', { iat: Math.floor(Date.now() / 1000) + 5 }))
  const { page } = await open(t, { who: grace.token })
  await page.getByRole('tab', { name: 'All', selected: true }).waitFor()
  await tab(page, 'Log')
  const rows = page.locator('.log li', { hasText: 'Grace of the log' })
  await rows.nth(1).waitFor()
  assert.deepEqual((await rows.locator('.did').allTextContents()).slice(0, 2), ['Grace of the log pinned', 'Grace of the log approved'])
  assert.equal(await rows.first().locator('.thread').textContent(), `posts/${record}`)
  await rows.first().getByRole('button', { name: 'Show' }).click()
  await page.getByRole('dialog').locator('article', { hasText: 'For the record' }).waitFor()
  await press(page, 'Escape')
  await rows.first().getByRole('button', { name: 'All by Ada Lovelace' }).click()
  await page.getByRole('dialog', { name: 'All by Ada Lovelace' }).waitFor()
})

test('the page opens on pending comments, or else on all comments, and tabs show how many are pending', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Approved, then reported')
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  const first = await open(t, { who: grace.token })
  await first.page.getByRole('tab', { name: 'All', exact: true, selected: true }).waitFor()
  await until(() => focused(first.page), (text) => text === 'Approved, then reported')
  await w.service.call('POST', `comments/${id}/report`, member('Bob').token, { reason: 'spam' })
  for (const text of ['One', 'Two']) await w.service.comment(record, text)
  const { page } = await open(t, { who: grace.token, clock: true })
  await page.getByRole('tab', { name: 'Pending', exact: true, selected: true }).waitFor()
  const tallies = () => page.getByRole('tab').filter({ has: page.locator('.tally:not(:empty)') }).allTextContents()
  await card(page, 'Two').waitFor()
  assert.deepEqual(await tallies(), ['Pending2', 'Reported1'])
  await press(page, 'a')
  await deliver(page)
  await until(tallies, ([pending]) => pending === 'Pending1')
  await press(page, 'a')
  await deliver(page)
  await until(tallies, ([reported]) => reported === 'Reported1')
  assert.deepEqual(await tallies(), ['Reported1'])
})

test('a tab that is chosen before the counts are loaded stays as it is', async (t) => {
  await w.service.comment(newRecord(), 'Counted')
  let release = () => {}
  const prepare = async (/** @type {import('playwright-core').Page} */ page) => (release = await hold(page, /per_page=1$/))
  const { page } = await open(t, { who: moderator('Hasty').token, prepare })
  await tab(page, 'Users')
  const field = page.getByRole('searchbox', { name: 'Search by name' })
  await field.fill('half a na')
  const counted = page.waitForResponse(/per_page=1$/)
  release()
  await (await counted).finished()
  await page.locator('.tally').first().getByText(/\d/).waitFor()
  assert.equal(await field.inputValue(), 'half a na')
})

test('the tab under the pointer stays there while the counts arrive', async (t) => {
  await w.service.comment(newRecord(), 'Counted')
  let release = () => {}
  const { page } = await open(t, { who: moderator('Grace').token, prepare: async (page) => (release = await hold(page, /per_page=1$/)) })
  const all = page.getByRole('tab', { name: 'All', exact: true })
  await all.hover({ position: { x: 3, y: 10 } })
  await page.mouse.down()
  release()
  await page.locator('.tally', { hasText: '1' }).waitFor()
  await page.mouse.up()
  assert.equal(await all.getAttribute('aria-selected'), 'true')
})

test('comments stay in the list of all comments after any decision, and show their state', async (t) => {
  const grace = moderator('Grace')
  const record = newRecord()
  for (const text of ['Older', 'Newer']) await w.service.comment(record, text)
  const { page } = await open(t, { who: grace.token, clock: true })
  await tab(page, 'All')
  await until(() => focused(page), (text) => text === 'Newer')
  await press(page, 'r')
  await card(page, 'Newer').locator('.why', { hasText: 'Rejected' }).waitFor()
  await until(() => focused(page), (text) => text === 'Older')
  await press(page, 'u')
  await card(page, 'Newer').locator('.why', { hasText: 'Awaiting approval' }).waitFor()
  await press(page, 'x', 'j', 'x', 'a')
  await deliver(page)
  for (const text of ['Older', 'Newer']) await card(page, text).locator('.why', { hasText: 'Visible' }).waitFor()
  assert.equal(await page.getByRole('checkbox', { checked: true }).count(), 0)
})

test('an address that names a comment shows its card, after the sign-in where there is none', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Named by the address')
  await w.service.call('POST', `comments/${id}/reject`, grace.token)
  const named = (/** @type {Page} */ page) => page.getByRole('dialog').locator('article', { hasText: 'Named by the address' }).waitFor()
  const { page } = await open(t, { who: `${grace.token}&comment=${id}` })
  await named(page)
  assert.equal(new URL(page.url()).hash, '')
  await press(page, 'Escape')
  await page.evaluate((id) => (location.hash = `#comment-${id}`), id)
  await named(page)
  const later = await open(t, { prepare: (page) => page.addInitScript((id) => (location.hash = `#comment-${id}`), id) })
  await later.page.getByRole('textbox').fill(grace.token)
  await press(later.page, 'Enter')
  await named(later.page)
  const gone = await open(t, { who: `${grace.token}&comment=1` })
  await gone.page.getByRole('dialog').getByText('This comment no longer exists.').waitFor()
})

test('a card shows another moderator’s decision', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const record = newRecord()
  const first = await w.service.comment(record, 'Seen by two')
  const second = await w.service.comment(record, 'Decided by two')
  /** @type {Promise<import('playwright-core').Response> | undefined} */
  let log
  const { page, sent } = await open(t, { who: grace.token, clock: true, prepare: async (page) => void (log = page.waitForResponse(/moderation.log/)) })
  await (await log)?.finished()
  await card(page, 'Seen by two').waitFor()
  await w.service.call('POST', `comments/${first.id}/approve`, linus.token)
  await page.clock.runFor(15_100)
  await card(page, 'Seen by two').getByText('Linus approved this.').waitFor()
  assert.equal(await card(page, 'Seen by two').getByRole('button', { name: 'Approve' }).count(), 0)
  await card(page, 'Decided by two').click()
  await press(page, 'a')
  await w.service.call('POST', `comments/${second.id}/reject`, linus.token)
  await page.clock.runFor(5_100)
  await card(page, 'Decided by two').getByText('Linus rejected this.').waitFor()
  assert.equal(sent.length, 0)
  assert.equal(await isApproved(second.id, grace), false)
  await card(page, 'Seen by two').getByRole('button', { name: 'Hide' }).click()
  await card(page, 'Decided by two').getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'Nothing to review' }).waitFor()
  await deliver(page)
  assert.equal(await isApproved(second.id, grace), true)
})

test('new comments are offered, and do not move the list automatically', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'An old one')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'An old one')
  await w.service.comment(newRecord(), 'A new one')
  await page.clock.runFor(15_100)
  const button = page.getByRole('button', { name: 'New comments' })
  await button.waitFor()
  assert.equal(await page.locator('article').count(), 1)
  await button.click()
  await until(() => focused(page), (text) => text === 'A new one')
  assert.equal(await page.locator('article').count(), 2)
  assert.equal(await page.getByRole('button', { name: 'Refresh' }).count(), 1)
})

test('a comment that was edited meanwhile comes back with its new text, undecided', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const record = newRecord()
  const { id, created_at } = await w.service.comment(record, 'Harmless', { who: ada.token })
  await w.service.comment(record, 'Another', { who: ada.token })
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Harmless').waitFor()
  // Times are in whole seconds, so the edit must be in a later second.
  await until(async () => Math.floor(Date.now() / 1000), (second) => second > Date.parse(created_at) / 1000)
  await w.service.call('PATCH', `comments/${id}`, ada.token, { body: 'Not so harmless' })
  await card(page, 'Harmless').click()
  await press(page, 'a')
  assert.equal(await focused(page), 'Another')
  await page.clock.runFor(5_100)
  await card(page, 'Not so harmless').getByText('Edited since your decision').waitFor()
  assert.equal(await focused(page), 'Another')
  assert.equal(await isApproved(id, grace), false)
  await card(page, 'Not so harmless').getByRole('button', { name: 'Approve' }).click()
  await deliver(page)
  assert.equal(await isApproved(id, grace), true)
})

test('decisions that wait are sent when the page is closed', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'The last one today')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'The last one today')
  await press(page, 'a')
  await page.goto('about:blank')
  assert.equal(await until(() => isApproved(id, grace), (approved) => approved), true)
})

test('decisions that could not be sent stay and are sent again', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'On a train')
  const { page, context } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'On a train')
  await context.setOffline(true)
  await press(page, 'a')
  await page.clock.runFor(5_100)
  await page.getByText('Not sent yet').first().waitFor()
  await context.setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await deliver(page, 100)
  assert.equal(await isApproved(id, grace), true)
})

test('a queue that cannot be loaded shows the reason and can be retried', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'Finally')
  const pattern = /moderation\/comments/
  const { page } = await open(t, { who: grace.token, prepare: (page) => page.route(pattern, (route) => route.abort()) })
  await page.getByRole('alert').getByText('No connection to the service.').waitFor()
  await page.unroute(pattern)
  await page.getByRole('button', { name: 'Try again' }).click()
  await until(() => focused(page), (text) => text === 'Finally')
  assert.equal(await focused(page), 'Finally')
})

test('labels from an older version, which lack the page’s texts, are a failure that can be retried', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'Finally')
  const pattern = /ui\?for=moderation/
  const withoutTexts = answering(({ data }) => {
    data.labels = Object.fromEntries(Object.entries(data.labels).filter(([key]) => !key.startsWith('moderation.')))
  }, pattern)
  const { page } = await open(t, { who: grace.token, prepare: withoutTexts })
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  await page.unroute(pattern)
  await page.getByRole('button', { name: 'Try again' }).click()
  await until(() => focused(page), (text) => text === 'Finally')
  assert.equal(await focused(page), 'Finally')
})

test('texts that cannot be loaded are requested again, and then the page is in the language of its reader', async (t) => {
  const pattern = /ui\?for=moderation/
  const { page } = await open(t, { context: { locale: 'fr-CA' }, prepare: (page) => page.route(pattern, (route) => route.abort()) })
  await page.getByRole('alert').getByText('No connection').waitFor()
  await page.unroute(pattern)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('textbox', { name: 'Jeton de modérateur' }).fill(moderator('Grace').token ?? '')
  await press(page, 'Enter')
  await page.getByRole('tab', { name: 'Tous', selected: true }).waitFor()
  assert.deepEqual(await page.evaluate(() => [document.documentElement.lang, document.title]), ['fr', 'Modération'])
})

test('an expired sign-in is requested again, and the decisions are kept', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'After the hour')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'After the hour')
  const refuse = { status: 401, headers: { 'access-control-allow-origin': '*' }, json: { message: '', code: 'unauthenticated', errors: {} } }
  await page.route(/moderation\//, (route) => route.fulfill(refuse))
  await press(page, 'a')
  await page.clock.runFor(5_100)
  const dialog = page.getByRole('dialog', { name: 'Your sign-in has expired' })
  await dialog.waitFor()
  await page.unroute(/moderation\//)
  await dialog.getByRole('textbox').fill('nonsense')
  await press(page, 'Enter')
  await dialog.getByRole('alert').getByText('invalid or has expired').waitFor()
  await dialog.getByRole('textbox').fill(`Bearer ${grace.token}`)
  await press(page, 'Enter')
  await dialogCloses(page)
  await deliver(page, 100)
  assert.equal(await isApproved(id, grace), true)
})

test('a token comes from the address or a field, and stays in memory', async (t) => {
  const [grace, ada] = [moderator('Grace'), member('Ada')]
  const { page, context } = await open(t, { who: ada.token })
  await page.getByRole('alert').getByText("You're signed in as Ada. Only moderators can use this page.").waitFor()
  assert.equal(page.url(), `${w.service.api}/moderate`)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('textbox', { name: 'Moderator token' }).fill('nonsense')
  await press(page, 'Enter')
  await page.getByRole('alert').getByText('invalid or has expired').waitFor()
  await page.getByRole('textbox').fill(`${w.service.api}/moderate#token=${grace.token}`)
  await press(page, 'Enter')
  await page.getByRole('tab', { name: 'Pending' }).waitFor()
  assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie, location.hash]), [0, 0, '', ''])
  assert.deepEqual(await context.cookies(), [])
  await page.reload()
  await page.getByRole('textbox', { name: 'Moderator token' }).waitFor()
})

test('a host embeds the element with a function that returns tokens', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), 'Inside another page')
  const html = `<input id="mine"><comment-moderation lang="de"></comment-moderation>
    <script>
      asked = 0
      element = document.querySelector('comment-moderation')
      element.auth = async () => ++asked === 1 ? 'stale' : ${JSON.stringify(grace.token)}
    </script><script type="module" src="${w.service.api}/moderation.js"></script>`
  const { page, errors } = await w.open(t, { html })
  await card(page, 'Inside another page').waitFor()
  assert.equal(await page.evaluate('asked'), 2)
  assert.equal(await page.getByRole('tab', { name: 'Offen', exact: true }).count(), 1)
  await page.locator('body').click({ position: { x: 1, y: 1 } })
  await press(page, 'a', '?')
  assert.equal(await page.locator('article').count(), 1)
  assert.equal(await page.getByRole('button', { name: 'Abmelden' }).count(), 0)
  await page.evaluate(() => {
    const global = /** @type {any} */ (globalThis)
    global.element.addEventListener('comment-sign-in', () => (global.signedIn = true))
    global.element.auth = null
  })
  await page.getByRole('button', { name: 'Anmelden' }).click()
  assert.equal(await page.evaluate('signedIn'), true)
  assert.deepEqual(errors, [])
})

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`axe finds nothing, ${colorScheme}, wide and narrow`, async (t) => {
    const [grace, ada] = [moderator('Grace'), member('Ada')]
    const record = newRecord()
    const parent = await w.service.comment(record, 'A question', { who: ada.token })
    await w.service.call('POST', `comments/${parent.id}/approve`, grace.token)
    await w.service.call('POST', `comments/${parent.id}/report`, grace.token, { reason: 'spam', additional_details: 'again' })
    const rejected = await w.service.comment(record, 'Rejected', { who: ada.token })
    await w.service.call('POST', `comments/${rejected.id}/reject`, grace.token)
    for (const text of ['casino', 'An answer with `code` and\n\n```\na block\n```', 'x']) await w.service.comment(record, text, { who: ada.token, parent: parent.id })
    for (const width of [1000, 320]) {
      const context = { colorScheme, viewport: { width, height: 800 }, reducedMotion: /** @type {const} */ ('reduce'), bypassCSP: true }
      const { page } = await open(t, { who: grace.token, context, prepare: decideNothing })
      const check = async (/** @type {string} */ what) => {
        assert.deepEqual(await violations(page, 'html', {}), [], `${what} at ${width}`)
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} fits in ${width}`)
      }
      await page.locator('article.current').waitFor()
      await check('pending')
      await press(page, 'x')
      await check('a selection')
      await press(page, 'Escape', '?')
      await check('help')
      await press(page, 'Escape', 'b')
      await page.getByRole('dialog', { name: 'Ban Ada' }).waitFor()
      await check('the ban')
      await press(page, 'Escape')
      await card(page, 'casino').getByRole('button', { name: 'All by Ada' }).click()
      await page.getByRole('dialog').getByText(`#${ada.id}`).waitFor()
      await check('all by a writer')
      await press(page, 'Escape', 'a')
      await page.getByText('Approved the comment by Ada').first().waitFor()
      await check('a decision')
      await press(page, 'u')
      for (const [name, ready] of [['Reported', 'article'], ['Rejected', 'article'], ['All', 'article'], ['Users', 'h2'], ['Webhooks', '.webhooks + .after'], ['Log', '.log li']]) {
        await tab(page, name)
        await page.locator(ready).first().waitFor()
        await page.getByText('Loading…').waitFor({ state: 'detached' })
        await check(name)
      }
    }
    for (const who of [null, ada.token]) {
      const { page } = await open(t, { who, context: { colorScheme, bypassCSP: true } })
      await page.locator('h1').waitFor()
      assert.deepEqual(await violations(page, 'html', {}), [])
    }
  })
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`axe finds nothing where there is nothing to show, ${colorScheme}`, async (t) => {
    const grace = moderator('Grace')
    for (const width of [1000, 320]) {
      const { page } = await open(t, {
        who: grace.token,
        context: { colorScheme, viewport: { width, height: 800 }, bypassCSP: true },
        prepare: (page) => page.route(/moderation\/(comments|users|webhooks|log)\b/, (route) => route.fulfill({ json: { data: [], links: {}, meta: { next_cursor: null } } })),
      })
      for (const [name, text] of [['Pending', 'Nothing to review'], ['Reported', 'No reports'], ['Rejected', 'No rejected comments'], ['All', 'No comments in the last 30 days'], ['Users', 'No active bans'], ['Webhooks', 'No webhooks'], ['Log', 'No decisions yet']]) {
        await tab(page, name)
        await page.getByText(text).waitFor()
        const { violations, incomplete } = await axe(page)
        // Incomplete findings about ARIA count too.
        const found = [...violations, ...incomplete.filter((/** @type {any} */ { id }) => id.startsWith('aria'))]
        assert.deepEqual(found.map((/** @type {any} */ { id, nodes }) => [id, nodes.map((/** @type {any} */ node) => node.html)]), [], `${name} at ${width}`)
      }
    }
  })
}

test('names, titles and words of any length break, or scroll where they are code or tables', async (t) => {
  const word = 'W'.repeat(100)
  const [grace, long] = [moderator(word), member(word)]
  const record = newRecord()
  const body = `# ${word}\n\n${word} **${word}** [${word}](https://example.org/${word}) \`${word}\`\n\n> ${word}\n\n| ${word} | b |\n|---|---|\n| ${word} | b |\n\n\`\`\`\n${word}\n\`\`\`\n\n![${word}](https://example.org/x.png)`
  await w.service.call('PUT', `posts/${record}`, grace.token, { title: word, url: `https://blog.example/${word}` })
  const parent = await w.service.comment(record, body, { who: long.token })
  await w.service.call('POST', `comments/${parent.id}/approve`, grace.token)
  await w.service.call('POST', `comments/${parent.id}/report`, grace.token, { reason: 'spam', additional_details: word })
  await w.service.comment(record, body, { who: long.token, parent: parent.id })
  for (const width of [320, 1000]) {
    const context = { viewport: { width, height: 800 }, reducedMotion: /** @type {const} */ ('reduce') }
    const { page } = await open(t, { who: grace.token, context, prepare: decideNothing })
    const fits = async (/** @type {string} */ what) => assert.deepEqual(await stickingOut(page), [], `${what} at ${width}`)
    await page.locator('article.current').waitFor()
    await fits('pending')
    await press(page, 'b')
    await page.getByRole('dialog').waitFor()
    await fits('the ban')
    await press(page, 'Escape')
    await page.getByRole('button', { name: /^All by/ }).first().click()
    await page.getByRole('dialog').getByText(`#${long.id}`).waitFor()
    await fits('all by a writer')
    await press(page, 'Escape', 'a')
    await page.getByText(`Approved the comment by ${word}`).first().waitFor()
    await fits('a decision')
    await press(page, 'u')
    await tab(page, 'Reported')
    await page.locator('article').waitFor()
    await fits('reported')
    await tab(page, 'Users')
    await page.getByRole('searchbox').fill('www')
    await page.locator('.user', { hasText: word }).first().waitFor()
    await fits('users')
    await tab(page, 'Log')
    await page.locator('.log li').first().waitFor()
    await fits('the log')
    const refused = await open(t, { who: long.token, context })
    await refused.page.getByRole('alert').waitFor()
    assert.deepEqual(await stickingOut(refused.page), [], `a refusal at ${width}`)
  }
})

test('no text from a stranger is wider than the moderators’ page, or cut off', async (t) => {
  const record = newRecord()
  const family = '👨\u200d'.repeat(50)
  for (const body of ['- '.repeat(16) + 'deep', family]) {
    await w.service.call('POST', `posts/${record}/comments`, null, { body, guest_name: family, guest_email: 'm@example.org' })
  }
  const { page } = await open(t, { who: moderator('Grace').token, context: { viewport: { width: 320, height: 800 } } })
  await page.locator('article').nth(1).waitFor()
  assert.deepEqual(await stickingOut(page), [])
  const deep = card(page, 'deep').locator('.body')
  assert.ok(await deep.evaluate((body) => body.scrollWidth <= body.clientWidth), 'what is nested deep can be read')
})

test('links of comments open elsewhere, so that none signs a moderator out or reveals the address of the page', async (t) => {
  await w.service.comment(newRecord(), 'Please see [this page](#token=nobody)')
  const { page, context } = await open(t, { who: moderator('Grace').token })
  const link = card(page, 'Please see').getByRole('link', { name: 'this page' })
  const opened = context.waitForEvent('page')
  await link.click()
  await opened
  assert.match((await link.getAttribute('rel')) ?? '', /\bnoreferrer\b/)
  await page.getByRole('tab', { name: 'Pending' }).waitFor()
  assert.equal(await card(page, 'Please see').count(), 1)
})

test('a moderator who is banned gets a message, and the decided comments come back', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  await w.service.comment(newRecord(), 'Decided too late')
  const { page } = await open(t, { who: grace.token, clock: true })
  await until(() => focused(page), (text) => text === 'Decided too late')
  await w.service.call('PUT', `users/${grace.id}/ban`, linus.token, {})
  await press(page, 'a')
  await page.clock.runFor(5_100)
  await card(page, 'Decided too late').getByText("Couldn't apply your decision: You're banned and can't moderate.").waitFor()
  await tab(page, 'Log')
  await page.getByRole('alert').getByText("You're banned and can't moderate.").waitFor()
  const { page: later } = await open(t, { who: grace.token })
  await later.getByRole('heading', { name: "You're banned" }).waitFor()
  await later.getByText("You're signed in as Grace. Banned users can't moderate.").waitFor()
  assert.equal(await later.getByRole('tab').count(), 0)
})

test('moderators can’t ban themselves, and get a message when a user cannot be banned', async (t) => {
  const [grace, ada] = [moderator('Grace who stays'), { id: 99, name: 'Ada who stays', token: token(99, 'Ada who stays') }]
  const record = newRecord()
  await w.service.comment(record, 'By somebody else', { who: ada.token })
  await w.service.comment(record, 'By herself', { who: grace.token })
  const { page, sent } = await open(t, { who: grace.token })
  await card(page, 'By herself').waitFor()
  assert.equal(await card(page, 'By herself').getByRole('button', { name: 'Ban…' }).count(), 0)
  await card(page, 'By herself').click()
  await press(page, 'b')
  await page.getByRole('status').getByText('You can\'t ban yourself').waitFor({ state: 'attached' })
  await card(page, 'By herself').getByRole('button', { name: 'All by' }).click()
  await page.getByRole('dialog').getByText(`#${grace.id}`).waitFor()
  assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Ban…' }).count(), 0)
  await press(page, 'Escape')
  await card(page, 'By somebody else').getByRole('button', { name: 'Ban…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click()
  await page.getByRole('dialog').getByRole('alert').getByText("You can't ban yourself or a moderator named in the settings").waitFor()
  await press(page, 'Escape')
  await tab(page, 'Users')
  await page.getByRole('searchbox').fill('who stays')
  await page.locator('.user', { hasText: ada.name }).getByRole('button', { name: 'Ban…' }).waitFor()
  assert.equal(await page.locator('.user', { hasText: grace.name }).getByRole('button', { name: 'Ban…' }).count(), 0)
  assert.deepEqual(sent.map(({ path }) => path), [`users/${ada.id}/ban`])
})

test('the first list doesn’t take the focus from a button in the header', async (t) => {
  await w.service.comment(newRecord(), 'First in line')
  let release = () => {}
  const { page } = await open(t, { who: moderator('Grace').token, prepare: async (page) => (release = await hold(page, /moderation.comments.*per_page=50/)) })
  const signOut = page.getByRole('button', { name: 'Sign out' })
  await signOut.focus()
  release()
  await card(page, 'First in line').waitFor()
  assert.ok(await signOut.evaluate((element) => element.matches(':focus')))
})

test('decisions that wait when another user signs in are sent for the moderator who made them', async (t) => {
  const [grace, linus] = [moderator('Grace'), moderator('Linus')]
  const { id } = await w.service.comment(newRecord(), 'Decided by Grace')
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Decided by Grace').waitFor()
  await press(page, 'a')
  await page.locator('comment-moderation').evaluate((element, auth) => Object.assign(element, { auth }), linus.token)
  await until(() => isApproved(id, grace), (approved) => approved)
  const { data } = await w.service.call('GET', 'moderation/log?cursor=', grace.token)
  const entry = data.find((/** @type {any} */ { comment_id }) => comment_id === id)
  assert.equal(entry.moderator.id, grace.id)
})

test('decisions that are being sent when the page is closed arrive', async (t) => {
  const grace = moderator('Grace')
  const { id } = await w.service.comment(newRecord(), 'Sent at the last moment')
  const { page } = await open(t, { who: grace.token, clock: true })
  await card(page, 'Sent at the last moment').waitFor()
  await page.waitForLoadState('networkidle')
  await press(page, 'a')
  // The log, which is read before decisions are sent, does not respond.
  const asked = page.waitForRequest(/moderation.log/)
  await page.route(/moderation.log/, () => {})
  await page.clock.runFor(5_100)
  await asked
  await page.goto('about:blank')
  assert.equal(await until(() => isApproved(id, grace), (approved) => approved), true)
})

test('an emptied list shows an older comment that is reported later', async (t) => {
  const [grace, ada, bob] = [moderator('Grace'), member('Ada'), member('Bob')]
  const record = newRecord()
  const write = (/** @type {string} */ text) => w.service.comment(record, text, { who: ada.token })
  const [older, newer] = [await write('An older one'), await write('A newer one')]
  await emptyQueue()
  const report = (/** @type {number} */ id) => w.service.call('POST', `comments/${id}/report`, bob.token, { reason: 'spam' })
  await report(newer.id)
  const { page } = await open(t, { who: grace.token, clock: true })
  await tab(page, 'Reported')
  await card(page, 'A newer one').waitFor()
  await press(page, 'a')
  await page.getByRole('heading', { name: 'No reports' }).waitFor()
  await deliver(page)
  await report(older.id)
  await page.clock.runFor(16_000)
  await card(page, 'An older one').waitFor()
})

test('a comment that is opened from the log shows its reports', async (t) => {
  const [grace, bob] = [moderator('Grace who looks back'), member('Bob')]
  const { id } = await w.service.comment(newRecord(), 'Approved, and reported')
  await w.service.call('POST', `comments/${id}/approve`, grace.token)
  await w.service.call('POST', `comments/${id}/report`, bob.token, { reason: 'spam', additional_details: 'It sells.' })
  const { page } = await open(t, { who: grace.token })
  await tab(page, 'Log')
  await page.locator('.log li', { hasText: grace.name }).first().getByRole('button', { name: 'Show' }).click()
  await page.getByRole('dialog').getByText('It sells.').waitFor()
})

test('a moderator adds a webhook, tests it, reads its deliveries, sends one again and removes it', async (t) => {
  /** @type {string[]} */
  const received = []
  let status = 204
  const receiver = createServer((request, response) => {
    received.push(`${request.headers['webhook-id']}`)
    request.resume().on('end', () => response.writeHead(status).end())
  }).listen(0, '127.0.0.1')
  t.after(() => receiver.close())
  await new Promise((resolve) => receiver.once('listening', resolve))
  const { port } = /** @type {import('node:net').AddressInfo} */ (receiver.address())
  const url = `http://127.0.0.1:${port}/hook`

  const { page } = await open(t, { who: moderator('Hooks').token })
  await tab(page, 'Webhooks')
  await page.getByText('No webhooks').waitFor()
  await page.getByRole('button', { name: 'Add webhook' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill('ftp://example.org/')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('The url must be an https address.').waitFor()
  await dialog.getByLabel('URL').fill(url)
  await dialog.getByLabel('comment.reported').uncheck()
  await dialog.getByRole('button', { name: 'Save' }).click()
  assert.match(await dialog.getByLabel('Secret').inputValue(), /^whsec_/)
  await dialog.getByRole('button', { name: 'Close' }).click()

  const row = page.locator('.webhooks li')
  await row.getByText(url).waitFor()
  assert.equal(await row.getByText('comment.reported').count(), 0)
  await row.getByRole('button', { name: 'Test' }).click()
  await page.getByText('Test sent').first().waitFor()
  while (!received.length) await page.waitForTimeout(20)
  await row.getByRole('button', { name: 'Deliveries' }).click()
  await dialog.getByText('webhook.test').waitFor()
  // The service stores the receiver's response only after the request has ended.
  const { data: [webhook] } = await w.service.call('GET', 'moderation/webhooks', w.service.moderator)
  const deliveries = () => w.service.call('GET', `moderation/webhooks/${webhook.id}/deliveries`, w.service.moderator)
  while ((await deliveries()).data[0].status !== 'delivered') await page.waitForTimeout(20)
  await dialog.getByRole('button', { name: 'Refresh' }).click()
  await dialog.getByText('delivered').waitFor()
  await dialog.getByText('204').waitFor()
  status = 500
  await dialog.getByRole('button', { name: 'Send again' }).click()
  while (received.length < 2) await page.waitForTimeout(20)
  assert.equal(received[1], received[0])
  await dialog.getByRole('button', { name: 'Close' }).click()

  await row.getByRole('button', { name: 'Disable' }).click()
  await row.getByText('Disabled').waitFor()
  assert.equal(await row.getByRole('button', { name: 'Test' }).count(), 0)
  await row.getByRole('button', { name: 'Enable' }).click()
  await row.getByRole('button', { name: 'Test' }).waitFor()
  await row.getByRole('button', { name: 'Remove' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No webhooks').waitFor()
})
