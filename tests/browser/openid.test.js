/** Sign-in with a certified OpenID provider, `oidc-provider`, through the provider's own pages, and its failures. */

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { moderatorsPage } from './moderators_page.js'
import { failure } from './sign_in.js'
import { LocalServer, world } from './world.js'

/** @typedef {import('playwright-core').Page} Page */

// The package has no types.
const { Provider } = await import(/** @type {string} */ ('oidc-provider'))

const CLIENT = { client_id: 'comments', client_secret: 'only for tests: % + and a space' }

class OpenId extends LocalServer {
  /** Whether the provider fails once the reader has been sent back. */
  isDown = false
  /** @type {any} */
  #handler

  /** @override @type {LocalServer['respond']} */
  respond(request, response) {
    if (this.isDown && request.url === '/token') return response.writeHead(503).end()
    this.#handler ??= this.#provider()
    this.#handler(request, response)
  }

  /** Creates a provider whose users have names that contain their logins. */
  #provider() {
    const redirect_uris = [w, another].map(({ service }) => `${service.api}/sign_in/callback/oidc`)
    const claims = (/** @type {string} */ sub) => ({ sub, name: `${sub} of the company` })
    const provider = new Provider(`${this.url}`, {
      clients: [{ ...CLIENT, redirect_uris, response_types: ['code'], grant_types: ['authorization_code'] }],
      claims: { openid: ['sub'], profile: ['name'] },
      findAccount: (/** @type {any} */ _, /** @type {string} */ accountId) => ({ accountId, claims: () => claims(accountId) }),
    })
    return provider.callback()
  }

  get settings() {
    return {
      SVC_SIGN_IN: 'oidc',
      SVC_OIDC_ISSUER: `${this.url}`,
      SVC_OIDC_NAME: 'Company',
      SVC_OIDC_CLIENT_ID: CLIENT.client_id,
      SVC_OIDC_CLIENT_SECRET: CLIENT.client_secret,
      SVC_MODERATORS: 'oidc:grace',
    }
  }
}

const openid = new OpenId()
await openid.start()
after(() => openid.stop())
const w = world(openid.settings, ['--sign-in'])
const another = world({ ...openid.settings, SVC_OIDC_CLIENT_SECRET: 'another one' }, ['--sign-in'])

/** Presses the button that leads to the provider. @param {Page} page */
const leave = (page) => page.getByRole('button', { name: 'Sign in with Company', exact: true }).click()

/** @param {Page} page @param {string} login */
async function logIn(page, login) {
  await page.locator('[name=login]').fill(login)
  await page.locator('[name=password]').fill('anything')
  await page.locator('[type=submit]').click()
  await page.getByRole('button', { name: 'Continue' }).waitFor()
}

/** @param {Page} page */
const consent = (page) => page.getByRole('button', { name: 'Continue' }).click()

test('a moderator signs in through the login and the consent of a certified provider', async (t) => {
  const { page } = await moderatorsPage(w).open(t, {})
  await leave(page)
  await logIn(page, 'grace')
  await consent(page)
  const name = page.getByLabel('Your public name')
  await name.waitFor()
  assert.equal(await name.inputValue(), 'grace of the company')
  assert.equal(page.url(), `${w.service.api}/moderate`)
  await page.keyboard.press('Enter')
  await page.getByRole('tab', { name: 'All' }).waitFor()
})

test('a reader who denies the consent, or meets a provider that is down, comes back and tries again', async (t) => {
  t.after(() => (openid.isDown = false))
  const { page } = await moderatorsPage(w).open(t, {})
  await leave(page)
  await logIn(page, 'ada')
  await page.getByRole('link', { name: 'Cancel' }).click()
  await failure(page).waitFor()
  openid.isDown = true
  await leave(page)
  await consent(page)
  await failure(page).waitFor()
  openid.isDown = false
  await leave(page)
  await page.getByLabel('Your public name').waitFor()
  await page.keyboard.press('Enter')
  await page.getByText('oidc:ada', { exact: true }).waitFor()
})

test('a wrong client secret brings the reader back', async (t) => {
  const { page } = await moderatorsPage(another).open(t, {})
  await leave(page)
  await logIn(page, 'ada')
  await consent(page)
  await failure(page).waitFor()
})
