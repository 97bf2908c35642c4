import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAccessible } from './moderators_page.js'
import { article, become, choose, focusedComment, isVisitor, newRecord, openMenu, rebuilding, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })

/** Waits until this many comments are counted. The table's events trigger the count, so it may take a moment. @param {string} record @param {number} count */
async function counted(record, count) {
  const thread = `posts/${record}`
  while ((await w.service.call('GET', `counts?threads=${thread}`, null)).data[thread] !== count);
}

test('two lines of HTML show a thread with its replies', async (t) => {
  const record = newRecord()
  const parent = await w.service.comment(record, 'Nice **post**!')
  const reply = await w.service.comment(record, 'I agree.', { who: w.service.bob, parent: parent.id })
  const { page, errors } = await w.open(t, { record })
  assert.equal(await article(page, parent.id).locator('> .content strong').textContent(), 'post')
  assert.match((await article(page, parent.id).locator(`.replies #comment-${reply.id}`).textContent()) ?? '', /Bob.*I agree\./)
  assert.deepEqual(errors, [])
})

test('a page load costs the module, one list and the avatars, without a preflight', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'One.')
  await w.service.comment(record, 'Two.', { who: w.service.bob })
  /** @type {string[]} */
  const requests = []
  const { page } = await w.open(t, {
    record,
    ready: false,
    prepare: async (page) => {
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      session.on('Network.requestWillBeSent', ({ request, type }) => requests.push(`${type} ${request.method} ${request.url}`))
    },
  })
  await page.locator('article').nth(1).waitFor()
  await page.waitForLoadState('networkidle')
  const ours = requests.filter((line) => line.includes(w.service.api)).map((line) => line.replace(w.service.api, '').split('?')[0])
  assert.deepEqual(ours, ['Script GET /embed.js', `Fetch GET /public/posts/${record}/comments`])
  assert.ok(!requests.some((line) => line.includes('OPTIONS')), requests.join('\n'))
  const hosts = new Set(requests.filter((line) => line.startsWith('Image')).map((line) => new URL(line.split(' ')[2]).host))
  assert.ok(hosts.size <= 1, [...hosts].join())
})

test('a thread below the fold loads nothing but the module until it comes near', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Far below.')
  /** @type {string[]} */
  const requests = []
  const html = `<div style="height: 5000px"></div><comment-thread type="posts" record="${record}"></comment-thread>`
  const { page } = await w.open(t, {
    html,
    prepare: async (page) => page.on('request', (request) => requests.push(request.url())),
  })
  await page.waitForLoadState('networkidle')
  assert.ok(!requests.some((url) => url.includes('/comments')))
  await page.evaluate(() => scrollTo(0, 4200))
  await page.locator('article').waitFor()
  const { page: eager } = await w.open(t, { html: html.replace('type=', 'loading="eager" type=') })
  await eager.locator('article').waitFor({ state: 'attached' })
})

test('nothing on the page moves when comments arrive', async (t) => {
  for (const count of [0, 1, 30]) {
    const record = newRecord()
    for (let i = 0; i < count; i++) await w.service.comment(record, `Comment ${i} with a line of text.`)
    const { page } = await w.open(t, {
      record,
      init: `window.shift = 0; new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value
      }).observe({ type: 'layout-shift', buffered: true })`,
    })
    await page.waitForLoadState('networkidle')
    await page.waitForTimeout(200)
    const shift = await page.evaluate(() => /** @type {any} */ (window).shift)
    assert.ok(shift < 0.05, `${count} comments: ${shift}`)
  }
})

test('load more walks through the whole thread, each comment once', async (t) => {
  const record = newRecord()
  for (let i = 0; i < 63; i++) await w.service.comment(record, `Comment ${i}`)
  const { page } = await w.open(t, { record })
  assert.equal(await page.locator('article').count(), 10)
  await page.getByRole('button', { name: '53 more comments' }).click()
  await page.locator('article').nth(59).waitFor()
  const first = await page.locator('article').nth(10).getAttribute('id')
  assert.equal(await focusedComment(page), first)
  await page.getByRole('button', { name: '3 more comments' }).click()
  await page.locator('article').nth(62).waitFor()
  assert.equal(await page.getByRole('button', { name: /more comment/ }).count(), 0)
  const ids = await page.locator('article').evaluateAll((articles) => articles.map(({ id }) => id))
  assert.equal(new Set(ids).size, 63)
})

