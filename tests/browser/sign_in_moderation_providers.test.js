import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { GitHub } from './github.js'
import { isAccessible, LOOKS, moderatorsPage } from './moderators_page.js'
import { button, chooseName, decide, failure, people, signInWithGitHub, withGitHub } from './sign_in.js'
import { newRecord, stickingOut, world } from './world.js'

const github = new GitHub()
await github.start()
after(() => github.stop())
const settings = { ...github.settings, SVC_SIGN_IN: 'github,email', SVC_MODERATORS: 'github:7', SVC_REQUIRE_APPROVAL: 'true' }
const w = world(settings, ['--sign-in'])
const alone = world({ ...settings, SVC_SIGN_IN: 'github' }, ['--sign-in'])
const { kept } = people(w)

/** @typedef {import('playwright-core').Page} Page */

const MODERATOR = 7
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }

/** Returns the label of the focused field, or the text of the focused button. @param {Page} page */
const focused = (page) =>
  page.evaluate(() => {
    const element = document.querySelector('comment-moderation')?.shadowRoot?.activeElement
    return element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : element?.textContent
  })

let accounts = 100
/**
 * Opens the moderators' page for a visitor with this account at GitHub, by default a new one.
 * @param {import('node:test').TestContext} t
 * @param {{ id?: number, of?: typeof w, hash?: string } & Record<string, any>} [options]
 */
async function open(t, { id = (accounts += 1), of = w, hash = '', ...options } = {}) {
  github.user = { id, login: `octo-${id}`, avatar_url: '' }
  const opened = await moderatorsPage(of).open(t, options)
  if (hash) {
    await opened.page.goto('about:blank')
    await opened.page.goto(`${of.service.api}/moderate${hash}`)
  }
  return opened
}

/** Whether the form is no wider than its panel. @param {Page} page */
const fits = (page) =>
  page.locator('.card-like').evaluate((panel) => {
    const { left, right } = panel.getBoundingClientRect()
    return [...panel.querySelectorAll('form *')].map((element) => element.getBoundingClientRect()).every((inner) => !inner.width || (inner.left >= left && inner.right <= right))
  })

test('a moderator signs in with GitHub on a phone, and the address keeps the comment that it names and no code', async (t) => {
  const { id } = await w.service.comment(newRecord(), 'To be approved.')
  const { page, sent } = await open(t, { id: MODERATOR, context: PHONE, hash: `#comment-${id}` })
  await withGitHub(page).waitFor()
  assert.deepEqual(await stickingOut(page), [])
  await signInWithGitHub(page)
  const name = page.getByLabel('Your public name')
  await name.waitFor()
  assert.equal(await name.inputValue(), `octo-${MODERATOR}`)
  assert.equal(await focused(page), 'Your public name')
  assert.equal(page.url(), `${w.service.api}/moderate#comment-${id}`)
  await name.fill('Olga')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').or(page.getByRole('complementary')).getByText('To be approved.').waitFor()
  const [, finish] = sent.filter(({ path }) => /^sign_in/.test(path))
  assert.match(finish.body.verifier, /^[\w-]{43}$/)
  assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), '{}')
  const text = JSON.stringify(await kept(page))
  assert.ok(!text.includes(finish.body.code) && !text.includes('github:'))
  await page.reload()
  await page.getByRole('tab', { name: 'All' }).waitFor()
  assert.equal(sent.filter(({ path }) => path === 'sign_in/finish').length, 1)
})

test('a user who isn’t a moderator sees the account to name in the settings', async (t) => {
  const { page } = await open(t, { id: 583_231 })
  await signInWithGitHub(page)
  await chooseName(page, 'Sam')
  const refusal = page.getByRole('alert').filter({ hasText: "You're not a moderator" })
  await refusal.getByText('SVC_MODERATORS').waitFor()
  await refusal.getByText('github:583231', { exact: true }).waitFor()
  await refusal.getByText(`${(await kept(page)).user.id}`, { exact: true }).waitFor()
})

test('users see their account without choosing a name', async (t) => {
  const { page } = await open(t, { id: 583_232 })
  await signInWithGitHub(page)
  await page.getByLabel('Your public name').waitFor()
  await button(page, 'Cancel').click()
  await page.getByText('github:583232', { exact: true }).first().waitFor()
})

test('a user who returns without an account sees the reason, and tries again', async (t) => {
  t.after(() => (github.isDown = false))
  const { page } = await open(t)
  await withGitHub(page).click()
  await decide(page, 'Cancel')
  await failure(page).waitFor()
  assert.equal(await focused(page), 'Sign in with GitHub')
  assert.equal(page.url(), `${w.service.api}/moderate`)
  github.isDown = true
  await signInWithGitHub(page)
  await failure(page).waitFor()
  github.isDown = false
  await signInWithGitHub(page)
  await page.getByLabel('Your public name').waitFor()
})

test('the page sends no request while the code is in the address', async (t) => {
  const { page } = await open(t)
  await page.addInitScript(() => {
    const { fetch } = globalThis
    globalThis.fetch = (what, options) => {
      Object.assign(globalThis, { hashes: [...(/** @type {any} */ (globalThis).hashes ?? []), location.hash] })
      return fetch(what, options)
    }
  })
  await signInWithGitHub(page)
  await page.getByLabel('Your public name').waitFor()
  const hashes = await page.evaluate(() => /** @type {any} */ (globalThis).hashes)
  assert.ok(hashes.length >= 2 && hashes.every((/** @type {string} */ hash) => hash === ''), `${hashes}`)
})

test('a single sign-in method is the only one offered, besides a token', async (t) => {
  const { page } = await open(t, { of: alone })
  await withGitHub(page).waitFor()
  assert.equal(await focused(page), 'Sign in with GitHub')
  assert.equal(await page.getByLabel('Your e-mail address').count(), 0)
  await page.locator('summary').click()
  await page.getByLabel('Moderator token').waitFor()
})

test('without cryptography, a token is the only sign-in method left', async (t) => {
  const init = 'Object.defineProperty(crypto, "subtle", { value: undefined })'
  const { page } = await open(t, { of: alone, prepare: (/** @type {Page} */ page) => page.addInitScript(init) })
  await page.getByLabel('Moderator token').waitFor()
  assert.equal(await withGitHub(page).count(), 0)
})

test('a provider that cannot be reached leaves the visitor where they are', async (t) => {
  const { page } = await open(t)
  await page.route(/\/sign_in$/, (route) => route.fulfill({ status: 503, json: { message: '', code: 'unavailable', errors: {} } }))
  await withGitHub(page).click()
  await page.getByRole('alert').getByText(/./).waitFor()
  await page.unroute(/\/sign_in$/)
  await page.getByLabel('Your e-mail address').fill('ada@example.org')
  await withGitHub(page).click()
  await page.getByRole('link', { name: 'Authorize' }).waitFor()
})

for (const locale of ['en-GB', 'de-DE', 'ar-EG']) {
  test(`axe finds nothing on the way to GitHub and back, in ${locale}`, async (t) => {
    for (const look of LOOKS) {
      const { page } = await open(t, { context: { ...look, locale } })
      const way = page.locator('form button', { hasText: 'GitHub' })
      await way.waitFor()
      await isAccessible(page, `the ways in ${locale}`)
      assert.ok(await fits(page), locale)
      await way.click()
      await decide(page, 'Cancel')
      await page.locator('[role=alert]').getByText(/./).first().waitFor()
      await isAccessible(page, `the failure in ${locale}`)
      await way.click()
      await decide(page)
      await page.locator('[autocomplete=name]').waitFor()
      await isAccessible(page, `the name in ${locale}`)
    }
  })
}
