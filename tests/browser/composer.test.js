import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, article, chooseImage, composer, focusedComment, hold, newRecord, PIXEL, Service, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })
/** Turns animations off, so that heights can be compared. */
const STILL = /** @type {const} */ ({ reducedMotion: 'reduce' })
const cors = { 'access-control-allow-origin': '*' }

/** @typedef {import('playwright-core').Page} Page */
const form = (/** @type {Page} */ page) => page.locator('form')
const toast = (/** @type {Page} */ page) => page.locator('[part~=toast]')
const heightOf = async (/** @type {Page} */ page) => (await form(page).boundingBox())?.height ?? 0

test('the composer is one line with the visitor’s initials until it is focused, and Escape or Cancel collapses it again', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, context: STILL })
  const line = await heightOf(page)
  assert.ok(line > 30 && line <= 60, `${line}`)
  assert.ok(await form(page).locator('.avatar').isVisible())
  assert.equal(await page.getByRole('button', { name: 'Post comment' }).isVisible(), false)
  for (const close of [() => page.keyboard.press('Escape'), () => page.getByRole('button', { name: 'Cancel' }).click()]) {
    await composer(page).focus()
    await page.getByText('Posting as Ada Lovelace').waitFor()
    assert.ok(((await page.locator('.editor').boundingBox())?.height ?? 0) >= 92)
    assert.ok(await page.getByRole('button', { name: 'Post comment' }).isVisible())
    await close()
    assert.equal(await heightOf(page), line)
  }
  await composer(page).fill('Half a thou')
  await page.reload()
  await composer(page).waitFor()
  assert.ok((await heightOf(page)) > 92, 'a draft is open')
})

test('the box grows with its text', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('One.')
  const before = (await composer(page).boundingBox())?.height ?? 0
  await composer(page).fill('One.\n'.repeat(10))
  assert.ok(((await composer(page).boundingBox())?.height ?? 0) > before + 50)
})

test('after a comment is sent, the composer collapses to one line, and a toast confirms it for five seconds', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, context: STILL })
  await page.clock.install()
  const line = await heightOf(page)
  await composer(page).fill('One.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await toast(page).getByText('Comment posted').waitFor()
  assert.equal(await toast(page).getAttribute('role'), 'status')
  assert.equal(await heightOf(page), line)
  await page.clock.runFor(4_000)
  assert.ok(await toast(page).isVisible())
  await page.clock.runFor(1_100)
  await toast(page).waitFor({ state: 'hidden' })
})

test('a toast stays while the pointer is over it', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.clock.install()
  await composer(page).fill('One.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await toast(page).hover()
  await page.clock.runFor(20_000)
  assert.ok(await toast(page).isVisible())
  await page.mouse.move(0, 0)
  await page.clock.runFor(5_100)
  await toast(page).waitFor({ state: 'hidden' })
})

test('when offline, the text is kept with a notice, and a restored connection shows a notice but sends nothing', async (t) => {
  const { page, context } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('Not lost.')
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  await context.setOffline(true)
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('No connection. Your draft is saved.').waitFor()
  await context.setOffline(false)
  await toast(page).getByText('Back online').waitFor()
  assert.equal(await composer(page).inputValue(), 'Not lost.')
  assert.equal(await page.locator('article').count(), 0)
})

test('without a sign-in method, a toast and one warning say what the host can do', async (t) => {
  const members = await Service.start()
  t.after(() => members.stop())
  const record = newRecord()
  const { id } = await members.comment(record, 'Hello.')
  const at = { record, service: members }
  const { page } = await w.open(t, at)
  /** @type {string[]} */
  const warnings = []
  page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await toast(page).getByText('Sign in to like').waitFor()
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await toast(page).getByText('Sign in to comment').waitFor()
  assert.equal(warnings.length, 1)
  assert.match(warnings[0], /comment-sign-in.*sign-in-url/)

  const other = await w.open(t, { ...at, attributes: `sign-in-url="${w.site.url}/login?next={url}"` })
  const from = other.page.url()
  const went = other.page.waitForRequest(/\/login\?/)
  await other.page.getByRole('button', { name: 'Sign in to comment' }).click()
  assert.equal((await went).url(), `${w.site.url}/login?next=${encodeURIComponent(from)}`)

  const host = await w.open(t, { ...at, init: `addEventListener('comment-sign-in', (event) => event.preventDefault())` })
  await article(host.page, id).getByRole('button', { name: 'Like' }).click()
  assert.equal(await toast(host.page).isVisible(), false)
})

