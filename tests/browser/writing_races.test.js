import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, become, choose, chooseImage, composer, hold, isVisitor, newRecord, rebuilding, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').Locator} Locator */

const post = (/** @type {Page} */ page) => page.getByRole('button', { name: 'Post comment' })
/** Returns another token for Ada, as if the page had renewed it. */
const renewed = () => token(7, 'Ada Lovelace', { jti: newRecord() })
/** @param {Locator} thread @param {string} name @param {string} value */
const set = (thread, name, value) => thread.evaluate((element, [name, value]) => element.setAttribute(name, value), [name, value])

/** @param {string} record @returns {Promise<string[]>} */
const stored = async (record) => (await w.service.call('GET', `posts/${record}/comments`, w.service.ada)).data.map((/** @type {any} */ { body }) => body)

test('a comment goes to the thread in which it was sent, though the page shows another one by then', async (t) => {
  const [first, second] = [newRecord(), newRecord()]
  await w.service.comment(second, 'Elsewhere.')
  const { page, thread } = await w.open(t, { record: first, who: w.service.ada })
  await composer(page).fill('Look:')
  const release = await hold(page, /\/media$/)
  await chooseImage(page)
  await post(page).click()
  await set(thread, 'record', second)
  await page.getByText('Elsewhere.').waitFor()
  const sent = page.waitForResponse((response) => response.url().includes(`${first}/comments`) && response.request().method() === 'POST')
  release()
  await sent
  await page.getByText('Comment posted').waitFor()
  assert.deepEqual([(await stored(first)).length, await stored(second)], [1, ['Elsewhere.']])
  assert.equal(await page.locator('article').count(), 1)
})

test('a comment isn’t sent under the name of a user who signs in before its image has arrived', async (t) => {
  const record = newRecord()
  const { page, thread } = await w.open(t, { record, who: w.service.ada })
  await composer(page).fill('Look:')
  const release = await hold(page, /\/media$/)
  await chooseImage(page)
  await post(page).click()
  const releaseList = await hold(page, /\/comments\?/)
  await rebuilding(page, async () => {
    await become(thread, w.service.bob)
    const arrived = page.waitForResponse(/\/media$/)
    release()
    await arrived
    releaseList()
  })
  await isVisitor(page, 'Bob')
  assert.equal(await page.locator('.chip').count(), 0)
  await composer(page).fill('From Bob.')
  await post(page).click()
  await page.locator('article', { hasText: 'From Bob.' }).waitFor()
  assert.deepEqual(await stored(record), ['From Bob.'])
  await rebuilding(page, () => become(thread, w.service.ada))
  assert.equal(await composer(page).inputValue(), 'Look:')
})

test('a composer that is rendered again keeps its images', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('Look:')
  await chooseImage(page)
  await page.getByLabel('Describe the image').fill('A cat')
  await rebuilding(page, () => become(thread, renewed()))
  assert.equal(await page.locator('.chip').count(), 1)
  await rebuilding(page, () => set(thread, 'sort', 'oldest'))
  await rebuilding(page, () => set(thread, 'lang', 'de'))
  await page.getByRole('button', { name: 'Kommentar abschicken' }).click()
  await page.locator('article').getByRole('img', { name: 'A cat' }).waitFor()
  assert.equal(await page.locator('.chip').count(), 0)
})

test('a reply that is rendered again keeps its image, which can still be removed', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  const form = article(page, id).locator('form')
  await form.locator('textarea').fill('Look:')
  await chooseImage(page)
  await page.getByLabel('Describe the image').waitFor()
  await rebuilding(page, () => become(thread, renewed()))
  await form.locator('.chip').getByRole('button').click()
  await form.locator('textarea').and(page.locator(':focus')).waitFor()
  assert.equal(await form.locator('.chip').count(), 0)
})

test('a guest’s images are kept when they sign in, and then belong to the member', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord() })
  await composer(page).fill('Look:')
  await chooseImage(page)
  await page.getByLabel('Describe the image').fill('A cat')
  await rebuilding(page, () => become(thread, w.service.ada))
  await page.locator('.chip').waitFor()
  await rebuilding(page, () => become(thread, w.service.bob))
  assert.equal(await page.locator('.chip').count(), 0)
  await rebuilding(page, () => become(thread, w.service.ada))
  await post(page).click()
  await page.locator('article').getByRole('img', { name: 'A cat' }).waitFor()
})

