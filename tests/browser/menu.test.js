import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, choose, dialogCloses, focusedComment, newRecord, openMenu, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** @typedef {import('playwright-core').Page} Page */
const items = (/** @type {Page} */ page) => page.getByRole('menuitem').allTextContents()
const focused = (/** @type {Page} */ page) => page.evaluate(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.textContent)
const toast = (/** @type {Page} */ page) => page.locator('[part~=toast]')

test('the menu offers the actions that this visitor may perform', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello.')
  const offered = async (/** @type {string | null} */ who) => {
    const { page } = await w.open(t, { record, who })
    const opener = article(page, id).getByRole('button', { name: 'More' })
    assert.equal(await opener.getAttribute('aria-haspopup'), 'menu')
    await opener.click()
    await page.locator('[part~=menu]').waitFor()
    assert.equal(await opener.getAttribute('aria-expanded'), 'true')
    return items(page)
  }
  assert.deepEqual(await offered(w.service.ada), ['Copy link', 'Edit', 'Delete'])
  assert.deepEqual(await offered(w.service.bob), ['Copy link', 'Report'])
  assert.deepEqual(await offered(null), ['Copy link', 'Report'])
  assert.deepEqual(await offered(w.service.moderator), ['Copy link', 'Report', 'Pin', 'Reject', 'Moderation'])
})

test('the menu works by keyboard, and the focus returns', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', who: w.service.ada })
  const opener = article(page, id).getByRole('button', { name: 'More' })
  await opener.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('menu').waitFor()
  assert.equal(await focused(page), 'Copy link')
  for (const [key, name] of [['ArrowDown', 'Edit'], ['End', 'Delete'], ['ArrowDown', 'Copy link'], ['ArrowUp', 'Delete'], ['Home', 'Copy link']]) {
    await page.keyboard.press(key)
    assert.equal(await focused(page), name, key)
  }
  await page.keyboard.press('Escape')
  await page.getByRole('menu').waitFor({ state: 'detached' })
  assert.ok(await opener.evaluate((element) => element.matches(':focus')))
  assert.equal(await opener.getAttribute('aria-expanded'), 'false')
})

test('a second press of its button closes the menu', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', who: w.service.ada })
  for (const state of /** @type {const} */ (['visible', 'detached', 'visible', 'detached'])) {
    await openMenu(page, id)
    await page.getByRole('menu').waitFor({ state })
  }
})

test('the menu stays inside the window, at the end of the page and right to left', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello.')
  for (const dir of ['ltr', 'rtl']) {
    const { page } = await w.open(t, { record, dir, who: w.service.moderator, context: { viewport: { width: 320, height: 380 } } })
    await openMenu(page, id)
    const box = await page.getByRole('menu').boundingBox()
    assert.ok(box && box.x >= 0 && box.x + box.width <= 320 && box.y >= 0 && box.y + box.height <= 380, `${dir} ${JSON.stringify(box)}`)
    for (const row of await page.getByRole('menuitem').all()) assert.ok(Math.round((await row.boundingBox())?.height ?? 0) >= 34)
  }
})

test('menus and lists appear at their openers on a page that is zoomed with CSS', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello.')
  for (const place of ['html', 'body']) {
    const { page } = await w.open(t, { record, who: w.service.ada, head: `<style>${place} { zoom: 1.25 } body { min-height: 200vh }</style>` })
    await page.evaluate(() => scrollTo(0, 100))
    await openMenu(page, id)
    const [menu, opener] = await Promise.all([page.getByRole('menu'), article(page, id).locator('.opener')].map((element) => element.boundingBox()))
    assert.ok(menu && opener)
    const far = [menu.x + menu.width - opener.x - opener.width, menu.y - opener.y - opener.height]
    assert.ok(far.every((distance) => Math.abs(distance) < 8), `${place}: ${far}`)
  }
})

test('the link of a comment is copied, or shown selected where there is no clipboard', async (t) => {
  const init = 'window.copied = []; Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { if (window.refuses) throw Error(); copied.push(text) } } })'
  const { page, id, url } = await w.open(t, { comment: 'Hello.', init })
  await choose(page, id, 'Copy link')
  await toast(page).getByText('Link copied').waitFor()
  assert.deepEqual(await page.evaluate(() => /** @type {any} */ (window).copied), [`${url}#comment-${id}`])
  await page.evaluate(() => Object.assign(window, { refuses: true }))
  await choose(page, id, 'Copy link')
  const field = page.getByRole('dialog').getByLabel('Copy link')
  assert.equal(await field.inputValue(), `${url}#comment-${id}`)
  assert.equal(await field.evaluate((input) => /** @type {any} */ (input).selectionEnd), `${url}#comment-${id}`.length)
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  await dialogCloses(page)
  assert.equal(await focusedComment(page), `comment-${id}`)
})

test('a moderator rejects with a reason, approves, and goes to the card', async (t) => {
  const { page, record, id, context } = await w.open(t, { comment: 'Hello.', who: w.service.moderator })
  await choose(page, id, 'Reject')
  await article(page, id).getByText('Rejected. Only its author can see it.').waitFor()
  await page.getByRole('button', { name: 'Off topic' }).click()
  await toast(page).getByText('Saved').waitFor()
  const seen = async () => (await w.service.call('GET', `posts/${record}/comments`, null)).data.length
  assert.equal(await seen(), 0)
  const { data } = await w.service.call('GET', `moderation/comments?id=${id}`, w.service.moderator)
  assert.equal(data[0].rejection.reason, 'off_topic')
  await openMenu(page, id)
  await page.getByRole('menu').waitFor()
  assert.deepEqual((await items(page)).slice(-2), ['Approve', 'Moderation'])
  await page.getByRole('menuitem', { name: 'Approve' }).click()
  await toast(page).getByText('Saved').waitFor()
  assert.equal(await seen(), 1)
  const opened = context.waitForEvent('page')
  await choose(page, id, 'Moderation')
  assert.equal((await opened).url(), `${w.service.api}/moderate#comment-${id}`)
})

test('a decision in the thread can be undone, and is sent when the page is closed', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', who: w.service.moderator })
  /** @type {string[]} */
  const sent = []
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()))
  await choose(page, id, 'Reject')
  await page.getByRole('button', { name: 'Undo' }).click()
  await article(page, id).getByRole('button', { name: 'Like' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
  assert.deepEqual(sent, [])
  await choose(page, id, 'Reject')
  await page.getByRole('button', { name: 'Undo' }).waitFor()
  const answered = page.waitForResponse(/\/reject$/)
  await page.evaluate(() => dispatchEvent(new Event('pagehide')))
  assert.equal((await answered).status(), 200)
  assert.equal(sent.length, 1)
})

test('a decision on a text that the moderator hasn’t seen fails, and can be made again after the text is shown', async (t) => {
  const { page, record, id } = await w.open(t, { comment: 'Hello.', who: w.service.moderator })
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  await w.service.call('PATCH', `comments/${id}`, w.service.ada, { body: 'Something else.' })
  await choose(page, id, 'Reject')
  await toast(page).getByText('The comment has been edited since you saw it.').waitFor()
  assert.equal((await w.service.call('GET', `posts/${record}/comments`, null)).data.length, 1)
  await article(page, id).getByText('Something else.').waitFor()
  await article(page, id).getByRole('button', { name: 'Like' }).waitFor()
  await choose(page, id, 'Reject')
  await toast(page).getByText('Saved').waitFor()
  assert.equal((await w.service.call('GET', `posts/${record}/comments`, null)).data.length, 0)
})
