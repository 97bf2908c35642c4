import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { GitHub } from './github.js'
import { isAccessible, LOOKS } from './moderators_page.js'
import { askForCode, blockThirdParties, button, chooseName, decide, failure, focused, people, signInWithGitHub, withGitHub } from './sign_in.js'
import { composer, hold, isVisitor, newRecord, stickingOut, world } from './world.js'

const github = new GitHub()
await github.start()
after(() => github.stop())

const w = world({ ...github.settings, SVC_SIGN_IN: 'github,email' }, ['--sign-in'])
const alone = world({ ...github.settings, SVC_SIGN_IN: 'github', SVC_PAGE_URL: 'https://example.org/{type}/{id}', SVC_ALLOW_GUESTS: 'true' }, ['--sign-in'])
const { kept, prove } = people(w)

/** @typedef {import('playwright-core').Page} Page */

/** Each test has a separate account at GitHub. */
let accounts = 100

/** Opens a thread for a visitor with a new account at GitHub. @param {import('node:test').TestContext} t @param {Partial<Parameters<typeof w.open>[1]> & { of?: typeof w }} [options] */
function open(t, { of = w, ...options } = {}) {
  accounts += 1
  github.user = { id: accounts, login: `octo-${accounts}`, avatar_url: '' }
  return of.open(t, { record: newRecord(), ...options })
}

test('a first comment takes two presses and a name, from another site and without storage of third parties, and a second visit none', async (t) => {
  const policy = `default-src 'none'; script-src ${w.service.api}/; connect-src ${w.service.api}/`
  const { page, context, errors } = await open(t, { prepare: blockThirdParties, headers: { 'content-security-policy': policy }, hash: '#end' })
  const address = page.url()
  await composer(page).fill('Who would have thought?')
  await button(page, 'Post comment').click()
  await focused(withGitHub(page))
  await signInWithGitHub(page)
  const name = page.getByLabel('Your public name')
  await focused(name)
  assert.equal(await name.inputValue(), `octo-${accounts}`)
  assert.equal(page.url(), address, 'the page has its fragment again')
  assert.equal(await composer(page).inputValue(), 'Who would have thought?')
  await name.fill('Zoë')
  await page.keyboard.press('Enter')
  await page.locator('article').filter({ hasText: 'Zoë' }).getByText('Who would have thought?').waitFor()
  assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), '{}')
  assert.deepEqual(await context.cookies(), [])
  await page.reload()
  await composer(page).fill('Again.')
  await button(page, 'Post comment').click()
  await page.locator('article').filter({ hasText: 'Zoë' }).getByText('Again.').waitFor()
  assert.deepEqual(errors, [])
})

test('a member with a name continues with the draft, which is posted if it was waiting', async (t) => {
  const { page } = await open(t)
  await button(page, 'Sign in').click()
  await signInWithGitHub(page)
  await chooseName(page, 'Olga')
  await focused(button(page, 'Olga'))
  assert.equal(await page.locator('.composer.open').count(), 0)
  await page.evaluate(() => localStorage.clear())
  await page.reload()
  await composer(page).fill('A draft.')
  await button(page, 'Sign in').click()
  await signInWithGitHub(page)
  await focused(composer(page))
  await page.getByText('Posting as Olga').waitFor()
  assert.equal(await composer(page).inputValue(), 'A draft.')
  assert.equal(await page.locator('article').count(), 0, 'nobody has sent it')
  await page.evaluate(() => localStorage.clear())
  await page.reload()
  await composer(page).fill('A comment.')
  await button(page, 'Post comment').click()
  await signInWithGitHub(page)
  await page.locator('article').filter({ hasText: 'Olga' }).getByText('A comment.').waitFor()
  assert.equal(await composer(page).inputValue(), '')
})

test('the suggested name is never forced', async (t) => {
  const { page } = await open(t)
  await composer(page).fill('A draft.')
  await button(page, 'Sign in').click()
  await signInWithGitHub(page)
  await focused(page.getByLabel('Your public name'))
  await page.keyboard.press('Escape')
  await page.getByLabel('Your public name').waitFor({ state: 'detached' })
  assert.equal((await kept(page)).user.name, null)
  assert.equal(await composer(page).inputValue(), 'A draft.')
})

test('a visitor who replies to a comment comes back to it', async (t) => {
  const { page, id } = await open(t, { comment: 'First.' })
  await page.locator(`#comment-${id}`).getByRole('button', { name: 'Reply' }).click()
  await page.locator(`#comment-${id}`).getByRole('button', { name: 'Sign in with GitHub' }).click()
  await decide(page)
  await page.locator(`#comment-${id}`).getByLabel('Your public name').fill('Answerer')
  await page.keyboard.press('Enter')
  const answer = page.locator(`#comment-${id}`).getByPlaceholder('Write a reply…')
  await focused(answer)
  await answer.fill('Second.')
  await page.keyboard.press('Control+Enter')
  await page.locator('article article').filter({ hasText: 'Answerer' }).getByText('Second.').waitFor()
})