test('a comment that is being sent is not offered again when the thread is rendered again', async (t) => {
  const record = newRecord()
  const { page, thread } = await w.open(t, { record, who: w.service.ada })
  await composer(page).fill('Once.')
  const release = await hold(page, /\/comments$/)
  await post(page).click()
  for (const change of [() => become(thread, renewed()), () => set(thread, 'lang', 'de')]) {
    await rebuilding(page, change)
    assert.deepEqual(await page.locator('form textarea').evaluateAll((all) => all.map((text) => /** @type {any} */ (text).readOnly)), [true])
  }
  release()
  await page.locator('article', { hasText: 'Once.' }).waitFor()
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === '')
  assert.deepEqual(await stored(record), ['Once.'])
})

test('a reply that is put aside while it is sent shows so when it is opened again, and closes once it has arrived', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  const open = () => article(page, id).getByRole('button', { name: 'Reply', exact: true }).first().click()
  const form = article(page, id).locator('form')
  await open()
  await form.locator('textarea').fill('Once.')
  const release = await hold(page, /\/comments$/)
  await form.getByRole('button', { name: 'Reply' }).click()
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  await rebuilding(page, () => become(thread, renewed()))
  await open()
  await form.getByRole('button', { name: 'Posting…' }).waitFor()
  release()
  await article(page, id).locator('article', { hasText: 'Once.' }).waitFor()
  await form.waitFor({ state: 'detached' })
  await open()
  assert.equal(await form.locator('textarea').inputValue(), '')
})

test('a failure is reported if the reply is put aside while it is sent', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  const form = article(page, id).locator('form')
  await form.locator('textarea').fill('Once.')
  await page.route(/\/comments$/, (route) => route.fulfill({ status: 500, body: '{}' }))
  const release = await hold(page, /\/comments$/)
  await form.getByRole('button', { name: 'Reply' }).click()
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  release()
  await page.locator('.toast.error').getByText('Something went wrong').waitFor()
})

test('a preview that arrives after its text was changed is not shown', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('Old.')
  const release = await hold(page, /preview$/)
  await page.getByRole('button', { name: 'Preview' }).click()
  await composer(page).fill('New.')
  const arrived = page.waitForResponse(/preview$/)
  release()
  await arrived
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview', { hasText: 'New.' }).waitFor()
  await page.getByRole('button', { name: 'Preview' }).click()
  await composer(page).waitFor()
})

test('people who are found later don’t change the person chosen with the arrow keys', async (t) => {
  const record = newRecord()
  for (const [id, name] of /** @type {[number, string][]} */ ([[51, 'Zoe One'], [52, 'Zoe Two'], [53, 'Zoe Three']])) {
    await w.service.comment(id === 53 ? newRecord() : record, 'Here.', { who: token(id, name) })
  }
  const { page } = await w.open(t, { record, who: w.service.ada })
  const release = await hold(page, /\/users\?/)
  const asked = page.waitForRequest(/\/users\?/)
  await composer(page).pressSequentially('@zoe')
  const people = page.locator('.people [role=option]')
  const chosen = page.locator('.people [aria-selected=true]')
  await people.nth(1).waitFor()
  await page.keyboard.press('ArrowDown')
  const name = await chosen.textContent()
  await asked
  release()
  await people.nth(2).waitFor()
  assert.equal(await chosen.textContent(), name)
})

test('after a long comment is sent, no character count is shown', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('a'.repeat(9_990))
  await page.getByText('10 characters left').waitFor()
  await post(page).click()
  await page.locator('article').waitFor()
  await composer(page).focus()
  await page.getByText('characters left').waitFor({ state: 'detached' })
})

