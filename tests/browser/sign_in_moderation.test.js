import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { card, isAccessible, LOOKS, moderatorsPage } from './moderators_page.js'
import { button, chooseName, people } from './sign_in.js'
import { newRecord, stickingOut, world } from './world.js'

const w = world({ SVC_MODERATORS: 'email:owner@example.org,email:keys@example.org', SVC_REQUIRE_APPROVAL: 'true' }, ['--sign-in'])
const { open } = moderatorsPage(w)
const { codeFor, session, keeping, kept } = people(w)

/** @typedef {import('playwright-core').Page} Page */

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }

/** @param {Page} page @param {string} email */
async function signIn(page, email) {
  await page.getByLabel('Your e-mail address').fill(email)
  await button(page, 'Sign in').first().click()
  const field = page.getByLabel('Code from the email')
  await field.waitFor()
  await field.fill(await codeFor(email))
  await page.keyboard.press('Enter')
}

test('an owner who is named by address moderates on a phone, and sees no token', async (t) => {
  await w.service.comment(newRecord(), 'To be approved.')
  const { page, sent } = await open(t, { context: PHONE })
  await signIn(page, 'owner@example.org')
  await chooseName(page, 'Olga')
  await card(page, 'To be approved.').getByRole('button', { name: 'Approve' }).click()
  await page.getByText('To be approved.').waitFor({ state: 'detached' })
  assert.deepEqual(await stickingOut(page), [])
  const text = await page.locator('comment-moderation').evaluate((element) => element.shadowRoot?.textContent ?? '')
  const { access_token, refresh_token } = await kept(page)
  assert.ok(!text.includes(access_token) && !text.includes(refresh_token))
  assert.equal(page.url(), `${w.service.api}/moderate`)
  await page.reload()
  await page.getByRole('tab', { name: 'All' }).waitFor()
  assert.equal(sent.filter(({ path }) => path === 'sign_in').length, 1, 'the session is kept')
  await button(page, 'Sign out').click()
  await page.getByLabel('Your e-mail address').waitFor()
  assert.equal(await kept(page), null)
  await signIn(page, 'owner@example.org')
  await page.getByRole('tab', { name: 'All' }).waitFor()
})

test('a user who isn’t a moderator sees which address and which id to name, and the address goes with the page', async (t) => {
  const { page } = await open(t, {})
  await signIn(page, 'stranger@example.org')
  await chooseName(page, 'Sam')
  const refusal = page.getByRole('alert').filter({ hasText: "You're not a moderator" })
  await refusal.getByText('SVC_MODERATORS').waitFor()
  await refusal.getByText('email:stranger@example.org', { exact: true }).waitFor()
  const { id } = (await kept(page)).user
  await refusal.getByText(`${id}`, { exact: true }).waitFor()
  await page.reload()
  await refusal.getByText(`${id}`, { exact: true }).waitFor()
  assert.equal(await refusal.getByText('email:').count(), 0)
  await button(page, 'Sign out').click()
  await page.getByLabel('Your e-mail address').waitFor()
})

test('a moderator chooses another name, and signs out everywhere', async (t) => {
  const [here, there] = [await session('owner@example.org', null), await session('owner@example.org', null)]
  const prepare = (/** @type {any} */ session) => (/** @type {Page} */ page) => page.addInitScript(keeping(session))
  const { page } = await open(t, { prepare: prepare(here) })
  const { page: other } = await open(t, { prepare: prepare(there) })
  await page.getByRole('tab', { name: 'All' }).waitFor()
  await other.getByRole('tab', { name: 'All' }).waitFor()
  await page.locator('.me').click()
  await page.getByRole('dialog').getByLabel('Your public name').fill('Olga O.')
  await button(page, 'Save').click()
  await page.locator('.me').getByText('Olga O.').waitFor()
  await page.locator('.me').click()
  await button(page, 'Sign out everywhere').click()
  await page.getByLabel('Your e-mail address').waitFor()
  await other.getByRole('tab', { name: 'All' }).click()
  await other.getByText('Your sign-in has expired').waitFor()
})