test('a token that is refused at the start causes a notice, and guests may still write', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: `${w.service.ada}x` })
  const notice = page.locator('[part~=notice]')
  await notice.getByText('Your session has ended').waitFor()
  const asked = page.evaluate(() => new Promise((resolve) => addEventListener('comment-sign-in', () => resolve(true))))
  await notice.getByRole('button', { name: 'Sign in' }).click()
  assert.equal(await asked, true)
  await composer(page).fill('As a guest.')
  await page.getByLabel('Your name').fill('Zoë')
  await page.getByLabel('Your e-mail address').fill('zoe@example.org')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').getByText('As a guest.').waitFor()
  await page.locator('comment-thread').evaluate((element, auth) => Object.assign(element, { auth }), w.service.ada)
  await notice.waitFor({ state: 'detached' })
})

test('a session that ends while the visitor writes keeps the text, and shows the guest form', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.route(/\/comments$/, (route) => route.fulfill({ status: 401, headers: cors, json: { message: 'No.', code: 'unauthenticated', errors: {} } }), { times: 1 })
  await composer(page).fill('Still me.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByText('Your session has ended').waitFor()
  assert.equal(await composer(page).inputValue(), 'Still me.')
  await composer(page).focus()
  await page.getByLabel('Your name').waitFor()
  // The text is still in the field after signing in again.
  await page.locator('comment-thread').evaluate((element, auth) => Object.assign(element, { auth }), token(7, 'Ada Lovelace', { jti: 'again' }))
  await page.locator('[part~=notice]').waitFor({ state: 'detached' })
  assert.equal(await composer(page).inputValue(), 'Still me.')
})

test('guests see which fields are optional and not published', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await composer(page).focus()
  const label = page.locator('.names label').nth(1)
  assert.match((await label.textContent()) ?? '', /^Your e-mail address · not published$/)
  const optional = await w.open(t, { record: newRecord(), prepare: answering((json) => Object.assign(json.ui.guest, { require_email: false, show_gravatar: false })) })
  await composer(optional.page).focus()
  assert.match((await optional.page.locator('.names label').nth(1).textContent()) ?? '', /^Your e-mail address · optional, not published$/)
})

test('a sent text is no longer a draft, but text written since in another tab is', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = composer(page)
  const post = page.getByRole('button', { name: 'Post comment' })
  await text.fill('Here.')
  await page.evaluate(() => {
    const key = Object.keys(localStorage).find((key) => localStorage[key] === 'Here.')
    localStorage[key ?? ''] = 'In another tab.'
  })
  await post.click()
  await page.locator('article').getByText('Here.').waitFor()
  await page.reload()
  await post.waitFor()
  assert.equal(await text.inputValue(), 'In another tab.')
  await post.click()
  await page.locator('article').getByText('In another tab.').waitFor()
  await page.reload()
  await page.locator('article').getByText('In another tab.').waitFor()
  assert.equal(await text.inputValue(), '')
})

test('if storage throws, drafts last as long as the page', async (t) => {
  const record = newRecord()
  const init = `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('No.', 'SecurityError') } })`
  const { page, errors } = await w.open(t, { record, who: w.service.ada, init })
  await composer(page).fill('Half a thou')
  const thread = page.locator('comment-thread')
  await thread.evaluate((element, record) => element.setAttribute('record', record), newRecord())
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === '')
  await thread.evaluate((element, record) => element.setAttribute('record', record), record)
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === 'Half a thou')
  assert.deepEqual(errors, [])
})

test('an upload shows its progress and can be removed, and sending waits for it', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const release = await hold(page, /\/media$/)
  await composer(page).fill('Look.')
  for (const name of ['cat.png', 'dog.png']) await chooseImage(page, name)
  await page.getByRole('progressbar').nth(1).waitFor()
  await page.getByRole('button', { name: 'Delete: dog.png' }).click()
  assert.equal(await page.locator('form .error').textContent(), '')
  await page.getByRole('button', { name: 'Post comment' }).click()
  release()
  await page.locator('article .body img').waitFor()
  assert.equal(await page.locator('article .body img').count(), 1)
})