test('the four sorts order the thread, and load more continues in that order', async (t) => {
  const record = newRecord()
  const comments = []
  for (let i = 0; i < 12; i++) comments.push(await w.service.comment(record, `Comment ${i}`))
  await w.service.call('POST', `comments/${comments[3].id}/like`, w.service.bob)
  await w.service.comment(record, 'Here.', { parent: comments[5].id })
  const { page } = await w.open(t, { record, attributes: 'sort="oldest"' })
  const bodies = () => page.locator('.list > article > .content > .body').allTextContents()
  const sorted = async (/** @type {string} */ sort, /** @type {string} */ first) => {
    await page.getByLabel('Sort by').selectOption(sort)
    await page.waitForFunction((first) => {
      const root = document.querySelector('comment-thread')?.shadowRoot
      return root?.querySelector('article .body')?.textContent?.trim() === first
    }, first)
  }
  assert.equal((await bodies())[0].trim(), 'Comment 0')
  await sorted('newest', 'Comment 11')
  await sorted('most_replied', 'Comment 5')
  await sorted('most_liked', 'Comment 3')
  await page.getByRole('button', { name: '2 more comments' }).click()
  await page.locator('.list > article').nth(11).waitFor()
  assert.equal(new Set(await bodies()).size, 12)
})

test('the remaining replies load on demand and in order', async (t) => {
  const record = newRecord()
  const parent = await w.service.comment(record, 'Ask me.')
  for (let i = 0; i < 60; i++) await w.service.comment(record, `Reply ${i}`, { parent: parent.id })
  const { page } = await w.open(t, { record })
  assert.equal(await page.locator('.replies article').count(), 3)
  await page.getByRole('button', { name: '57 more replies' }).click()
  await page.locator('.replies article').nth(49).waitFor()
  await page.getByRole('button', { name: '10 more replies' }).click()
  await page.locator('.replies article').nth(59).waitFor()
  const bodies = await page.locator('.replies .body').allTextContents()
  assert.deepEqual(bodies.map((body) => body.trim()), Array.from({ length: 60 }, (_, i) => `Reply ${i}`))
  assert.equal(await page.getByRole('button', { name: /more repl/ }).count(), 0)
})

test('a branch of ten levels opens with one press, and a collapsed branch shows how many replies it hides', async (t) => {
  const record = newRecord()
  const top = await w.service.comment(record, 'Level 0')
  let parent = top
  for (let level = 1; level <= 10; level++) parent = await w.service.comment(record, `Level ${level}`, { parent: parent.id })
  const { page } = await w.open(t, { record })
  const deepest = article(page, parent.id)
  while (!(await deepest.count())) {
    const before = await page.locator('article').count()
    assert.ok(before < 11, 'one press is enough')
    await page.getByRole('button', { name: '1 more reply' }).click()
    await page.locator('article').nth(10).waitFor()
  }
  assert.deepEqual((await page.locator('.body').allTextContents()).map((body) => body.trim()), Array.from({ length: 11 }, (_, level) => `Level ${level}`))
  assert.equal(await page.getByRole('button', { name: /more repl/ }).count(), 0)
  await article(page, top.id).locator('> .line').click()
  await page.getByRole('button', { name: '10 more replies' }).click()
  assert.equal(await deepest.isVisible(), true)
})

test('the pinned comment comes first, and moderators pin', async (t) => {
  const record = newRecord()
  const old = await w.service.comment(record, 'Read this first.')
  const other = await w.service.comment(record, 'Newer.')
  const { page } = await w.open(t, { record, who: w.service.moderator })
  await choose(page, old.id, 'Pin')
  await article(page, old.id).getByText('Pinned').waitFor()
  assert.equal(await article(page, old.id).getAttribute('part'), 'comment pinned')
  await choose(page, other.id, 'Pin')
  await article(page, other.id).getByText('Pinned').waitFor()
  await openMenu(page, other.id)
  await page.getByRole('menuitem', { name: 'Unpin' }).waitFor()
  assert.equal(await page.getByText('Pinned', { exact: true }).count(), 1)
  await page.reload()
  await page.locator('article').first().waitFor()
  assert.equal(await page.locator('article').first().getAttribute('id'), `comment-${other.id}`)
})

