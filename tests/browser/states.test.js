import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, newRecord, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** Records console errors that name the element. @param {import('playwright-core').Page} page */
function watchConsole(page) {
  /** @type {string[]} */
  const told = []
  page.on('console', (message) => message.type() === 'error' && message.text().includes('<comment-thread>') && told.push(message.text()))
  return told
}

const MISTAKES = {
  'a missing record': ['<comment-thread type="posts"></comment-thread>', 'set type and record'],
  'a missing type': ['<comment-thread record="1"></comment-thread>', 'set type and record'],
  'an unknown type': ['<comment-thread type="posst" record="1"></comment-thread>', 'no thread posst/1: check type, record and SVC_TYPES'],
}
for (const [name, [html, fix]] of Object.entries(MISTAKES)) {
  test(`${name} is reported once in the console, and on this machine in the element`, async (t) => {
    /** @type {string[]} */
    let told = []
    const { page } = await w.open(t, { html, prepare: async (page) => void (told = watchConsole(page)) })
    await page.locator('.mistake').getByText(fix).waitFor()
    assert.equal(await page.locator('.mistake').evaluate((box) => getComputedStyle(box).borderTopStyle), 'dashed')
    assert.deepEqual(told, [`<comment-thread>: ${fix}`])
  })
}

test('an element that gets its record later shows the thread', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  const { page, thread } = await w.open(t, { html: '<comment-thread type="posts"></comment-thread>' })
  await page.locator('.mistake').waitFor()
  await thread.evaluate((element, record) => element.setAttribute('record', record), record)
  await page.getByText('Hello.').waitFor()
  assert.equal(await page.locator('.mistake').count(), 0)
})

test('an API that cannot be reached is reported in the console with advice, and can be retried', async (t) => {
  /** @type {string[]} */
  let told = []
  const { page } = await w.open(t, {
    comment: 'Hello.',
    ready: false,
    prepare: async (page) => {
      told = watchConsole(page)
      await page.route(/\/comments\?/, (route) => route.abort(), { times: 1 })
    },
  })
  await page.getByRole('alert').getByText('No connection').waitFor()
  await page.locator('.mistake').getByText('SVC_CORS_ORIGINS').waitFor()
  assert.equal(told.length, 1)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Hello.').waitFor()
  assert.equal(await page.locator('.mistake').count(), 0)
})

test('a failure after the first load is not reported as a mistake of the page', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord() })
  const told = watchConsole(page)
  await page.route(/\/comments\?/, (route) => route.abort())
  await page.getByRole('combobox').selectOption('oldest')
  await page.getByRole('alert').getByText('No connection').waitFor()
  assert.equal(await thread.locator('.mistake').count(), 0)
  assert.deepEqual(told, [])
})

test('frameworks set attributes, because the element has no properties of their names', async (t) => {
  const { thread } = await w.open(t, { record: newRecord() })
  assert.deepEqual(await thread.evaluate((element) => ['type', 'record', 'sort', 'loading'].filter((name) => name in element)), [])
})

test('an empty thread invites visitors who may write', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, who: w.service.ada })
  const empty = page.getByText('No comments yet')
  await empty.waitFor()
  assert.match(await empty.innerText(), /^No comments yet\nBe the first to comment\.$/)
  assert.equal(await page.getByRole('button', { name: /more comment/ }).count(), 0)
  const { id } = await w.service.comment(record, 'Hello.')
  await w.service.call('POST', `posts/${record}/close`, w.service.moderator)
  await w.service.call('DELETE', `comments/${id}`, w.service.ada)
  const { page: closed } = await w.open(t, { record, who: w.service.ada })
  await closed.getByText('No comments yet').waitFor()
  assert.equal(await closed.getByText('Be the first').count(), 0)
})

test('a closed thread has a notice in place of the composer, likes stay, and moderators continue', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Before it closed.')
  await w.service.call('POST', `posts/${record}/close`, w.service.moderator)
  const { page } = await w.open(t, { record, who: w.service.ada })
  await page.locator('[part~=notice]').getByText('This thread is closed').waitFor()
  assert.equal(await page.locator('form').count(), 0)
  assert.equal(await article(page, id).getByRole('button', { name: 'Reply' }).count(), 0)
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await article(page, id).getByRole('button', { name: 'Like 1' }).waitFor()
  const { page: other } = await w.open(t, { record, who: w.service.moderator })
  await other.getByPlaceholder('Write a comment…').waitFor()
  await article(other, id).getByRole('button', { name: 'Reply' }).waitFor()
})

test('a comment that is sent too late shows that the thread is closed, and the text is kept', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, who: w.service.ada })
  const field = page.getByPlaceholder('Write a comment…')
  await field.fill('One word more.')
  await w.service.call('POST', `posts/${record}/close`, w.service.moderator)
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('This thread is closed').waitFor()
  assert.equal(await field.inputValue(), 'One word more.')
})

test('the writer of a rejected comment sees the reason and the note, and no one else sees the comment', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Cheap watches.')
  await w.service.call('POST', `comments/${id}/reject`, w.service.moderator, { reason: 'off_topic', note: 'Please see the <b>rules</b>.' })
  const { page } = await w.open(t, { record, who: w.service.ada })
  const actions = article(page, id).locator('> .content > .actions')
  assert.equal((await actions.locator('span').textContent())?.trim(), 'Not approved. Only you see this. Off topic')
  assert.match(await actions.locator('blockquote').innerText(), /^From the moderators\s+Please see the <b>rules<\/b>\.$/)
  const { page: other } = await w.open(t, { record, who: w.service.bob })
  await other.getByText('No comments yet').waitFor()
})

test('if storage throws, visitors can still read, write and like', async (t) => {
  const init = `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('The operation is insecure.', 'SecurityError') } })`
  const { page, id, errors } = await w.open(t, { comment: 'Hello.', who: w.service.ada, init })
  await article(page, id).getByRole('button', { name: 'Like' }).click()
  await page.getByPlaceholder('Write a comment…').fill('Written without storage.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').getByText('Written without storage.').waitFor()
  assert.deepEqual(errors, [])
})
