import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, become, hold, isVisitor, newRecord, rebuilding, world } from './world.js'

const w = world()

test('a page that changes the record without a reload shows the other thread', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  await w.service.comment(one, 'In one.')
  const other = await w.service.comment(two, 'In two.')
  const { page, thread, errors } = await w.open(t, { record: one })
  await page.getByText('In one.').waitFor()
  await thread.evaluate((element, record) => element.setAttribute('record', record), two)
  await article(page, other.id).waitFor()
  assert.equal(await page.locator('article').count(), 1)
  assert.deepEqual(errors, [])
})

test('of two consecutive changes, the second one wins, however slow the first response is', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  await w.service.comment(one, 'In one.')
  await w.service.comment(two, 'In two.')
  const { page, thread } = await w.open(t, { record: newRecord() })
  const answer = await hold(page, new RegExp(one))
  const asked = page.waitForRequest(new RegExp(one))
  const isOver = (/** @type {'requestfinished' | 'requestfailed'} */ event) => page.waitForEvent(/** @type {'requestfinished'} */ (event), (request) => request.url().includes(one))
  const over = Promise.race([isOver('requestfinished'), isOver('requestfailed')])
  await thread.evaluate((element, record) => element.setAttribute('record', record), one)
  await asked
  await thread.evaluate((element, record) => element.setAttribute('record', record), two)
  await page.getByText('In two.').waitFor()
  answer()
  await over
  assert.equal(await page.getByText('In one.').count(), 0)
})

test('a framework may render the element late, and set its attributes and auth later still', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  /** @type {string[]} */
  const requests = []
  const { page } = await w.open(t, {
    html: '<div id="app"></div>',
    prepare: async (page) => page.on('request', (request) => request.url().includes('/comments') && requests.push(request.url())),
  })
  await page.evaluate(() => customElements.whenDefined('comment-thread'))
  await page.evaluate(
    ({ record, auth }) => {
      const element = Object.assign(document.createElement('comment-thread'), { auth: () => Promise.resolve(auth) })
      document.querySelector('#app')?.append(element)
      element.setAttribute('type', 'posts')
      element.setAttribute('record', record)
    },
    { record, auth: w.service.ada },
  )
  await isVisitor(page, 'Ada Lovelace')
  assert.equal(requests.length, 1)
})

test('a framework that sets the same auth at every render causes no request', async (t) => {
  const { page, thread } = await w.open(t, { comment: 'Hello.', who: w.service.ada })
  /** @type {string[]} */
  const requests = []
  page.on('request', (request) => request.url().includes('/comments') && requests.push(request.url()))
  for (let i = 0; i < 3; i++) await thread.evaluate((element, auth) => Object.assign(element, { auth: () => auth }), w.service.ada)
  await rebuilding(page, () => become(thread, w.service.bob))
  assert.equal(requests.length, 1, 'only another visitor is a reason to ask')
})

test('an element that is moved or removed stops and starts again', async (t) => {
  const { page, thread, errors } = await w.open(t, { comment: 'Hello.' })
  const moved = page.waitForResponse(/\/comments\?/)
  await thread.evaluate((element) => document.querySelector('footer')?.append(element))
  await moved
  const back = page.waitForResponse(/\/comments\?/)
  await thread.evaluate((element) => {
    element.remove()
    setTimeout(() => document.querySelector('main')?.append(element))
  })
  await back
  await page.getByText('Hello.').waitFor()
  assert.deepEqual(errors, [])
})

test('two threads on one page don’t affect each other', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  const first = await w.service.comment(one, 'In one.')
  await w.service.comment(two, 'In two.')
  const html = [one, two].map((record) => `<comment-thread type="posts" record="${record}"></comment-thread>`).join('')
  const { page, errors } = await w.open(t, { html, hash: `#comment-${first.id}` })
  await page.getByText('In two.').waitFor()
  await page.locator('section[aria-busy=false]').nth(1).waitFor()
  assert.equal(await page.locator(`#comment-${first.id}`).count(), 1)
  assert.deepEqual(errors, [])
})

test('the module may be loaded twice', async (t) => {
  const { page, errors } = await w.open(t, { comment: 'Hello.', head: `<script type="module" src="${w.service.api}/embed.js?again"></script>` })
  await page.getByText('Hello.').waitFor()
  assert.deepEqual(errors, [])
})

test('the content of the element is hidden at once when the record changes, also before the thread has come near', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  await w.service.comment(two, 'In two.')
  const html = `<div style="height: 5000px"></div><comment-thread type="posts" record="${one}"><p>Of one.</p></comment-thread>`
  const { page, thread } = await w.open(t, { html })
  const isShown = () => thread.evaluate((element) => !!element.querySelector('p')?.assignedSlot)
  await page.waitForFunction(() => document.querySelector('comment-thread p')?.assignedSlot)
  // Setting the same record again changes nothing.
  await thread.evaluate((element, record) => element.setAttribute('record', record), one)
  assert.ok(await isShown())
  assert.equal(await thread.evaluate((element, record) => {
    element.setAttribute('record', record)
    return !!element.querySelector('p')?.assignedSlot
  }, two), false)
  await page.route(/\/comments\?/, (route) => route.abort(), { times: 1 })
  await page.evaluate(() => scrollTo(0, 4200))
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('In two.').waitFor()
  assert.equal(await isShown(), false)
})
