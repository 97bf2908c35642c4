import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAccessible, LOOKS } from './moderators_page.js'
import { askForCode, blockThirdParties, button, chooseName, elsewhere, focused, people, signInFor } from './sign_in.js'
import { composer, isVisitor, newRecord, rebuilding, stickingOut, world } from './world.js'

const w = world(signInFor)
const { codeFor, session, keeping, kept, expire, prove } = people(w)

/** @typedef {import('playwright-core').Page} Page */

const item = (/** @type {Page} */ page, /** @type {string} */ name) => page.getByRole('menuitem', { name, exact: true })

/** Chooses an item from the account menu. @param {Page} page @param {string} name @param {string} label */
async function choose(page, name, label) {
  await button(page, name).click()
  await item(page, label).click()
}

/** Records a page's requests to the service, except preflights. @param {Page} page */
function requests(page) {
  /** @type {string[]} */
  const sent = []
  page.on('request', (request) => {
    if (request.url().startsWith(w.service.api) && request.method() !== 'OPTIONS') sent.push(`${request.method()} ${request.url().slice(w.service.api.length + 1).split('?')[0]}`)
  })
  return sent
}

/** Returns the cookie that a frame of another site can store, empty if storage is blocked. @param {import('playwright-core').BrowserContext} context @param {boolean} blocked */
async function storedInAFrame(context, blocked) {
  const page = await context.newPage()
  if (blocked) await blockThirdParties(page)
  const frame = w.site.add("<script>document.cookie = 'third=party; SameSite=None; Secure'; parent.postMessage(document.cookie, '*')</script>")
  const host = w.site.add(`<script>answer = new Promise((resolve) => { onmessage = ({ data }) => resolve(data) })</script><iframe src="${frame}"></iframe>`)
  await page.goto(host.replace('127.0.0.1', 'localhost'))
  return page.evaluate('answer')
}

test('a stranger’s proven comment takes one press, an address, a code, a name, and no cookie, from another site and without storage of third parties', async (t) => {
  const record = newRecord()
  /** @type {string[]} */
  let sent = []
  const prepare = (/** @type {Page} */ page) => {
    sent = requests(page)
    return blockThirdParties(page)
  }
  const { page, context, errors } = await w.open(t, { record, host: 'localhost', prepare, headers: { 'content-security-policy': `default-src 'none'; script-src ${w.service.api}/; connect-src ${w.service.api}/` } })
  assert.equal(new URL(page.url()).origin, elsewhere(w.site))
  await composer(page).fill('Who would have thought?')
  await button(page, 'Post comment').click()
  await page.getByRole('form', { name: 'Sign in' }).getByLabel('Your e-mail address').fill('stranger@example.org')
  await page.keyboard.press('Enter')
  const field = page.getByLabel('Code from the email')
  await field.waitFor()
  assert.equal(await field.getAttribute('autocomplete'), 'one-time-code')
  assert.equal(await field.getAttribute('inputmode'), 'numeric')
  const code = await codeFor('stranger@example.org')
  await field.fill(`${code.slice(0, 4)} ${code.slice(4)}`)
  await page.keyboard.press('Enter')
  await chooseName(page, 'Zoë')
  const comment = page.locator('article').filter({ hasText: 'Zoë' })
  await comment.getByText('Who would have thought?').waitFor()
  await button(page, 'Zoë').waitFor()
  assert.equal(await composer(page).inputValue(), '')
  assert.deepEqual(sent.filter((request) => !request.startsWith('GET')), ['POST sign_in', 'POST sign_in/finish', 'PUT me/name', `POST posts/${record}/comments`])
  assert.deepEqual(await context.cookies(), [])
  assert.deepEqual(errors, [])
  assert.ok((await kept(page)).refresh_token)
  assert.deepEqual([await storedInAFrame(context, true), await storedInAFrame(context, false)], ['', 'third=party'], 'third parties were blocked')
})

test('a wrong code has a message at its field, another one can be sent, and the address can be corrected', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await composer(page).fill('Kept.')
  await askForCode(page, 'wrnog@example.org')
  await button(page, 'Cancel').last().click()
  const address = page.getByRole('form', { name: 'Sign in' }).getByLabel('Your e-mail address')
  assert.equal(await address.inputValue(), 'wrnog@example.org')
  await address.fill('wrong@example.org')
  await page.keyboard.press('Enter')
  const field = page.getByLabel('Code from the email')
  await field.waitFor()
  const code = await codeFor('wrong@example.org')
  await field.fill(`${(Number(code) + 1) % 100_000_000}`.padStart(8, '0'))
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('That code is invalid or has expired.').waitFor()
  assert.equal(await field.getAttribute('aria-invalid'), 'true')
  assert.match((await field.getAttribute('aria-describedby')) ?? '', /sign-in/)
  await button(page, 'Send another code').click()
  const other = await codeFor('wrong@example.org')
  await page.waitForFunction(() => !document.querySelector('comment-thread')?.shadowRoot?.querySelector('.sign-in .error')?.textContent)
  await field.fill(other)
  await page.keyboard.press('Enter')
  await chooseName(page, 'aaa')
  await focused(button(page, 'aaa'))
  assert.equal(await composer(page).inputValue(), 'Kept.', 'nobody has sent it')
})

