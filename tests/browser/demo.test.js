import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from './moderators_page.js'
import { chooseName } from './sign_in.js'
import { isVisitor, rebuilding, Service, violations, world } from './world.js'

const w = world()

/**
 * Opens the page at `/` of a service.
 * @param {import('node:test').TestContext} t @param {Service} service @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function visit(t, service, options) {
  const context = await w.browser.newContext({ viewport: { width: 900, height: 900 }, ...options })
  t.after(() => context.close())
  // No request leaves this machine.
  await context.route(/^https:/, (route) => route.abort())
  const page = await context.newPage()
  /** @type {string[]} */
  const refused = []
  page.on('response', (response) => response.status() >= 400 && refused.push(response.url()))
  await page.goto(new URL('/', service.api).href)
  await page.locator('comment-thread').scrollIntoViewIfNeeded()
  await page.locator('comment-thread article').first().waitFor()
  return { page, refused }
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`axe finds nothing in ${colorScheme} colors, and nothing is wider than a phone`, async (t) => {
    const { page, refused } = await visit(t, w.service, { colorScheme, viewport: { width: 320, height: 800 } })
    assert.deepEqual(await violations(page, 'html', {}), [])
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320)
    assert.deepEqual(refused, [])
  })
}

test('the visitor can be Ada, the moderator, or a guest who reads', async (t) => {
  const { page } = await visit(t, w.service)
  await page.getByPlaceholder('Write a comment…').fill('From the demonstration.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('comment-thread article').filter({ hasText: 'From the demonstration.' }).waitFor()
  await rebuilding(page, () => page.getByRole('radio', { name: 'Grace' }).check())
  await isVisitor(page, 'Grace')
  await page.getByRole('radio', { name: 'Guest' }).check()
  await page.getByText('Guests can only read here.').waitFor()
  await page.getByRole('button', { name: 'Sign in to comment' }).click()
  await page.getByPlaceholder('Write a comment…').waitFor()
  assert.ok(await page.getByRole('radio', { name: 'Ada' }).isChecked())
  assert.match((await page.getByRole('link', { name: 'Moderate' }).getAttribute('href')) ?? '', /\/svc\/api\/v1\/moderate#token=ey/)
})

test('where readers sign in with a code, a guest can do so', async (t) => {
  const service = await Service.start({}, ['--sign-in'])
  t.after(() => service.stop())
  const { page } = await visit(t, service)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByLabel('Your e-mail address').fill('demo@example.org')
  await page.keyboard.press('Enter')
  await page.getByLabel('Code from the email').waitFor()
  const mails = async () => (await fetch(new URL('/_mail', service.api))).text()
  const code = /\b\d{8}\b/
  await page.getByLabel('Code from the email').fill((await until(mails, (text) => code.test(text))).match(code)?.[0] ?? '')
  await page.keyboard.press('Enter')
  await chooseName(page, 'Demi')
  await page.getByRole('button', { name: 'Demi', exact: true }).waitFor()
  await isVisitor(page, 'Demi')
  await rebuilding(page, () => page.getByRole('radio', { name: 'Grace' }).check())
  await isVisitor(page, 'Grace')
  const loaded = page.waitForEvent('load')
  await page.getByRole('radio', { name: 'Guest' }).click()
  await loaded
  await page.locator('comment-thread').scrollIntoViewIfNeeded()
  await isVisitor(page, 'Demi')
})

test('where guests may write, visitors of the page are guests', async (t) => {
  const service = await Service.start({ SVC_ALLOW_GUESTS: 'true' })
  t.after(() => service.stop())
  const { page } = await visit(t, service)
  assert.ok(await page.getByRole('radio', { name: 'Guest' }).isChecked())
  await page.getByPlaceholder('Write a comment…').waitFor()
  assert.equal(await page.getByText('Guests can only read here.').count(), 0)
})