test('a report with a corrected text is accepted after its first response was lost', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Rude.', by: w.service.bob, who: w.service.ada })
  await choose(page, id, 'Report')
  await page.getByPlaceholder('Details').fill('Rdue.')
  await page.route(/\/report$/, async (route) => {
    await route.fetch()
    await route.abort()
  }, { times: 1 })
  await page.locator('dialog').getByRole('button', { name: 'Report' }).click()
  await page.locator('dialog').getByText('No connection').waitFor()
  await page.getByPlaceholder('Details').fill('Rude.')
  await page.locator('dialog').getByRole('button', { name: 'Report' }).click()
  await page.locator('dialog').waitFor({ state: 'detached' })
})

test('a comment or a reply whose response was lost is sent with its key from the next composer, too', async (t) => {
  const { page, record, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  const lose = () => page.route(/\/comments$/, async (route) => {
    await route.fetch()
    await route.abort()
  }, { times: 1 })
  await lose()
  await composer(page).fill('Once.')
  await post(page).click()
  await page.getByText('Your draft is saved').waitFor()
  await rebuilding(page, () => become(thread, renewed()))
  await post(page).click()
  await page.getByText('Comment posted').waitFor()
  await lose()
  const open = () => article(page, id).getByRole('button', { name: 'Reply', exact: true }).first().click()
  const form = article(page, id).locator('form')
  await open()
  await form.locator('textarea').fill('Twice?')
  await form.getByRole('button', { name: 'Reply' }).click()
  await form.getByText('Your draft is saved').waitFor()
  await page.keyboard.press('Escape')
  await open()
  await form.getByRole('button', { name: 'Reply' }).click()
  await form.waitFor({ state: 'detached' })
  const { data } = await w.service.call('GET', `posts/${record}/comments`, w.service.ada)
  assert.deepEqual(data.map((/** @type {any} */ { body, replies_count }) => [body, replies_count]), [['Once.', 0], ['Ask me.', 1]])
})

test('a text that is changed after its response was lost is posted too', async (t) => {
  const { page, record, id } = await w.open(t, { comment: 'Ask me.' })
  const lose = () => page.route(/\/comments$/, async (route) => {
    await route.fetch()
    await route.abort()
  }, { times: 1 })
  await composer(page).focus()
  await page.getByLabel('Your name').fill('Gus')
  await page.getByLabel('Your e-mail address').fill('gus@example.org')
  for (const body of ['First.', 'Another one, first.']) {
    await lose()
    await composer(page).fill(body)
    await post(page).click()
    await page.getByText('Your draft is saved').waitFor()
  }
  await post(page).click()
  await page.getByText('Comment posted').waitFor()
  await article(page, id).getByRole('button', { name: 'Reply', exact: true }).first().click()
  const form = article(page, id).locator('form')
  await lose()
  await form.locator('textarea').fill('A reply.')
  await form.getByRole('button', { name: 'Reply' }).click()
  await form.getByText('Your draft is saved').waitFor()
  await form.locator('textarea').fill('No, another reply.')
  await form.getByRole('button', { name: 'Reply' }).click()
  await form.waitFor({ state: 'detached' })
  const { data } = await w.service.call('GET', `posts/${record}/comments`, w.service.ada)
  assert.deepEqual(data.map((/** @type {any} */ { body, replies_count }) => [body, replies_count]), [['Another one, first.', 0], ['First.', 0], ['Ask me.', 2]])
})

test('two images without text are two comments', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, who: w.service.ada })
  for (const count of [1, 2]) {
    await composer(page).focus()
    await chooseImage(page)
    await page.locator('.chip progress').waitFor({ state: 'detached' })
    await post(page).click()
    await page.locator('article .body img').nth(count - 1).waitFor()
  }
  assert.equal((await stored(record)).length, 2)
})

test('a reply that is open when the thread is rendered again takes no focus from the host page', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await thread.evaluate((element) => element.before(Object.assign(document.createElement('input'), { id: 'own' })))
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.locator('article textarea').fill('Mine')
  await page.locator('#own').focus()
  await rebuilding(page, () => become(thread, renewed()))
  await page.locator('article textarea').waitFor()
  await page.keyboard.type('typed')
  assert.deepEqual([await page.locator('#own').inputValue(), await page.locator('article textarea').inputValue()], ['typed', 'Mine'])
})