test('too many requests have a message in place', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await page.route(/\/sign_in$/, (route) =>
    route.fulfill({ status: 429, headers: { 'access-control-allow-origin': '*' }, json: { message: 'Too many.', code: 'rate_limited', errors: {} } }),
  )
  await button(page, 'Sign in').click()
  await page.getByRole('form', { name: 'Sign in' }).getByLabel('Your e-mail address').fill('often@example.org')
  await page.keyboard.press('Enter')
  await page.getByRole('form', { name: 'Sign in' }).getByRole('alert').getByText(/./).waitFor()
})

test('a member without a name may read and like, and has to choose one before the first comment', async (t) => {
  const { page, id } = await w.open(t, { comment: 'First.', init: keeping(await session('unnamed@example.org', null)) })
  const like = page.locator(`#comment-${id}`).getByRole('button', { name: /^Like/ })
  await like.click()
  await page.waitForFunction((id) => document.querySelector('comment-thread')?.shadowRoot?.querySelector(`#comment-${id} .like`)?.ariaPressed === 'true', id)
  await composer(page).fill('Second.')
  await button(page, 'Post comment').click()
  await chooseName(page, 'Nomen')
  await page.locator('article').filter({ hasText: 'Nomen' }).getByText('Second.').waitFor()
})

test('another name is chosen beside the present one, once a day, with the composer closed', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), init: keeping(await session('rename@example.org', 'Ann')) })
  await button(page, 'Ann').click()
  await item(page, 'Change name').click()
  const name = page.getByLabel('Your public name', { exact: true })
  assert.equal(await name.inputValue(), 'Ann')
  await name.fill('Anne')
  await button(page, 'Save').click()
  await focused(button(page, 'Anne'))
  assert.equal(await page.locator('.composer.open').count(), 0)
  await button(page, 'Anne').click()
  const later = page.getByRole('menuitem', { name: /^Change name.*20\d\d/ })
  assert.equal(await later.getAttribute('aria-disabled'), 'true')
  await later.click({ force: true })
  assert.equal(await page.getByLabel('Your public name').count(), 0)
})

test('a session is used as it is, and refreshed once its token is over', async (t) => {
  const one = await session('refresh@example.org', 'Ada')
  const record = newRecord()
  /** @type {string[]} */
  let sent = []
  const { page } = await w.open(t, { record, init: keeping(one), prepare: async (page) => void (sent = requests(page)) })
  assert.deepEqual(sent.filter((request) => request.startsWith('POST')), [])
  const { page: later } = await w.open(t, { record, init: keeping(one, -1), prepare: async (page) => void (sent = requests(page)) })
  assert.deepEqual(sent.filter((request) => request.startsWith('POST')), ['POST sign_in/refresh'])
  assert.notEqual((await kept(later)).refresh_token, one.refresh_token)
  await isVisitor(later, 'Ada')
  await isVisitor(page, 'Ada')
})

test('two tabs refresh a session once, with and without locks', async (t) => {
  for (const withLocks of [true, false]) {
    const one = await session(`tabs-${withLocks}@example.org`, 'Ada')
    const unlocked = withLocks ? '' : 'Object.defineProperty(Navigator.prototype, "locks", { value: undefined });'
    const { page, context, url } = await w.open(t, { record: newRecord(), init: unlocked + keeping(one) })
    const other = await context.newPage()
    if (unlocked) await other.addInitScript(unlocked)
    await other.goto(url)
    await other.locator('comment-thread h2').waitFor()
    const sent = [requests(page), requests(other)]
    await expire(page, one)
    await Promise.all([page, other].map((tab) => rebuilding(tab, () => tab.evaluate(() => document.querySelector('comment-thread')?.setAttribute('sort', 'oldest')))))
    for (const tab of [page, other]) await isVisitor(tab, 'Ada')
    const refreshed = sent.flat().filter((request) => request === 'POST sign_in/refresh').length
    if (withLocks) assert.equal(refreshed, 1)
    const { refresh_token } = await kept(page)
    assert.notEqual(refresh_token, one.refresh_token)
    assert.equal((await kept(other)).refresh_token, refresh_token)
  }
})