test('a list that is refused after the sign-out does not ask to sign in again', async (t) => {
  const one = await session('owner@example.org', null)
  const { page } = await open(t, { prepare: (page) => page.addInitScript(keeping(one)) })
  await page.getByRole('tab', { name: 'Rejected' }).waitFor()
  const leave = new EventTarget()
  const left = once(leave, 'left')
  await page.route(/state=rejected/, async (route) => {
    await left
    await route.fulfill({ status: 401, json: { message: '', code: 'unauthenticated', errors: {} } })
  })
  const asked = page.waitForRequest(/state=rejected/)
  await page.getByRole('tab', { name: 'Rejected' }).click()
  await asked
  await page.locator('.me').click()
  await button(page, 'Sign out everywhere').click()
  await page.getByLabel('Your e-mail address').waitFor()
  const refused = page.waitForResponse(/state=rejected/).then((response) => response.finished())
  leave.dispatchEvent(new Event('left'))
  await refused
  await page.evaluate(() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown))))
  assert.equal(await page.getByText('Your sign-in has expired').count(), 0)
})

test('an expired session is renewed in place by signing in, and a failing service ends none', async (t) => {
  const one = await session('owner@example.org', null)
  const failing = (/** @type {Page} */ page) => page.route(/sign_in\/refresh$/, (route) => route.fulfill({ status: 503, json: { message: '', code: 'server_error', errors: {} } }))
  const { page } = await open(t, {
    prepare: async (page) => {
      await page.addInitScript(keeping(one, -1))
      await failing(page)
    },
  })
  await button(page, 'Try again').waitFor()
  assert.equal((await kept(page)).refresh_token, one.refresh_token)
  await page.unroute(/sign_in\/refresh$/)
  await button(page, 'Try again').click()
  await page.getByRole('tab', { name: 'All' }).waitFor()
  await w.service.call('POST', 'sign_in/end', null, { refresh_token: (await kept(page)).refresh_token, everywhere: true })
  await page.reload()
  await page.getByText('This sign-in is invalid or has expired.').waitFor()
  await page.getByLabel('Your e-mail address').waitFor()
})

test('a token still signs in, and leaves no session behind', async (t) => {
  const { page } = await open(t, { who: w.service.moderator })
  await page.getByRole('tab', { name: 'All' }).waitFor()
  await button(page, 'Sign out').click()
  await page.locator('summary').click()
  await page.getByLabel('Moderator token').fill(`Bearer ${w.service.moderator}`)
  await page.keyboard.press('Enter')
  await page.getByRole('tab', { name: 'All' }).waitFor()
  assert.equal(await kept(page), null)
})

test('a moderator signs in by keyboard alone', async (t) => {
  const { page } = await open(t, { context: PHONE })
  await page.getByLabel('Your e-mail address').focus()
  await page.keyboard.type('keys@example.org')
  await page.keyboard.press('Enter')
  await page.getByLabel('Code from the email').waitFor()
  await page.keyboard.type(await codeFor('keys@example.org'))
  await page.keyboard.press('Enter')
  await page.getByLabel('Your public name').waitFor()
  await page.keyboard.type('Kay')
  await page.keyboard.press('Enter')
  await page.getByRole('tab', { name: 'All' }).waitFor()
  await button(page, 'Sign out').focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Your e-mail address').waitFor()
  assert.equal(await kept(page), null)
})

for (const locale of ['en-GB', 'de-DE', 'es-ES', 'fr-FR']) {
  test(`axe finds nothing on the way in, in ${locale}`, async (t) => {
    const stranger = await session(`axe-${locale}@example.org`.toLowerCase(), null)
    for (const look of LOOKS) {
      const { page } = await open(t, { context: { ...look, locale } })
      const form = page.locator('form').first()
      await form.waitFor()
      await isAccessible(page, `the address in ${locale}`)
      await page.route(/\/sign_in$/, (route) => route.fulfill({ status: 201, json: { data: { flow: 'x', expires_in: 600 } } }))
      await form.locator('input').fill('a.rather.long.name.of.somebody@mail.example.org')
      await page.keyboard.press('Enter')
      await page.locator('[autocomplete=one-time-code]').waitFor()
      await isAccessible(page, `the code in ${locale}`)
      const { page: refused } = await open(t, { context: { ...look, locale }, prepare: (page) => page.addInitScript(keeping(stranger)) })
      await refused.locator('code').waitFor()
      await isAccessible(refused, `the refusal in ${locale}`)
    }
  })
}