test('a permalink that is being fetched when the visitor changes is fetched for the new one, and nothing failed', async (t) => {
  const record = newRecord()
  const parent = await w.service.comment(record, 'A parent.')
  for (let n = 0; n < 10; n += 1) await w.service.comment(record, `Newer, ${n}.`)
  const { page } = await w.open(t, {
    record,
    hash: `#comment-${parent.id}`,
    ready: false,
    // Requests by guests get no response.
    prepare: (page) => page.route(new RegExp(`comments/${parent.id}$`), (route) => void (route.request().headers().authorization && route.continue())),
  })
  await page.waitForRequest(new RegExp(`comments/${parent.id}$`))
  const said = await page.evaluateHandle((token) => {
    /** @type {any} */
    const thread = document.querySelector('comment-thread')
    /** @type {string[]} */
    const said = []
    const toast = thread.shadowRoot.querySelector('.toast')
    new MutationObserver(() => said.push(toast.textContent)).observe(toast, { childList: true, subtree: true, characterData: true })
    thread.auth = token
    return said
  }, w.service.ada)
  await article(page, parent.id).waitFor()
  assert.deepEqual((await said.jsonValue()).filter(Boolean), [])
})

test('a permalink shows a comment anywhere in the thread, focused', async (t) => {
  const record = newRecord()
  const oldest = await w.service.comment(record, 'The oldest.')
  const child = await w.service.comment(record, 'Its answer.', { parent: oldest.id })
  const deep = await w.service.comment(record, 'The answer to that.', { parent: child.id })
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${deep.id}` })
  await article(page, deep.id).waitFor()
  await page.waitForFunction((id) => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.id === id, `comment-${deep.id}`)
  assert.equal(await page.locator(`#comment-${oldest.id} #comment-${child.id} #comment-${deep.id}`).count(), 1)
  // Loading more reaches the same comment again.
  await page.getByRole('button', { name: /more comment/ }).click()
  await page.waitForFunction(() => !document.querySelector('comment-thread')?.shadowRoot?.querySelector('.foot button'))
  assert.equal(await page.locator(`#comment-${oldest.id}`).count(), 1)
  assert.equal(await page.locator('.list > article').count(), 13)
  // Follows another link without a reload.
  const link = page.locator('.list > article').nth(4).locator('> .content header a')
  const href = await link.getAttribute('href')
  await link.click()
  assert.equal(new URL(page.url()).hash, href?.slice(href.indexOf('#')))
  await page.waitForFunction((hash) => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.id === hash, href?.split('#')[1])
})

test('a linked comment outside the list has a separate heading, until the thread is shown or another one is followed', async (t) => {
  const record = newRecord()
  const other = await w.service.comment(record, 'The very first.')
  const oldest = await w.service.comment(record, 'The oldest.')
  const child = await w.service.comment(record, 'Its answer.', { parent: oldest.id })
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${child.id}` })
  const heading = page.getByRole('heading', { name: 'Linked comment' })
  const linked = page.locator('.linked')
  const list = page.locator('.list:not(.linked) > article')
  await heading.waitFor()
  await linked.locator(`#comment-${oldest.id} #comment-${child.id}`).waitFor()
  assert.match((await list.first().textContent()) ?? '', /Newer 11/)
  await isAccessible(page, 'a linked comment')
  await page.evaluate((id) => (location.hash = `comment-${id}`), other.id)
  await linked.locator(`#comment-${other.id}`).waitFor()
  assert.equal(await linked.locator('article').count(), 1)
  assert.equal(await list.last().getAttribute('id'), `comment-${oldest.id}`, 'the one before is in the list')
  await page.getByRole('button', { name: 'Show full thread' }).press('Enter')
  await heading.waitFor({ state: 'detached' })
  assert.equal(await list.last().getAttribute('id'), `comment-${other.id}`)
  assert.ok(await page.evaluate(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.matches('.list:not(.linked)')))
  const shown = (/** @type {number} */ id) => article(page, id).locator('> .content > header').evaluate((header) => {
    const { top, bottom } = header.getBoundingClientRect()
    return top > -2 && bottom < innerHeight + 2
  })
  assert.ok(await shown(other.id), 'the press leads to the comment')
  await page.getByRole('button', { name: /more comment/ }).click()
  await page.waitForFunction(() => !document.querySelector('comment-thread')?.shadowRoot?.querySelector('.foot button'))
  assert.equal(await list.count(), 14)
  const ids = await list.evaluateAll((articles) => articles.map(({ id }) => Number(id.slice(8))))
  assert.deepEqual(ids, ids.toSorted((a, b) => b - a), 'each is where its page has it')
})