test('a refused refresh signs out and says so, and the text stays', async (t) => {
  const one = await session('refused@example.org', 'Ada')
  const record = newRecord()
  const { page } = await w.open(t, { record, init: keeping(one) })
  await composer(page).fill('Kept.')
  await page.getByText('Posting as Ada').waitFor()
  await w.service.call('POST', 'sign_in/end', null, { refresh_token: one.refresh_token, everywhere: true })
  await button(page, 'Post comment').click()
  await page.getByText('Your session has ended').waitFor()
  assert.equal(await kept(page), null)
  assert.equal(await composer(page).inputValue(), 'Kept.')
  const { page: later } = await w.open(t, { record, init: keeping(one, -1) })
  await later.getByText('Your session has ended').waitFor()
  assert.equal(await kept(later), null)
  await later.reload()
  await button(later, 'Sign in').waitFor()
  assert.equal(await later.getByText('Your session has ended').count(), 0, 'it is said once')
})

test('neither a lost connection nor a failing service ends a session', async (t) => {
  const one = await session('offline@example.org', 'Ada')
  const { page } = await w.open(t, { record: newRecord(), init: keeping(one) })
  await composer(page).fill('On a train.')
  await page.getByText('Posting as Ada').waitFor()
  await expire(page, one)
  let fail = true
  await page.route(/sign_in\/refresh$/, (route) => (fail ? route.abort() : route.continue()))
  await button(page, 'Post comment').click()
  await page.getByText('Your draft is saved').waitFor()
  await page.unroute(/sign_in\/refresh$/)
  await page.route(/sign_in\/refresh$/, (route) => (fail ? route.fulfill({ status: 503, headers: { 'access-control-allow-origin': '*' }, json: { message: '', code: 'server_error', errors: {} } }) : route.continue()))
  await page.reload()
  await button(page, 'Sign in').waitFor()
  assert.equal((await kept(page)).refresh_token, one.refresh_token)
  assert.equal(await page.getByText('Your session has ended').count(), 0)
  fail = false
  await page.reload()
  await isVisitor(page, 'Ada')
  assert.equal(await composer(page).inputValue(), 'On a train.')
})

test('signing out doesn’t affect other devices, and signing out everywhere ends all sessions', async (t) => {
  const email = 'devices@example.org'
  const [one, two, three] = [await session(email, 'Ada'), await session(email, null), await session(email, null)]
  const record = newRecord()
  const open = async (/** @type {any} */ session) => {
    const { page } = await w.open(t, { record, init: keeping(session) })
    await isVisitor(page, 'Ada')
    return page
  }
  const [first, second, third] = [await open(one), await open(two), await open(three)]
  await choose(first, 'Ada', 'Sign out')
  await focused(button(first, 'Sign in'))
  assert.equal(await kept(first), null)
  await assert.rejects(w.service.call('POST', 'sign_in/refresh', null, { refresh_token: one.refresh_token }), /sign_in_failed/)
  await choose(second, 'Ada', 'Sign out everywhere')
  await second.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click()
  await focused(button(second, 'Sign in'))
  await composer(third).fill('Still here?')
  await button(third, 'Post comment').click()
  await third.getByText('Your session has ended').waitFor()
})

test('signing out needs no connection, and signing out everywhere says that it does', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), init: keeping(await session('gone@example.org', 'Ada')) })
  await page.route(/sign_in\/end$/, (route) => route.abort())
  await choose(page, 'Ada', 'Sign out everywhere')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Sign out' }).click()
  await dialog.getByRole('alert').getByText('No connection').waitFor()
  assert.ok(await kept(page))
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await choose(page, 'Ada', 'Sign out')
  await button(page, 'Sign in').waitFor()
  assert.equal(await kept(page), null)
})

test('a host that takes the event decides, and a page that has set `auth` has no session of ours', async (t) => {
  const init = `addEventListener('comment-sign-in', (event) => { window.asked = (window.asked ?? 0) + 1; event.preventDefault() })`
  const { page } = await w.open(t, { record: newRecord(), init })
  await button(page, 'Sign in').click()
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).asked), 1)
  assert.equal(await page.getByRole('form', { name: 'Sign in' }).count(), 0)

  const one = await session('hosted@example.org', 'Ada')
  const auth = `<script>document.addEventListener('DOMContentLoaded', () => { document.querySelector('comment-thread').auth = null })</script>`
  const { page: hosted } = await w.open(t, { record: newRecord(), init: keeping(one), head: auth })
  await hosted.getByRole('button', { name: 'Sign in to comment' }).click()
  await hosted.getByRole('status').getByText('Sign in to comment').waitFor()
  assert.equal(await hosted.getByRole('form', { name: 'Sign in' }).count(), 0)
  assert.equal((await kept(hosted)).refresh_token, one.refresh_token, 'nor does it end one')
})