test('a reply has the focus even if the element of the host page can have it', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.ada, attributes: 'tabindex="0"' })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.getByPlaceholder('Write a reply…').and(page.locator(':focus')).waitFor()
})

test('a comment is posted though a browser extension has put an element behind the text field', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).evaluate((text) => text.after(Object.assign(document.createElement('x-extension'), { innerHTML: '<div></div>' })))
  await composer(page).fill('Hello.')
  await post(page).click()
  await page.locator('article', { hasText: 'Hello.' }).waitFor()
})

test('an image whose upload fails for now stays, and is sent with the next try', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.route(/\/media$/, (route) => route.fulfill({ status: 503, body: '{}' }), { times: 1 })
  await composer(page).fill('Look:')
  await chooseImage(page)
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  assert.equal(await page.locator('.chip').count(), 1)
  await post(page).click()
  await page.locator('article .body img').waitFor()
})

test('typing continues in the same place when the thread is rendered again', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.getByPlaceholder('Write a reply…').fill('A reply.')
  await composer(page).pressSequentially('Hello ')
  await rebuilding(page, () => become(thread, renewed()))
  await page.getByPlaceholder('Write a reply…').waitFor()
  await page.keyboard.type('world')
  assert.equal(await composer(page).inputValue(), 'Hello world')
  assert.equal(await page.getByPlaceholder('Write a reply…').inputValue(), 'A reply.')
})

test('a report that is being written stays when the thread is rendered again, and is sent under no other name', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Rude.', by: w.service.bob, who: w.service.ada, attributes: 'theme="dark"' })
  await choose(page, id, 'Report')
  await page.getByPlaceholder('Details').fill('A long explanation')
  await rebuilding(page, () => become(thread, token(99, 'Zoe')))
  await page.locator('dialog').getByRole('button', { name: 'Report' }).click()
  await page.locator('dialog').getByText('Something went wrong').waitFor()
  await rebuilding(page, () => become(thread, renewed()))
  assert.equal(await page.getByPlaceholder('Details').inputValue(), 'A long explanation')
  await page.locator('dialog').getByRole('button', { name: 'Report' }).click()
  await page.locator('dialog').waitFor({ state: 'detached' })
})

test('Escape in the preview leaves a composer that can be opened', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('Look at **this**.')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview', { hasText: 'Look at this.' }).waitFor()
  await page.keyboard.press('Escape')
  await composer(page).click()
  assert.equal(await composer(page).inputValue(), 'Look at **this**.')
})

test('a composer that is put aside while it is sent closes no other, and a hidden failure is reported', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Mine.', who: w.service.ada })
  const form = article(page, id).locator('form')
  await choose(page, id, 'Edit')
  await form.locator('textarea').fill('Changed.')
  const release = await hold(page, /\/comments\/\d+$/)
  await form.getByRole('button', { name: 'Save' }).click()
  await page.keyboard.press('Escape')
  await article(page, id).getByRole('button', { name: 'Reply' }).first().click()
  await page.getByPlaceholder('Write a reply…').pressSequentially('half a re')
  release()
  await article(page, id).getByText('Changed.').waitFor()
  await page.keyboard.type('ply')
  assert.equal(await page.getByPlaceholder('Write a reply…').inputValue(), 'half a reply')
  await page.keyboard.press('Escape')

  await page.route(/\/comments$/, (route) => route.fulfill({ status: 500, body: '{}' }), { times: 1 })
  const releasePost = await hold(page, /\/comments$/)
  await composer(page).fill('Refused.')
  await post(page).click()
  await page.keyboard.press('Escape')
  releasePost()
  await page.locator('.toast.error').getByText('Something went wrong').waitFor()
})

test('open replies stay when the order is changed', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.getByPlaceholder('Write a reply…').fill('A reply.')
  await page.getByRole('combobox').focus()
  const sorted = page.waitForResponse(/sort=oldest/)
  await page.keyboard.press('ArrowDown')
  await sorted
  await page.getByPlaceholder('Write a reply…').waitFor()
  assert.equal(await page.getByPlaceholder('Write a reply…').inputValue(), 'A reply.')
  assert.ok(await page.getByRole('combobox').evaluate((element) => element.matches(':focus')), 'the arrow keys go on')
})