test('a guest’s reply is there again after a failure, and with its member after a sign-in', async (t) => {
  const { page, id } = await open(t, { of: alone, comment: 'First.' })
  const form = page.locator(`#comment-${id}`)
  await form.getByRole('button', { name: 'Reply' }).click()
  await form.getByPlaceholder('Write a reply…').fill('Second.')
  await button(page, 'Sign in').click()
  await withGitHub(page).click()
  await decide(page, 'Cancel')
  await failure(page).waitFor()
  assert.equal(await form.getByPlaceholder('Write a reply…').inputValue(), 'Second.')
  await signInWithGitHub(page)
  await chooseName(page, 'Answerer')
  await form.getByText('Posting as Answerer').waitFor()
  assert.equal(await form.getByPlaceholder('Write a reply…').inputValue(), 'Second.')
})

/** Faults that keep a visitor from returning with an account. @type {Record<string, (page: Page) => Promise<any>>} */
const FAULTS = {
  'who refuses': (page) => decide(page, 'Cancel'),
  'a provider that fails': async (page) => {
    github.isDown = true
    await decide(page)
  },
  'a code that was used': async (page) => {
    await page.route(/sign_in\/finish$/, async (route) => {
      await route.fetch()
      await route.fallback()
    })
    await decide(page)
  },
}

for (const [fault, happen] of Object.entries(FAULTS)) {
  test(`${fault} brings the visitor back with the draft and a sentence, and the next try posts it`, async (t) => {
    t.after(() => (github.isDown = false))
    const { page } = await open(t)
    const address = page.url()
    await composer(page).fill('Kept.')
    await button(page, 'Post comment').click()
    await withGitHub(page).click()
    await happen(page)
    await failure(page).waitFor()
    await focused(withGitHub(page))
    assert.equal(await composer(page).inputValue(), 'Kept.')
    assert.equal(page.url(), address)
    assert.equal(await kept(page), null)
    await page.unrouteAll()
    github.isDown = false
    await signInWithGitHub(page)
    await chooseName(page, 'Nina')
    await page.locator('article').filter({ hasText: 'Nina' }).getByText('Kept.').waitFor()
  })
}

test('a flow that another tab has started signs no one in', async (t) => {
  const { page, context } = await open(t)
  await button(page, 'Sign in').click()
  await withGitHub(page).click()
  const stolen = await page.getByRole('link', { name: 'Authorize' }).evaluate((link) => /** @type {HTMLAnchorElement} */ (link).href)
  const other = await context.newPage()
  /** @type {string[]} */
  const asked = []
  other.on('request', (request) => asked.push(request.url()))
  await other.goto(stolen)
  await failure(other).waitFor()
  assert.equal(new URL(other.url()).hash, '')
  assert.ok(!asked.some((url) => url.endsWith('sign_in/finish')))
  assert.equal(await kept(other), null)
})

test('nothing of the page’s but the module sees the code: it leaves the address before the first request and event', async (t) => {
  const init = `for (const name of ['comment-ready', 'comment-sign-in']) addEventListener(name, () => (window.hashes ??= []).push(location.hash))
    const { fetch } = window
    window.fetch = (...values) => ((window.hashes ??= []).push(location.hash), fetch(...values))`
  const { page } = await open(t, { init })
  await button(page, 'Sign in').click()
  await signInWithGitHub(page)
  await focused(page.getByLabel('Your public name'))
  const hashes = await page.evaluate(() => /** @type {any} */ (window).hashes)
  assert.ok(hashes.length >= 3 && hashes.every((/** @type {string} */ hash) => hash === ''), `${hashes}`)
})

test('a thread far below loads at once, and the one of two threads that was left continues', async (t) => {
  const records = [newRecord(), newRecord()]
  const html = `<div style="height: 9000px"></div>${records.map((record) => `<comment-thread type="posts" record="${record}"></comment-thread>`).join('')}`
  const { page } = await open(t, { html, ready: false })
  const [first, second] = [page.locator('comment-thread').first(), page.locator('comment-thread').last()]
  await second.scrollIntoViewIfNeeded()
  await second.getByPlaceholder('Write a comment…').fill('Below.')
  await second.getByRole('button', { name: 'Post comment' }).click()
  await second.getByRole('button', { name: 'Sign in with GitHub' }).click()
  await decide(page)
  await chooseName(page, 'Deep', second)
  await second.locator('article').filter({ hasText: 'Deep' }).getByText('Below.').waitFor()
  assert.equal(await first.getByRole('form', { name: 'Sign in' }).count(), 0)
})

test('without codes there is no field for an address, and a guest’s post waits for the sign-in', async (t) => {
  const { page } = await open(t, { of: alone })
  await composer(page).fill('Which name?')
  await page.getByLabel('Your name').waitFor()
  await button(page, 'Sign in').click()
  await focused(withGitHub(page))
  assert.equal(await page.getByLabel('Your e-mail address').filter({ visible: true }).count(), 0)
  await button(page, 'Post comment').click()
  await focused(withGitHub(page))
  await signInWithGitHub(page)
  await chooseName(page, 'Witch')
  await page.locator('article').filter({ hasText: 'Witch' }).getByText('Which name?').waitFor()
})