test('a visitor who only reads causes no further request, and sees no prompt', async (t) => {
  /** @type {string[]} */
  let sent = []
  await w.open(t, { record: newRecord(), prepare: async (page) => void (sent = requests(page)) })
  const asked = sent.filter((request) => !request.endsWith('.js'))
  assert.equal(asked.length, 1, `${asked}`)
  assert.match(asked[0], /^GET public\//)
})

test('without storage a session lasts as long as the page', async (t) => {
  const init = `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'SecurityError') } })
    navigator.locks.request = async () => { throw new DOMException('', 'SecurityError') }`
  const { page } = await w.open(t, { record: newRecord(), init })
  await askForCode(page, 'private@example.org')
  await prove(page, 'private@example.org', 'Priya')
  await choose(page, 'Priya', 'Sign out')
  await button(page, 'Sign in').waitFor()
})

/** The labels of the sign-in form, by language. */
const WORDS = {
  en: ['Sign in', 'Your e-mail address', 'Code from the email', 'Your public name'],
  de: ['Anmelden', 'Deine E-Mail-Adresse', 'Code aus der Mail', 'Dein öffentlicher Name'],
  es: ['Iniciar sesión', 'Tu correo electrónico', 'Código del correo', 'Tu nombre público'],
  fr: ['Se connecter', 'Votre adresse e-mail', 'Code reçu par mail', 'Votre nom public'],
}
const headers = { 'access-control-allow-origin': '*' }
const user = { id: 4503599627370497, name: null, avatar: '' }

for (const [lang, [signIn, address, code, name]] of Object.entries(WORDS)) {
  test(`axe finds nothing in the form, and nothing sticks out, in ${lang}`, async (t) => {
    for (const look of LOOKS) {
      const { page } = await w.open(t, { record: newRecord(), lang, context: look })
      await page.route(/\/sign_in$/, (route) => route.fulfill({ status: 201, headers, json: { data: { flow: 'x', expires_in: 600 } } }))
      await page.route(/sign_in\/finish$/, (route) => route.fulfill({ headers, json: { data: { access_token: 'x', refresh_token: 'x', expires_in: 600, user } } }))
      await page.getByRole('button', { name: signIn, exact: true }).click()
      const form = page.getByRole('form', { name: signIn })
      await form.getByLabel(address).waitFor()
      await isAccessible(page, `the address in ${lang}`)
      await form.getByLabel(address).fill('a.rather.long.name.of.somebody@mail.example.org')
      await page.keyboard.press('Enter')
      await form.getByLabel(code).waitFor()
      await isAccessible(page, `the code in ${lang}`)
      await form.getByLabel(code).fill('12345678')
      await page.keyboard.press('Enter')
      await form.getByLabel(name).waitFor()
      await isAccessible(page, `the name in ${lang}`)
      assert.deepEqual(await stickingOut(page), [])
    }
  })
}

test('a member signs in, chooses a name and signs out by keyboard alone', async (t) => {
  const email = 'keys@example.org'
  const { page } = await w.open(t, { record: newRecord() })
  const form = page.getByRole('form', { name: 'Sign in' })
  await button(page, 'Sign in').focus()
  await page.keyboard.press('Enter')
  await focused(form.getByLabel('Your e-mail address'))
  await page.keyboard.press('Escape')
  await focused(button(page, 'Sign in'))
  await page.keyboard.press('Enter')
  await focused(form.getByLabel('Your e-mail address'))
  await page.keyboard.type(email)
  await page.keyboard.press('Enter')
  await focused(form.getByLabel('Code from the email'))
  await page.keyboard.type(await codeFor(email))
  await page.keyboard.press('Enter')
  await focused(form.getByLabel('Your public name'))
  await page.keyboard.type('Kay')
  await page.keyboard.press('Enter')
  await focused(button(page, 'Kay'))
  await page.keyboard.press('Enter')
  await focused(page.getByRole('menuitem').first())
  while (!(await item(page, 'Sign out').evaluate((item) => item.matches(':focus')))) await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await button(page, 'Sign in').waitFor()
  assert.equal(await kept(page), null)
})