test('a guest who signs in while sending gets a working composer', async (t) => {
  const record = newRecord()
  const { page, thread } = await w.open(t, { record })
  await composer(page).fill('From a guest.')
  await page.getByLabel('Your name').fill('Gus')
  await page.getByLabel('Your e-mail address').fill('gus@example.org')
  const release = await hold(page, /\/comments$/)
  await post(page).click()
  await rebuilding(page, () => become(thread, w.service.ada))
  await rebuilding(page, async () => release())
  await isVisitor(page, 'Ada')
  assert.equal(await composer(page).inputValue(), '')
  await composer(page).fill('From Ada.')
  await post(page).click()
  await page.locator('article', { hasText: 'From Ada.' }).waitFor()
  assert.deepEqual((await stored(record)).toSorted(), ['From Ada.', 'From a guest.'])
})

test('text that a guest has typed is inserted above the draft of the member who signs in', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('A long draft of Ada.')
  await rebuilding(page, () => become(thread, null))
  await composer(page).fill('Hm.')
  await rebuilding(page, () => become(thread, w.service.ada))
  assert.equal(await composer(page).inputValue(), 'Hm.\n\nA long draft of Ada.')
})

test('a decision doesn’t move the focus from a field, and isn’t sent under another name', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Decide.', who: w.service.moderator })
  await choose(page, id, 'Reject')
  await composer(page).pressSequentially('typing ')
  await page.getByText('Saved').waitFor()
  await page.keyboard.type('on')
  assert.equal(await composer(page).inputValue(), 'typing on')
  const sent = /** @type {string[]} */ ([])
  page.on('request', (request) => request.url().endsWith('/approve') && sent.push(request.url()))
  await choose(page, id, 'Approve')
  await become(thread, token(98, 'Heidi', { roles: ['moderator'] }))
  await page.locator('.toast.error').getByText('Something went wrong').waitFor()
  assert.deepEqual(sent, [])
})

test('Enter in the description of an image doesn’t send the comment', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, who: w.service.ada })
  await composer(page).fill('Not yet finished')
  await chooseImage(page)
  await page.getByLabel('Describe the image').fill('A cat')
  await page.keyboard.press('Enter')
  await composer(page).fill('Finished')
  await page.getByLabel('Describe the image').press('Control+Enter')
  await page.locator('article').getByRole('img', { name: 'A cat' }).waitFor()
  assert.match((await stored(record)).join(), /^Finished/)
})

test('people are no longer offered once the caret is placed elsewhere', async (t) => {
  const { page } = await w.open(t, { comment: 'Here.', by: token(54, 'Zoe Four'), who: w.service.ada })
  await composer(page).fill('First line\n')
  await composer(page).pressSequentially('@zoe')
  await page.locator('.people [role=option]').first().waitFor()
  await composer(page).click({ position: { x: 20, y: 16 } })
  await page.locator('.people').waitFor({ state: 'hidden' })
  await page.keyboard.press('Enter')
  assert.equal((await composer(page).inputValue()).match(/\n/g)?.length, 2)
})

/** Replaces the thread with a new element, as frameworks do. @param {Page} page */
const replaceElement = (page) =>
  page.evaluate(() => {
    const old = /** @type {any} */ (document.querySelector('comment-thread'))
    const made = Object.assign(document.createElement('comment-thread'), { auth: old.auth })
    for (const { name, value } of old.attributes) made.setAttribute(name, value)
    old.replaceWith(made)
  })

