import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, choose, hold, isVisitor, newRecord, PIXEL, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').Locator} Locator */

const composer = (/** @type {Page} */ page) => page.getByPlaceholder('Write a comment…')
const post = (/** @type {Page} */ page) => page.getByRole('button', { name: 'Post comment' })
/** Ada with another token, as pages renew it. */
const renewed = () => token(7, 'Ada Lovelace', { jti: newRecord() })
/** @param {Locator} thread @param {string} auth */
const become = (thread, auth) => thread.evaluate((element, auth) => Object.assign(element, { auth }), auth)
/** @param {Locator} thread @param {string} name @param {string} value */
const set = (thread, name, value) => thread.evaluate((element, [name, value]) => element.setAttribute(name, value), [name, value])

/** @param {Page} page */
async function chooseImage(page) {
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: /Upload an image|Bild hochladen/ }).click()
  await (await chooser).setFiles({ name: 'dot.png', mimeType: 'image/png', buffer: PIXEL })
}

/** The texts of a thread's comments. @param {string} record @returns {Promise<string[]>} */
const stored = async (record) => (await w.service.call('GET', `posts/${record}/comments`, w.service.ada)).data.map((/** @type {any} */ { body }) => body)

/** Changes the page, and waits until the thread is rendered again. @param {Page} page @param {() => Promise<any>} change */
async function rebuilding(page, change) {
  const list = await page.locator('.top').elementHandle()
  await change()
  await page.waitForFunction((element) => !element?.isConnected, list)
}

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

test('a comment is not sent under the name of somebody who signs in before its image has arrived', async (t) => {
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
  const record = newRecord()
  const { page, thread } = await w.open(t, { record, who: w.service.ada })
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
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Ask me.')
  const { page, thread } = await w.open(t, { record, who: w.service.ada })
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

test('the images of a guest stay when they sign in, and are theirs from then on', async (t) => {
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
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Ask me.')
  const { page, thread } = await w.open(t, { record, who: w.service.ada })
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

test('the failure of a reply that is put aside while it is sent is told', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Ask me.')
  const { page } = await w.open(t, { record, who: w.service.ada })
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

test('people who are found later leave the one that was chosen by the arrow', async (t) => {
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

test('after a long comment was sent no number of characters is left', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('a'.repeat(9_990))
  await page.getByText('10 characters left').waitFor()
  await post(page).click()
  await page.locator('article').waitFor()
  await composer(page).focus()
  await page.getByText('characters left').waitFor({ state: 'detached' })
})

test('a report with a corrected text is accepted after its first answer was lost', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Rude.', { who: w.service.bob })
  const { page } = await w.open(t, { record, who: w.service.ada })
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