test('a linked comment isn’t counted among those that are left', async (t) => {
  const record = newRecord()
  const oldest = await w.service.comment(record, 'The oldest.')
  const second = await w.service.comment(record, 'The second.')
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${oldest.id}` })
  await page.getByRole('heading', { name: 'Linked comment' }).waitFor()
  const more = page.getByRole('button', { name: /more comment/ })
  assert.equal(await more.textContent(), '3 more comments')
  await page.getByRole('button', { name: 'Show full thread' }).click()
  assert.equal(await more.textContent(), '3 more comments')
  assert.equal(await page.locator('.list > article').count(), 11)
  await page.evaluate((id) => (location.hash = `comment-${id}`), second.id)
  await article(page, second.id).waitFor()
  assert.equal(await more.textContent(), '2 more comments')
  await more.click()
  await more.waitFor({ state: 'detached' })
  assert.equal(await page.locator('.list > article').count(), 14)
})

test('the button stays while there is a next page, although the linked comment is all that it brings', async (t) => {
  const record = newRecord()
  const oldest = await w.service.comment(record, 'The oldest.')
  for (let i = 0; i < 10; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record })
  const more = page.getByRole('button', { name: /more comment/ })
  assert.equal(await more.textContent(), '1 more comment')
  await page.evaluate((id) => (location.hash = `comment-${id}`), oldest.id)
  await page.getByRole('heading', { name: 'Linked comment' }).waitFor()
  assert.equal(await more.textContent(), '1 more comment')
  await more.click()
  await more.waitFor({ state: 'detached' })
  assert.equal(await page.locator('.list > article').count(), 11)
  assert.equal(await page.getByRole('heading', { name: 'Linked comment' }).isVisible(), false)
})

test('linked comments that the list lacks change neither the number of those that are left nor the button', async (t) => {
  const record = newRecord()
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Listed ${i}`)
  const { page } = await w.open(t, { record, who: w.service.moderator })
  const more = page.getByRole('button', { name: /more comment/ })
  for (const isRejected of [true, true, false, false]) {
    const { id } = await w.service.comment(record, 'Not listed.', { who: w.service.bob })
    if (isRejected) await w.service.call('POST', `comments/${id}/reject`, w.service.moderator, {})
    await page.evaluate((id) => (location.hash = `comment-${id}`), id)
    await article(page, id).waitFor()
    assert.equal(await more.textContent(), '2 more comments')
  }
  await more.click()
  await more.waitFor({ state: 'detached' })
  assert.equal(await page.locator('.list > article').count(), 16)
})

test('pages come before a linked comment that the list does not reach yet, and the page that has it takes it in', async (t) => {
  const record = newRecord()
  const oldest = await w.service.comment(record, 'The oldest.')
  for (let i = 0; i < 62; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${oldest.id}` })
  await page.getByRole('button', { name: 'Show full thread' }).click()
  const articles = page.locator('.list > article')
  const more = page.getByRole('button', { name: /more comment/ })
  await more.click()
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelectorAll('.list > article').length === 61)
  assert.equal(await articles.last().getAttribute('id'), `comment-${oldest.id}`)
  await more.click()
  await more.waitFor({ state: 'detached' })
  const ids = await articles.evaluateAll((articles) => articles.map(({ id }) => Number(id.slice(8))))
  assert.deepEqual([ids.length, ids], [63, ids.toSorted((a, b) => b - a)])
})

test('another order shows the list alone, and a comment of the list has no heading when it is followed', async (t) => {
  const record = newRecord()
  const oldest = await w.service.comment(record, 'The oldest.')
  for (let i = 0; i < 12; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${oldest.id}` })
  const heading = page.getByRole('heading', { name: 'Linked comment' })
  await heading.waitFor()
  await page.getByRole('combobox').selectOption('oldest')
  await heading.waitFor({ state: 'detached' })
  await page.locator('.list > article').first().getByText('The oldest.').waitFor()
  await article(page, oldest.id).locator('header a').click()
  await page.waitForFunction((id) => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.id === id, `comment-${oldest.id}`)
  assert.equal(await heading.count(), 0)
  assert.equal(await page.locator(`#comment-${oldest.id}`).count(), 1)
})