test('a comment is posted once from two elements of a thread, and the same text typed again is another comment', async (t) => {
  const record = newRecord()
  const one = `<comment-thread type="posts" record="${record}"></comment-thread>`
  const auth = `<script>document.querySelectorAll('comment-thread').forEach((thread) => (thread.auth = ${JSON.stringify(w.service.ada)}))</script>`
  const { page } = await w.open(t, { record, html: one + auth })
  await composer(page).fill('Once.')
  await page.locator('comment-thread').evaluate((thread) => thread.after(Object.assign(/** @type {any} */ (thread.cloneNode()), { auth: /** @type {any} */ (thread).auth })))
  await composer(page).nth(1).waitFor()
  assert.equal(await composer(page).nth(1).inputValue(), 'Once.')
  const release = await hold(page, /\/comments$/)
  for (const place of [0, 1]) {
    const asked = page.waitForRequest(/\/comments$/)
    await composer(page).nth(place).focus()
    await page.keyboard.press('Control+Enter')
    await asked
  }
  release()
  await page.locator('article', { hasText: 'Once.' }).nth(1).waitFor()
  assert.deepEqual(await stored(record), ['Once.'])
  await composer(page).first().fill('Once.')
  await page.keyboard.press('Control+Enter')
  await page.locator('comment-thread').first().locator('article').nth(1).waitFor()
  assert.deepEqual(await stored(record), ['Once.', 'Once.'])
})

for (const who of ['member', 'guest']) {
  test(`the comment of a ${who} is posted once, though its element is replaced while it is sent`, async (t) => {
    const record = newRecord()
    const { page } = await w.open(t, { record, who: who === 'member' ? w.service.ada : null })
    await composer(page).fill('Once.')
    if (who === 'guest') {
      await page.getByLabel('Your name').fill('Gus')
      await page.getByLabel('Your e-mail address').fill('gus@example.org')
    }
    const release = await hold(page, /\/comments$/)
    await post(page).click()
    const sent = page.waitForResponse(/\/comments$/)
    await replaceElement(page)
    await composer(page).waitFor()
    assert.equal(await composer(page).inputValue(), 'Once.')
    await composer(page).focus()
    release()
    await sent
    await page.getByRole('button', { name: 'Bold' }).waitFor()
    await post(page).click()
    await page.locator('article', { hasText: 'Once.' }).waitFor()
    assert.equal(await composer(page).inputValue(), '')
    assert.deepEqual([await stored(record), await page.locator('[part=count]').textContent()], [['Once.'], '1'])
    assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes('example.org'))
  })
}

test('a comment is posted once from two tabs with the same draft', async (t) => {
  const record = newRecord()
  const { page, context } = await w.open(t, { record, who: w.service.ada })
  await composer(page).fill('Once.')
  const other = await context.newPage()
  await other.goto(page.url())
  assert.equal(await composer(other).inputValue(), 'Once.')
  await post(page).click()
  await page.locator('article', { hasText: 'Once.' }).waitFor()
  await composer(other).focus()
  await post(other).click()
  await other.locator('article', { hasText: 'Once.' }).waitFor()
  assert.deepEqual(await stored(record), ['Once.'])
  await composer(other).fill('Once.')
  await post(other).click()
  await other.locator('article', { hasText: 'Once.' }).nth(1).waitFor()
  assert.deepEqual(await stored(record), ['Once.', 'Once.'])
})

test('a reply that was sent from another tab is posted and counted once', async (t) => {
  const { page, id, context } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.getByPlaceholder('Write a reply…').fill('Once.')
  const other = await context.newPage()
  await other.goto(page.url())
  await article(other, id).getByRole('button', { name: 'Reply' }).click()
  const button = (/** @type {Page} */ page) => article(page, id).locator('form').getByRole('button', { name: 'Reply' })
  await button(page).click()
  const sent = await page.locator('article article').getAttribute('id')
  await other.evaluate((id) => (location.hash = `#${id}`), sent)
  await other.locator('article article').waitFor()
  await button(other).click()
  await article(other, id).locator('form').waitFor({ state: 'detached' })
  await other.getByText('Comment posted').waitFor()
  assert.equal(await other.locator('article article').count(), 1)
  assert.equal(await other.getByText('more repl').filter({ visible: true }).count(), 0)
})