test('a code still works beside a provider', async (t) => {
  const { page } = await open(t)
  await askForCode(page, 'beside@example.org')
  await prove(page, 'beside@example.org', 'Beside')
  await focused(button(page, 'Beside'))
})

const CANNOT = {
  'no cryptography': 'Object.defineProperty(crypto, "subtle", { value: undefined })',
  'no storage of the tab': 'Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("no", "SecurityError") } })',
}

for (const [lack, init] of Object.entries(CANNOT)) {
  test(`where the page has ${lack}, no provider is offered, and a press still says something`, async (t) => {
    const { page } = await open(t, { init })
    await button(page, 'Sign in').click()
    await focused(page.getByLabel('Your e-mail address'))
    assert.equal(await withGitHub(page).count(), 0)
    const { page: without } = await open(t, { of: alone, init })
    await button(without, 'Sign in').click()
    await without.getByRole('status').getByText('Sign in to comment').waitFor()
  })
}

test('in a frame no provider is offered', async (t) => {
  const inside = w.add({ html: `<comment-thread type="posts" record="${newRecord()}"></comment-thread>` })
  const { page } = await open(t, { record: undefined, html: `<iframe src="${inside}" width="600" height="600"></iframe>` })
  const frame = page.frameLocator('iframe')
  await frame.getByRole('button', { name: 'Sign in', exact: true }).click()
  await frame.getByLabel('Your e-mail address').waitFor()
  assert.equal(await frame.getByRole('button', { name: 'Sign in with GitHub' }).count(), 0)
})

test('a provider that cannot be reached leaves the visitor and the draft where they are', async (t) => {
  const { page } = await open(t)
  await page.route(/\/sign_in$/, (route) => route.fulfill({ status: 503, headers: { 'access-control-allow-origin': '*' }, json: { message: '', code: 'unavailable', errors: {} } }))
  await composer(page).fill('Kept.')
  await button(page, 'Post comment').click()
  await withGitHub(page).click()
  await page.getByRole('form', { name: 'Sign in' }).getByRole('alert').getByText(/./).waitFor()
  assert.equal(await composer(page).inputValue(), 'Kept.')
  await page.unroute(/\/sign_in$/)
  await withGitHub(page).click()
  await page.getByRole('link', { name: 'Authorize' }).waitFor()
})

test('a page that has set `auth` ignores a returned code', async (t) => {
  const { page, url } = await open(t, { who: w.service.ada })
  /** @type {string[]} */
  const asked = []
  page.on('request', (request) => asked.push(request.url()))
  await page.evaluate((key) => (sessionStorage[key] = JSON.stringify({ verifier: 'x', hash: '' })), 'comment-thread flow')
  await page.goto('about:blank')
  await page.goto(`${url}#comment-sign-in=flow.code`)
  await page.locator('comment-thread h2').waitFor()
  await isVisitor(page, 'Ada')
  assert.equal(page.url(), url)
  assert.ok(!asked.some((url) => url.endsWith('sign_in/finish')))
})

test('a visitor signs in with GitHub by keyboard alone', async (t) => {
  const { page } = await open(t)
  await button(page, 'Sign in').focus()
  await page.keyboard.press('Enter')
  await focused(withGitHub(page))
  await page.keyboard.press('Escape')
  await focused(button(page, 'Sign in'))
  await page.keyboard.press('Enter')
  await focused(withGitHub(page))
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Authorize' }).press('Enter')
  await focused(page.getByLabel('Your public name'))
  await page.keyboard.press('Enter')
  await focused(button(page, `octo-${accounts}`))
})

test('nothing that was returned is lost while the writer is loading', async (t) => {
  const { page } = await open(t)
  await composer(page).fill('Kept.')
  await button(page, 'Post comment').click()
  await withGitHub(page).click()
  const release = await hold(page, /\/embed\/writer\.\w+\.js/)
  await decide(page)
  await page.locator('comment-thread h2').waitFor()
  assert.equal(new URL(page.url()).hash, '')
  release()
  await focused(page.getByLabel('Your public name'))
  assert.equal(await composer(page).inputValue(), 'Kept.')
})

for (const [lang, dir] of [['en', 'ltr'], ['de', 'ltr'], ['ar', 'rtl']]) {
  test(`axe finds nothing on the way to GitHub and back, and nothing sticks out, in ${lang}`, async (t) => {
    for (const context of LOOKS) {
      const { page } = await open(t, { lang, dir, context })
      await page.locator('.top button').last().click()
      const way = page.locator('.sign-in button', { hasText: 'GitHub' })
      await way.waitFor()
      await isAccessible(page, `the ways in ${lang}`)
      await way.click()
      await decide(page, 'Cancel')
      await page.locator('.sign-in [role=alert]').getByText(/./).waitFor()
      await isAccessible(page, `the failure in ${lang}`)
      await way.click()
      await decide(page)
      await page.locator('.sign-in [autocomplete=name]').waitFor()
      await isAccessible(page, `the name in ${lang}`)
      assert.deepEqual(await stickingOut(page), [])
    }
  })
}