test('permalinks stay on a page whose path begins with two slashes', async (t) => {
  const path = `//elsewhere.example/${newRecord()}`
  const { page, id } = await w.open(t, { comment: 'Here.', path, hash: '?draft=1#top' })
  const link = article(page, id).locator('header a')
  assert.equal(await link.evaluate((a) => /** @type {HTMLAnchorElement} */ (a).href), `${w.site.url}${path}?draft=1#comment-${id}`)
  await link.click()
  assert.equal(page.url(), `${w.site.url}${path}?draft=1#comment-${id}`)
})

test('a permalink to a comment outside the thread shows a notice above the list, without an error, until the notice is closed', async (t) => {
  const elsewhere = await w.service.comment(newRecord(), 'Elsewhere.')
  const { page, id } = await w.open(t, { comment: 'Here.', hash: `#comment-${elsewhere.id}` })
  const notice = page.locator('[part=notice]')
  await notice.getByText("This comment doesn't exist or was removed.").waitFor()
  assert.equal(await page.locator('.error:not(:empty)').count(), 0)
  await notice.getByRole('button', { name: 'Close' }).click()
  assert.equal(await notice.count(), 0)
  await page.evaluate(() => (location.hash = 'comment-999999999'))
  await notice.waitFor()
  await page.evaluate((id) => (location.hash = `comment-${id}`), id)
  await notice.waitFor({ state: 'detached' })
  assert.deepEqual((await page.locator('article .body').allTextContents()).map((body) => body.trim()), ['Here.'])
})

test('a permalink that cannot be loaded is shown as a failure, not as a missing comment', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Old.')
  for (let i = 0; i < 10; i++) await w.service.comment(record, `Newer ${i}`)
  const { page } = await w.open(t, { record, hash: `#comment-${id}`, prepare: (page) => page.route(/\/comments\/\d+$/, (route) => route.abort()) })
  await page.locator('.toast.error').getByText('No connection').waitFor()
  assert.equal(await page.locator('[part=notice]').count(), 0)
})

test('counts come in one request for all of a page, without ids that no record can have', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  const parent = await w.service.comment(one, 'One.')
  await w.service.comment(one, 'And a reply.', { parent: parent.id })
  await counted(one, 2)
  /** @type {string[]} */
  const requests = []
  const count = (/** @type {string} */ record) => `<p><comment-count type="posts" record="${record}"></comment-count></p>`
  const { page } = await w.open(t, {
    html: [one, two, one, 'not an id', ''].map(count).join(''),
    prepare: async (page) => page.on('request', (request) => request.url().includes('/counts') && requests.push(request.url())),
  })
  await page.waitForFunction(() => document.querySelector('comment-count')?.textContent)
  assert.deepEqual(await page.locator('comment-count').allTextContents(), ['2', '0', '2', '', ''])
  assert.equal(requests.length, 1)
  await page.locator('comment-count').nth(1).evaluate((element, record) => element.setAttribute('record', record), one)
  await page.waitForFunction(() => document.querySelectorAll('comment-count')[1].textContent === '2')
})

test('many counts take requests of at most 50 threads and 6,000 characters', async (t) => {
  for (const [id, expected] of /** @type {const} */ ([['', 4], ['x'.repeat(100), 4], ['~'.repeat(120), 4]])) {
    /** @type {string[]} */
    const requests = []
    const { page } = await w.open(t, {
      html: Array.from({ length: 120 }, (_, i) => `<comment-count type="posts" record="${i}${id}"></comment-count>`).join(''),
      prepare: async (page) => page.on('request', (request) => request.url().includes('/counts') && requests.push(request.url())),
    })
    await page.waitForFunction(() => [...document.querySelectorAll('comment-count')].every(({ textContent }) => textContent === '0'))
    assert.equal(requests.length, expected)
    assert.ok(requests.every((url) => url.length < 6_000), requests.map((url) => url.length).join())
  }
})

test('a type that doesn’t exist affects no other count', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  await counted(record, 1)
  /** @type {Promise<import('playwright-core').Response> | undefined} */
  let refusal
  const count = (/** @type {string} */ type) => `<comment-count type="${type}" record="${record}"></comment-count>`
  const { page, errors } = await w.open(t, {
    html: count('posts') + count('nothing'),
    prepare: async (page) => void (refusal = page.waitForResponse(/threads=nothing/)),
  })
  await page.waitForFunction(() => document.querySelector('comment-count')?.textContent === '1')
  await (await refusal)?.finished()
  assert.equal(await page.locator('comment-count').nth(1).textContent(), '')
  assert.deepEqual(errors, [])
})

