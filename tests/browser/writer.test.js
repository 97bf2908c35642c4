import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, composer, hold, newRecord, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

const WRITER = /\/embed\/writer\.\w+\.js/

/** Records the URLs at which the page requests the writer. @param {import('playwright-core').Page} page */
function watch(page) {
  /** @type {string[]} */
  const asked = []
  page.on('request', (request) => WRITER.test(request.url()) && asked.push(request.url()))
  return asked
}

test('a visitor who reads and likes loads no writer', async (t) => {
  const { page, id } = await w.open(t, { comment: 'One.', by: w.service.bob, who: w.service.ada })
  const asked = watch(page)
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await article(page, id).getByRole('button', { name: 'Like 1' }).waitFor()
  assert.deepEqual(asked, [])
})

for (const way of /** @type {const} */ (['hover', 'focus'])) {
  for (const place of ['the composer', 'a reply', 'a menu']) {
    test(`a visitor who comes to ${place} by ${way} has the writer loaded`, async (t) => {
      const { page, id } = await w.open(t, { comment: 'One.', by: w.service.bob, who: w.service.ada })
      const button = (/** @type {string} */ name) => article(page, id).getByRole('button', { name })
      const target = place === 'the composer' ? composer(page) : place === 'a reply' ? button('Reply') : button('More')
      const loading = page.waitForResponse(WRITER)
      await target[way]()
      assert.equal((await loading).status(), 200)
    })
  }
}

test('the text field stays the same when the writer arrives, with its text, its undo history and the focus', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, ready: false, prepare: async (page) => void (release = await hold(page, WRITER)) })
  const text = composer(page)
  await text.waitFor()
  const element = await text.elementHandle()
  await text.click()
  await page.keyboard.type('Typed at once.')
  await page.getByRole('button', { name: 'Post comment' }).waitFor()
  release()
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  assert.equal(await text.evaluate((text, element) => text === element && /** @type {ShadowRoot} */ (text.getRootNode()).activeElement === text, element), true)
  assert.equal(await text.inputValue(), 'Typed at once.')
  await page.keyboard.press('Control+z')
  assert.notEqual(await text.inputValue(), 'Typed at once.')
})
let release = () => {}

test('a comment that is sent before the writer has arrived is sent once it has', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, prepare: async (page) => void (release = await hold(page, WRITER)) })
  await composer(page).fill('Quickly.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  release()
  await page.locator('article').getByText('Quickly.').waitFor()
})

test('a press of the button that sends is not lost when the editor’s tools arrive meanwhile', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, prepare: async (page) => void (release = await hold(page, WRITER)) })
  const loading = page.waitForResponse(WRITER)
  await composer(page).fill('Quickly.')
  await page.getByRole('button', { name: 'Post comment' }).hover()
  await page.mouse.down()
  release()
  await (await loading).finished()
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  await page.mouse.up()
  await page.locator('article').getByText('Quickly.').waitFor()
})

test('a kept draft is sent by the first press, which also brings the editor’s tools', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await composer(page).fill('Kept.')
  await page.reload()
  const loading = page.waitForResponse(WRITER)
  await page.getByRole('button', { name: 'Post comment' }).hover()
  await (await loading).finished()
  await page.mouse.down()
  await page.mouse.up()
  await page.locator('article').getByText('Kept.').waitFor()
})

test('a guest who sends before the writer module has arrived has to enter a name', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), prepare: async (page) => void (release = await hold(page, WRITER)) })
  await composer(page).fill('Quickly.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  release()
  const name = page.getByLabel('Your name')
  await name.waitFor()
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.matches('input[autocomplete=name]'))
  assert.equal(await composer(page).inputValue(), 'Quickly.')
})

test('if the writer module doesn’t load, a message is shown, the text is kept, and the next press retries', async (t) => {
  const { page, errors } = await w.open(t, { record: newRecord(), who: w.service.ada, prepare: (page) => page.route(WRITER, (route) => route.abort()) })
  await composer(page).fill('Not lost.')
  // Typing has cleared the previous message.
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  assert.equal(await composer(page).inputValue(), 'Not lost.')
  await page.unroute(WRITER)
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').getByText('Not lost.').waitFor()
  assert.deepEqual(errors, [])
})

test('a writer module that doesn’t fit the page counts as one that didn’t load', async (t) => {
  const body = 'export default (fit) => { if (fit !== "another") throw Error("The page has another version.") }'
  const headers = { 'access-control-allow-origin': '*' }
  const prepare = (/** @type {import('playwright-core').Page} */ page) => page.route(WRITER, (route) => route.fulfill({ contentType: 'text/javascript', headers, body }))
  const { page, id, errors } = await w.open(t, { comment: 'One.', by: w.service.bob, who: w.service.ada, prepare })
  await composer(page).fill('Not lost.')
  // Typing has cleared the previous message.
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  assert.equal(await composer(page).inputValue(), 'Not lost.')
  await article(page, id).getByRole('button', { name: 'More' }).click()
  await page.getByRole('status').getByText('Something went wrong').waitFor()
  assert.deepEqual(errors, [])
})
