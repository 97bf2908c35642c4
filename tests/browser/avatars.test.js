/** Avatars: the person's own picture if there is one, initials otherwise. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { moderatorsPage } from './moderators_page.js'
import { article, newRecord, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_REQUIRE_APPROVAL: 'false' })
const HASH = 'a'.repeat(64)
const BASE = 'https://www.gravatar.com/avatar/'

/** @typedef {import('playwright-core').Page} Page */

/**
 * Replaces all avatars in API responses and records the requests to Gravatar, which has no pictures here.
 * @param {string} avatar @param {string[]} asked
 */
const withAvatar = (avatar, asked) => async (/** @type {Page} */ page) => {
  await page.route(/gravatar/, (route) => {
    asked.push(route.request().url())
    return route.fulfill({ status: 404, body: '' })
  })
  await page.route(/\/svc\/api\/v1\/.*(comments|users|ui)\b/, async (route) => {
    if (route.request().resourceType() !== 'fetch') return route.fallback()
    try {
      const response = await route.fetch()
      await route.fulfill({ response, body: (await response.text()).replace(/"avatar":"[^"]*"/g, `"avatar":"${avatar}"`) })
    } catch {
      // The test ended before the response arrived.
    }
  })
}

/** @param {Page} page */
const letters = (page) => page.locator('article .avatar').allTextContents()

/** Gravatar addresses of generic pictures, as the service stores them. */
const GENERIC = ['', `${BASE}?d=mp`, 'https://www.gravatar.com/avatar?d=mp', 'https://secure.gravatar.com/avatar/?s=80&d=mp', 'http://gravatar.com/avatar/?d=mm&f=y',
  'https://www.gravatar.com:443/avatar/?d=mp', 'https://www.GRAVATAR.com/avatar/?d=mm', 'HTTPS://gravatar.com/./avatar?D=MP']
for (const avatar of GENERIC) {
  test(`a person with the picture “${avatar}” has initials, and nothing is requested`, async (t) => {
    /** @type {string[]} */
    const asked = []
    const { page } = await w.open(t, { comment: 'Hello.', by: token(90, 'Ada Lovelace'), who: token(91, 'Bob Ross'), prepare: withAvatar(avatar, asked) })
    await page.getByPlaceholder('Write a comment…').focus()
    await page.keyboard.type('@ada')
    await page.locator('[role=option]').waitFor()
    assert.deepEqual(await page.locator('.avatar').allTextContents(), ['BR', 'AL', 'AL'])
    assert.equal(await page.locator('img.avatar').count(), 0)
    assert.deepEqual(asked, [])
  })
}

for (const [avatar, address] of [
  [`${BASE}${HASH}?d=mp`, `${BASE}${HASH}?d=404`],
  [`${BASE}${HASH}?s=80&d=mp&r=g`, `${BASE}${HASH}?s=80&d=404&r=g`],
  [`https://secure.gravatar.com/avatar/${HASH}?default=mm`, `https://secure.gravatar.com/avatar/${HASH}?default=404`],
  [`https://Secure.Gravatar.com:443/avatar/${HASH}.jpg?d=MP`, `https://secure.gravatar.com/avatar/${HASH}.jpg?d=404`],
  [`${BASE}${HASH}?d=identicon`, `${BASE}${HASH}?d=identicon`],
]) {
  test(`the Gravatar ${avatar.slice(8).replace(HASH, 'HASH')} is requested as ${address.split('?')[1]}, and people without one have initials`, async (t) => {
    /** @type {string[]} */
    const asked = []
    const { page } = await w.open(t, { comment: 'Hello.', by: token(90, 'Ada Lovelace'), prepare: withAvatar(avatar, asked) })
    await page.locator('article span.avatar').waitFor()
    assert.deepEqual(await letters(page), ['AL'])
    assert.deepEqual(asked, [address])
  })
}

test('an existing Gravatar is shown, and so is any other picture', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello.', { who: token(92, 'Cem', { picture: 'https://example.org/avatar/?d=mp' }) })
  const guest = await w.service.comment(record, 'Hello.', { who: null })
  const { page } = await w.open(t, { record })
  const source = (/** @type {number} */ id) => article(page, id).locator('> img.avatar').getAttribute('src')
  assert.equal(await source(id), 'https://example.org/avatar/?d=mp')
  assert.match((await source(guest.id)) ?? '', /gravatar\.com\/avatar\/[0-9a-f]{64}\?d=404$/)
  await page.waitForFunction((id) => /** @type {HTMLImageElement} */ (document.querySelector('comment-thread')?.shadowRoot?.querySelector(`#comment-${id} img`))?.naturalWidth, guest.id)
})

test('initials are letters at the beginning of words, in scripts with marks too', async (t) => {
  const record = newRecord()
  const names = { 'प्रिया शर्मा': 'पश', 'प्रिया': 'प', 'Zoe\u0301s': 'Z', 'น้ำทิพย์': 'น' }
  for (const [place, name] of Object.keys(names).entries()) await w.service.comment(record, 'Hello.', { who: token(95 + place, name) })
  const { page } = await w.open(t, { record, attributes: 'sort="oldest"' })
  await page.locator('article').nth(3).waitFor()
  assert.deepEqual(await page.locator('article .avatar').allTextContents(), Object.values(names))
})

test('moderators see initials too, and no generic picture is requested', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'A word to report.', { who: token(93, 'Dora Maar') })
  /** @type {string[]} */
  const asked = []
  const prepare = withAvatar(`${BASE}?d=mp`, asked)
  const { page } = await moderatorsPage(w).open(t, { who: w.service.moderator, prepare })
  await page.getByRole('tab', { name: 'All' }).click()
  await page.locator('article', { hasText: 'A word to report.' }).waitFor()
  assert.ok((await letters(page)).includes('DM'))
  assert.deepEqual(asked, [])
})

test('a guest’s disc has the initials of the name as it is typed, and keeps them', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.' })
  const disc = page.locator('section > form .avatar')
  assert.equal(await disc.textContent(), '')
  await page.getByPlaceholder('Write a comment…').fill('From a guest.')
  await page.getByLabel('Your name').fill('Zoë Kravitz')
  assert.equal(await disc.textContent(), 'ZK')
  await page.getByLabel('Your name').fill('')
  assert.equal(await disc.textContent(), '')
  // A name sent by one composer is used in all composers.
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  const reply = article(page, id).locator('form')
  await reply.getByPlaceholder('Write a reply…').fill('A reply.')
  await reply.getByLabel('Your name').fill('Yara')
  await reply.getByLabel('Your e-mail address').fill('yara@example.org')
  assert.deepEqual([await reply.locator('.avatar').textContent(), await disc.textContent()], ['Y', ''])
  await reply.getByRole('button', { name: 'Reply' }).click()
  await page.locator('.replies article').waitFor()
  assert.equal(await disc.textContent(), 'Y')
})