test('the language is that of the nearest ancestor, and follows changes', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord(), lang: 'de' })
  await page.getByPlaceholder('Schreibe einen Kommentar…').waitFor()
  await page.evaluate(() => document.documentElement.setAttribute('lang', 'fr'))
  await page.getByPlaceholder('Écrivez un commentaire…').waitFor()
  await thread.evaluate((element) => element.setAttribute('lang', 'es'))
  await page.getByPlaceholder('Escribe un comentario…').waitFor()
  await thread.evaluate((element) => (/** @type {any} */ (element).labels = { write_comment: 'Mine' }) && element.setAttribute('lang', 'en'))
  await page.getByPlaceholder('Mine').waitFor()
})

test('if the page’s language has no labels, plural forms are English', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Ask me.')
  for (let n = 0; n < 8; n++) await w.service.comment(record, `Reply ${n}`, { parent: id })
  const { page } = await w.open(t, { record, lang: 'ko' })
  await page.getByRole('button', { name: '5 more replies' }).waitFor()
})

test('an element in Arabic is written from right to left, on any page', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord(), attributes: 'lang="ar"' })
  const direction = () => page.locator('comment-thread section').evaluate((section) => getComputedStyle(section).direction)
  assert.equal(await direction(), 'rtl')
  await thread.evaluate((element) => element.setAttribute('dir', 'ltr'))
  assert.equal(await direction(), 'ltr')
})

test('the theme is the page’s, or the one that is set, at once', async (t) => {
  const { page, thread } = await w.open(t, { comment: 'Hello.', context: { colorScheme: 'dark' } })
  const colour = () => page.locator('article .body').evaluate((body) => getComputedStyle(body).color)
  assert.equal(await colour(), 'rgb(238, 238, 238)')
  await thread.evaluate((element) => element.setAttribute('theme', 'light'))
  assert.equal(await colour(), 'rgb(31, 35, 40)')
})

test('custom properties and parts style the widget', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello.')
  await w.service.comment(record, 'Hi.', { parent: id })
  const head = `<style>
    comment-thread { --comment-text: rgb(1, 2, 3); --comment-radius: 3px; --comment-font: monospace }
    comment-thread::part(author) { letter-spacing: 4px } comment-thread::part(reply) { opacity: .5 }
  </style>`
  const { page } = await w.open(t, { record, head })
  const style = (/** @type {string} */ selector, /** @type {string} */ name) =>
    page.locator(selector).first().evaluate((element, name) => getComputedStyle(element).getPropertyValue(name), name)
  assert.equal(await style('article .body', 'color'), 'rgb(1, 2, 3)')
  assert.equal(await style('article .body', 'font-family'), 'monospace')
  assert.equal(await style('.editor', 'border-top-left-radius'), '3px')
  assert.equal(await style('article b', 'letter-spacing'), '4px')
  assert.equal(await style('.replies article', 'opacity'), '0.5')
  for (const part of ['comment', 'body', 'author', 'actions', 'button', 'editor', 'reply']) {
    assert.ok((await page.locator(`comment-thread [part~=${part}]`).count()) > 0, part)
  }
})

test('comment-ready notifies the page', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), init: `addEventListener('comment-ready', (event) => (window.ready = event.composed && event.bubbles))` })
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).ready), true)
})

test('a token that was not accepted is replaced once, and the thread is that visitor’s', async (t) => {
  const expired = token(7, 'Ada Lovelace', { exp: 1000 })
  const init = `window.asked = 0
    document.addEventListener('DOMContentLoaded', () => {
      document.querySelector('comment-thread').auth = async () => (window.asked++ ? ${JSON.stringify(w.service.ada)} : ${JSON.stringify(expired)})
    })`
  const { page } = await w.open(t, { comment: 'Mine.', init })
  await isVisitor(page, 'Ada Lovelace')
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).asked), 2)
})