test('an image that is dropped on the folded composer opens it', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const drag = (/** @type {string} */ type) =>
    composer(page).evaluate(
      (text, { type, bytes }) => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File([Uint8Array.from(bytes)], 'cat.png', { type: 'image/png' }))
        text.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
      },
      { type, bytes: [...PIXEL] },
    )
  for (const images of [1, 2]) {
    await drag('dragenter')
    await page.getByRole('button', { name: 'Bold' }).waitFor()
    await drag('drop')
    await page.getByLabel('Describe the image').nth(images - 1).waitFor()
    await composer(page).press('Escape')
    await page.getByLabel('Describe the image').first().waitFor({ state: 'hidden' })
  }
})

test('a mention offers the thread’s writers first, at the caret', async (t) => {
  await w.service.call('GET', 'ui', token(61, 'Quentin A'))
  const { page } = await w.open(t, { comment: 'Hello.', by: token(62, 'Quentin Z'), who: w.service.ada })
  await composer(page).focus()
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  await page.keyboard.type('Some words before @quen')
  await page.locator('[role=option]').nth(1).waitFor()
  assert.match((await page.locator('[role=option]').first().textContent()) ?? '', /Quentin Z$/)
  const [list, text] = [await page.locator('[role=listbox]').boundingBox(), await composer(page).boundingBox()]
  assert.ok((list?.x ?? 0) > (text?.x ?? 0) + 80 && (list?.y ?? 0) < (text?.y ?? 0) + 60, JSON.stringify({ list, text }))
})

test('a guest is offered the thread’s writers, without a request', async (t) => {
  const { page } = await w.open(t, { comment: 'Hello.', by: w.service.bob })
  /** @type {string[]} */
  const searches = []
  page.on('request', (request) => request.url().includes('/users') && searches.push(request.url()))
  await page.clock.install()
  await composer(page).focus()
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  await page.keyboard.type('Hello @bo')
  await page.locator('[role=option]').getByText('Bob').waitFor()
  await page.clock.runFor(1_000)
  await page.keyboard.press('Enter')
  assert.equal(await composer(page).inputValue(), 'Hello @bob ')
  assert.deepEqual(searches, [])
})

test('emoji are chosen by arrow keys, and Escape returns the focus', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).focus()
  const opener = page.getByRole('button', { name: 'Emoji', exact: true })
  await opener.click()
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'Enter']) await page.keyboard.press(key)
  assert.equal(await composer(page).inputValue(), '🙂')
  await opener.click()
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('.emoji').isVisible(), false)
  assert.equal(await opener.evaluate((element) => element.matches(':focus')), true)
  await opener.click()
  await opener.click()
  assert.equal(await page.locator('.emoji').isVisible(), false)
})

test('an empty box has the direction of the page, and a text has its own', async (t) => {
  for (const [lang, dir] of [['ar', 'rtl'], ['en', 'ltr']]) {
    const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, lang, dir })
    const box = page.locator('textarea')
    const direction = () => box.evaluate((element) => getComputedStyle(element).direction)
    assert.equal(await direction(), dir)
    await box.focus()
    await page.locator('.toolbar').waitFor()
    assert.equal(await direction(), dir)
    for (const [text, own] of [['Hello', 'ltr'], ['', dir], ['مرحبا', 'rtl']]) {
      await box.fill(text)
      assert.equal(await direction(), own, text)
    }
  }
})

test('on a page from right to left, the arrow keys move through the emoji as they point', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, attributes: 'lang="ar"' })
  const box = page.locator('textarea')
  await box.focus()
  await page.locator('.toolbar button').nth(-3).click()
  await page.locator('.emoji:popover-open').waitFor()
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowDown', 'Enter']) await page.keyboard.press(key)
  assert.equal(await box.inputValue(), '😉')
})

test('a reply is written by keyboard alone, and Escape in the emoji closes them, not the reply', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  await article(page, id).getByRole('button', { name: 'Reply' }).focus()
  await page.keyboard.press('Enter')
  const text = article(page, id).locator('textarea')
  await text.waitFor()
  await page.keyboard.type('Yes')
  await article(page, id).getByRole('button', { name: 'Emoji' }).focus()
  await page.keyboard.press('Enter')
  await page.locator('.emoji:popover-open').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.emoji:popover-open').waitFor({ state: 'hidden' })
  assert.equal(await text.inputValue(), 'Yes')
  await text.focus()
  await page.keyboard.press('Escape')
  await text.waitFor({ state: 'detached' })
  assert.equal(await focusedComment(page), `comment-${id}`)
})