test('a comment whose token is refused is not sent under the name of another user, who may press again', async (t) => {
  const record = newRecord()
  const tokens = [w.service.ada, renewed(), w.service.bob]
  const auth = `<script>{ const tokens = ${JSON.stringify(tokens)}; document.querySelector('comment-thread').auth = () => tokens.length > 1 ? tokens.shift() : tokens[0] }</script>`
  const { page } = await w.open(t, { record, html: `<comment-thread type="posts" record="${record}"></comment-thread>${auth}` })
  await composer(page).fill('From Ada.')
  const refusal = { status: 401, headers: { 'access-control-allow-origin': '*' }, json: { message: 'No.', code: 'unauthenticated', errors: {} } }
  const refuse = () => page.route(/\/comments$/, (route) => route.fulfill(refusal), { times: 1 })
  await refuse()
  await post(page).click()
  await page.locator('article', { hasText: 'From Ada.' }).waitFor()
  await composer(page).fill('Whose?')
  await refuse()
  await post(page).click()
  await page.getByText('Your session has ended').waitFor()
  await isVisitor(page, 'Bob')
  assert.equal(await composer(page).inputValue(), 'Whose?')
  assert.deepEqual(await stored(record), ['From Ada.'])
  await post(page).click()
  await page.locator('article', { hasText: 'Whose?' }).waitFor()
  const { data } = await w.service.call('GET', `posts/${record}/comments`, null)
  assert.deepEqual(data.map((/** @type {any} */ { body, user }) => [body, user.name]), [['Whose?', 'Bob'], ['From Ada.', 'Ada Lovelace']])
})

test('the caret and the selection stay when the thread is rendered again', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  for (const text of [page.locator('article textarea'), page.locator('form:not(article *) textarea')]) {
    await text.fill('one two three')
    await text.evaluate((text) => /** @type {HTMLTextAreaElement} */ (text).setSelectionRange(4, 7))
    for (const change of [() => become(thread, renewed()), () => set(thread, 'lang', 'de'), () => set(thread, 'lang', 'en')]) {
      await rebuilding(page, change)
      await text.and(page.locator(':focus')).waitFor()
      assert.deepEqual(await text.evaluate((text) => [/** @type {any} */ (text).selectionStart, /** @type {any} */ (text).selectionEnd]), [4, 7])
    }
    await page.keyboard.type('2')
    assert.equal(await text.inputValue(), 'one 2 three')
  }
})

test('the name and address that a guest has typed stay when the thread is rendered again', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord() })
  await composer(page).fill('Hello.')
  const [name, email] = ['Your name', 'Your e-mail address'].map((label) => page.getByLabel(label))
  await name.fill('Gus')
  await email.fill('gus@example.org')
  await rebuilding(page, () => set(thread, 'sort', 'oldest'))
  await composer(page).focus()
  await name.waitFor()
  assert.deepEqual([await name.inputValue(), await email.inputValue()], ['Gus', 'gus@example.org'])
})

test('a decision in a thread that is rendered again can still be undone, and is sent once', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Decide.', who: w.service.moderator })
  /** @type {string[]} */
  const sent = []
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()))
  const again = () => token(9, 'Grace', { roles: ['moderator'], jti: newRecord() })
  const changes = [() => set(thread, 'lang', 'en-GB'), () => set(thread, 'lang', 'en'), () => set(thread, 'sort', 'oldest'), () => become(thread, again())]
  const count = page.locator('[part=count]')
  await choose(page, id, 'Reject')
  for (const change of changes) await rebuilding(page, change)
  await article(page, id).getByText('Rejected. Only its author can see it.').waitFor()
  assert.equal(await count.textContent(), '0')
  await page.getByRole('button', { name: 'Undo' }).click()
  await article(page, id).getByRole('button', { name: 'Like' }).waitFor()
  assert.equal(await count.textContent(), '1')
  assert.deepEqual(sent, [])
  await choose(page, id, 'Reject')
  await page.getByRole('button', { name: 'Off topic' }).click()
  for (const change of changes) await rebuilding(page, change)
  await page.getByRole('button', { name: 'Off topic', pressed: true }).waitFor()
  await page.getByText('Saved').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
  assert.deepEqual([sent.length, await count.textContent()], [1, '0'])
  const { data } = await w.service.call('GET', `moderation/comments?id=${id}`, w.service.moderator)
  assert.equal(data[0].rejection.reason, 'off_topic')
})