test('setting auth again shows the thread as that visitor, and null as a guest', async (t) => {
  const { page, thread } = await w.open(t, { record: newRecord(), who: w.service.bob })
  await isVisitor(page, 'Bob')
  await rebuilding(page, () => become(thread, w.service.ada))
  await isVisitor(page, 'Ada Lovelace')
  await rebuilding(page, () => become(thread, null))
  await page.getByPlaceholder('Write a comment…').focus()
  await page.getByLabel('Your name').waitFor()
})

test('the token goes to the API in a header, and nowhere else', async (t) => {
  /** @type {import('playwright-core').Request[]} */
  const requests = []
  /** @type {Promise<any> | undefined} */
  let picture
  const { page } = await w.open(t, {
    comment: 'See [this](https://example.org/page) and ![that](https://example.org/image.png).',
    who: w.service.ada,
    prepare: async (page) => {
      picture = page.waitForRequest(/image\.png/)
      page.on('request', (request) => requests.push(request))
    },
  })
  await picture
  await page.getByRole('textbox').first().fill('Hello')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').nth(1).waitFor()
  const secret = w.service.ada.split('.')[2]
  const bearers = []
  for (const request of requests) {
    const url = request.url()
    assert.ok(!url.includes(secret) && !request.postData()?.includes(secret), url)
    const { authorization, ...others } = await request.allHeaders()
    assert.ok(!JSON.stringify(others).includes(secret), url)
    if (authorization?.includes(secret)) bearers.push(url)
  }
  assert.ok(bearers.length > 1 && bearers.every((url) => url.startsWith(w.service.api)), bearers.join())
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie)).includes(secret))
})

test('the sort that was chosen last is shown, whichever response comes last', async (t) => {
  const record = newRecord()
  const first = await w.service.comment(record, 'First.')
  await w.service.comment(record, 'Second.')
  const { page } = await w.open(t, { record })
  const oldest = page.waitForResponse(/sort=oldest/)
  const late = page.waitForResponse(/sort=most_liked/)
  await page.route(/sort=most_liked/, async (route) => {
    const response = await route.fetch()
    await oldest
    await route.fulfill({ response })
  })
  await page.getByRole('combobox').selectOption('most_liked')
  await page.getByRole('combobox').selectOption('oldest')
  await (await late).finished()
  await page.waitForFunction((id) => document.querySelector('comment-thread')?.shadowRoot?.querySelector('article')?.id === id, `comment-${first.id}`)
})

test('replies that are not shown yet can be loaded after a new one was shown', async (t) => {
  const record = newRecord()
  const parent = await w.service.comment(record, 'Ask me.')
  for (const n of [1, 2, 3, 4]) await w.service.comment(record, `Reply ${n}.`, { parent: parent.id })
  const { page } = await w.open(t, { record })
  await page.getByRole('button', { name: '1 more reply' }).waitFor()
  const fifth = await w.service.comment(record, 'Reply 5.', { parent: parent.id })
  await page.evaluate((id) => (location.hash = `comment-${id}`), fifth.id)
  await article(page, fifth.id).waitFor()
  await page.getByRole('button', { name: '1 more reply' }).click()
  await page.getByText('Reply 4.').waitFor()
})

for (const reducedMotion of /** @type {const} */ (['no-preference', 'reduce'])) {
  test(`one’s new comment comes first, also before a pinned one, until the next load, with motion: ${reducedMotion}`, async (t) => {
    const record = newRecord()
    const pinned = await w.service.comment(record, 'Pinned.')
    await w.service.call('POST', `comments/${pinned.id}/pin`, w.service.moderator)
    const { page } = await w.open(t, { record, who: w.service.ada, context: { reducedMotion } })
    await page.getByPlaceholder('Write a comment…').fill('My own.')
    await page.keyboard.press('Control+Enter')
    const own = page.locator('.list > article').first()
    await own.getByText('My own.').waitFor()
    await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.matches('article:first-child'))
    const { box, duration, tint } = await own.evaluate((own) => ({
      box: getComputedStyle(own).outlineColor,
      duration: getComputedStyle(own).animationDuration,
      tint: getComputedStyle(own, '::before').animationDuration,
    }))
    assert.equal(box, 'rgba(0, 0, 0, 0)')
    assert.deepEqual([duration, tint], reducedMotion === 'reduce' ? ['0s', '0s'] : ['0.15s', '2s'])
    await page.reload()
    await page.locator('article').nth(1).waitFor()
    assert.equal(await page.locator('article').first().getAttribute('id'), `comment-${pinned.id}`)
  })
}
