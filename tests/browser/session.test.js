import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, choose, composer, newRecord, PIXEL, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })

/** @typedef {import('playwright-core').Page} Page */
const ended = (/** @type {Page} */ page) => page.locator('[part~=notice]').getByText('Your session has ended')
const REFUSAL = { status: 401, headers: { 'access-control-allow-origin': '*' }, json: { message: 'No.', code: 'unauthenticated', errors: {} } }

/** Refuses the tokens of matching requests, and records the tokens. @param {Page} page @param {RegExp} pattern */
async function refuse(page, pattern) {
  /** @type {(string | undefined)[]} */
  const sent = []
  await page.route(pattern, async (route) => {
    sent.push((await route.request().allHeaders()).authorization)
    await route.fulfill(REFUSAL)
  })
  return sent
}

test('after a search of names was refused a comment is not sent as a guest’s: a notice says that the session ended, and the text stays', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const searched = await refuse(page, /\/users\?/)
  const posted = await refuse(page, /\/comments$/)
  await composer(page).focus()
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  const refused = page.waitForResponse(/\/users\?/)
  await page.keyboard.type('Hello @bo')
  await (await refused).finished()
  await page.keyboard.type(' there')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await ended(page).waitFor()
  assert.deepEqual(searched, [`Bearer ${w.service.ada}`])
  assert.deepEqual(posted, [])
  assert.equal(await composer(page).inputValue(), 'Hello @bo there')
  await composer(page).focus()
  await page.getByLabel('Your name').waitFor()
})

test('a like that is refused is taken back and shows that the session ended, and the next one is a guest’s', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', by: w.service.bob, who: w.service.ada })
  const like = article(page, id).getByRole('button', { name: 'Like' })
  await refuse(page, /\/like$/)
  await like.click()
  await ended(page).waitFor()
  assert.equal(await like.getAttribute('aria-pressed'), 'false')
  assert.equal(await page.locator('.toast.error').count(), 0)
  await page.unroute(/\/like$/)
  await like.click()
  await article(page, id).getByRole('button', { name: 'Like 1' }).waitFor()
})

/** @type {Record<string, (page: Page, id: number) => Promise<any>>} */
const ACTS = {
  Delete: async (page, id) => {
    await choose(page, id, 'Delete')
    await article(page, id).getByRole('button', { name: 'Delete' }).click()
  },
  Pin: (page, id) => choose(page, id, 'Pin'),
  Reject: (page, id) => choose(page, id, 'Reject'),
}
for (const [name, act] of Object.entries(ACTS)) {
  test(`${name}: a refusal shows that the session ended, and the comment stays`, async (t) => {
    const { page, id } = await w.open(t, { comment: 'Hello.', by: w.service.moderator, who: w.service.moderator })
    await refuse(page, /\/comments\/\d+(\/\w+)?$/)
    await act(page, id)
    await ended(page).waitFor()
    await article(page, id).getByText('Hello.').waitFor()
  })
}

test('a report that is refused keeps its text until its dialog is closed, which shows the session’s end', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', by: w.service.bob, who: w.service.ada })
  const sent = await refuse(page, /\/report$/)
  await choose(page, id, 'Report')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox').fill('It is copied.')
  for (const _ of [1, 2]) {
    await dialog.getByRole('button', { name: 'Report' }).click()
    await dialog.getByRole('alert').getByText('Your session has ended').waitFor()
  }
  assert.equal(await dialog.getByRole('textbox').inputValue(), 'It is copied.')
  assert.deepEqual(sent, [`Bearer ${w.service.ada}`], 'it is not sent as a guest’s')
  await page.keyboard.press('Escape')
  await ended(page).waitFor()
})

test('an image that is refused shows that the session ended, and the text stays', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const sent = await refuse(page, /\/media$/)
  await composer(page).fill('Look.')
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: 'Upload an image' }).click()
  await (await chooser).setFiles({ name: 'cat.png', mimeType: 'image/png', buffer: PIXEL })
  await ended(page).waitFor()
  assert.equal(await composer(page).inputValue(), 'Look.')
  assert.deepEqual(sent, [`Bearer ${w.service.ada}`])
})
