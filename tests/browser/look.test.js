import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, article, become, deleteComment, isVisitor, newRecord, openMenu, rebuilding, token, violations, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })

/** Posts a comment with a chain of replies, each to the previous one. @param {string} record @param {number} count */
async function branch(record, count) {
  const comments = [await w.service.comment(record, 'Level 0.', { who: token(50, 'Person 0') })]
  for (let i = 1; i < count; i++) comments.push(await w.service.comment(record, `Level ${i}.`, { who: token(50 + i, `Person ${i}`), parent: comments[i - 1].id }))
  return comments
}

/**
 * Shows a text as a comment in a separate thread. Returns the page and the comment's body.
 * @param {import('node:test').TestContext} t @param {string} text @param {string} [init]
 */
async function shown(t, text, init) {
  const { page, id } = await w.open(t, { comment: text, init })
  return { page, body: article(page, id).locator('.body') }
}

/**
 * Opens the moderators’ page. Returns the page and the body of the first comment with this text.
 * @param {import('node:test').TestContext} t @param {string} text @param {string} [init]
 */
async function moderated(t, text, init) {
  const { page } = await w.moderate(t, { init })
  await page.getByRole('tab', { name: 'All' }).click()
  const body = page.locator('.body', { hasText: text }).first()
  await body.waitFor()
  return { page, body }
}

const GROUNDS = { white: '#111 on #fff', cream: '#3a2e24 on #fbf6ea', black: '#eee on #111', blue: '#fff on #002b5c', grey: '#666 on #fff', 'light grey': '#aaa on #222' }
for (const [name, colours] of Object.entries(GROUNDS)) {
  test(`axe finds nothing on a ${name} page without a color scheme: ${colours}`, async (t) => {
    const [text, ground] = colours.split(' on ')
    const record = newRecord()
    const [first] = await branch(record, 5)
    await w.service.comment(record, 'Some `code`, https://example.org and\n\n> a quote\n\n```\nfn main() {}\n```', { parent: first.id })
    await w.service.call('PUT', `posts/${record}`, w.service.moderator, { author_id: 50 })
    await w.service.call('POST', `comments/${first.id}/pin`, w.service.moderator)
    await w.service.call('POST', `comments/${first.id}/like`, w.service.ada)
    const { page } = await w.open(t, {
      record,
      who: w.service.ada,
      head: `<style>:root { color-scheme: normal } body { color: ${text}; background: ${ground} }</style>`,
      hash: '#comment-999999999',
      prepare: async (page) => {
        await page.route(/gravatar/, (route) => route.abort())
        await answering(({ data }) => (data.at(-1).replies[0].is_approved = false))(page)
      },
    })
    await page.getByText("This comment doesn't exist or was removed.").waitFor()
    assert.deepEqual(await violations(page), [])
  })
}

test('the theme and custom properties take precedence over the color of the page', async (t) => {
  const { page, thread } = await w.open(t, { comment: 'Hello.', head: '<style>body { color: #eee; background: #111 }</style>', context: { reducedMotion: 'reduce' } })
  const accent = () => page.locator('.primary').first().evaluate((button) => getComputedStyle(button).backgroundColor)
  const dark = await accent()
  await thread.evaluate((element) => element.setAttribute('theme', 'light'))
  assert.notEqual(await accent(), dark)
  await thread.evaluate((element) => element.removeAttribute('theme'))
  assert.equal(await accent(), dark)
  await page.addStyleTag({ content: 'comment-thread { --comment-accent: rgb(1, 2, 3) }' })
  assert.equal(await accent(), 'rgb(1, 2, 3)')
})

for (const [theme, colour, ground] of /** @type {const} */ ([['dark', '#111', '#fff'], ['light', '#eee', '#111']])) {
  test(`a toast has the colors of the theme ${theme} on a page with others`, async (t) => {
    const head = `<style>body { color: ${colour}; background: ${ground} }</style>`
    const { page, id } = await w.open(t, { comment: 'Hello.', head, attributes: `theme="${theme}"`, context: { reducedMotion: 'reduce' } })
    await page.context().setOffline(true)
    await article(page, id).getByRole('button', { name: 'Like' }).click()
    await page.locator('.toast.error').waitFor()
    // The colors change in a transition.
    await page.waitForFunction(() => {
      const { shadowRoot } = /** @type {Element} */ (document.querySelector('comment-thread'))
      const [toast, section] = ['.toast', 'section'].map((selector) => getComputedStyle(/** @type {Element} */ (shadowRoot?.querySelector(selector))))
      return toast.backgroundColor === section.backgroundColor && toast.borderRadius === section.borderRadius
    })
  })
}

test('forced colors keep the edges of elements that have only a background', async (t) => {
  const record = newRecord()
  await branch(record, 2)
  const { page } = await w.open(t, { record, context: { forcedColors: 'active' }, prepare: (page) => page.route(/gravatar/, (route) => route.abort()) })
  for (const selector of ['.primary', '.avatar']) {
    assert.equal(await page.locator(selector).last().evaluate((element) => getComputedStyle(element).borderTopStyle), 'solid', selector)
  }
})

test('a table breaks no number or word and scrolls, also on the moderators’ page, and words elsewhere break', async (t) => {
  const row = (/** @type {string} */ cell) => `|${` ${cell} |`.repeat(8)}`
  const { page, body } = await shown(t, `${'W'.repeat(100)}\n\n${row('Quarter')}\n${row('---')}\n${row('12,345.00')}`)
  const card = await moderated(t, '12,345.00')
  for (const [where, shown] of /** @type {const} */ ([[page, body], [card.page, card.body]])) {
    await where.setViewportSize({ width: 375, height: 800 })
    const heights = await shown.locator('td').evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight)))
    assert.ok(heights.length === 8 && heights.every((lines) => lines < 2), `${heights}`)
    assert.ok(await shown.locator('table').evaluate((table) => table.scrollWidth > table.clientWidth), 'it scrolls')
    assert.ok(await shown.locator('p').evaluate((p) => p.scrollWidth <= p.clientWidth), 'a long word breaks')
  }
})

for (const [how, init] of Object.entries({ setHTML: '', 'its own allow-list': 'delete Element.prototype.setHTML' })) {
  test(`lines break where they were broken, and hard breaks not twice, with ${how}`, async (t) => {
    const comment = await shown(t, 'soft\nbreak\n\nhard  \nbreak\n\n- tight\n  item\n  - inner\n\n**bold**\nend', init)
    for (const { body } of [comment, await moderated(t, 'soft', init)]) {
      const text = await body.evaluate((body) => /** @type {HTMLElement} */ (body).innerText)
      assert.deepEqual(text.split(/\n+/).filter(Boolean), ['soft', 'break', 'hard', 'break', 'tight', 'item', 'inner', 'bold', 'end'])
      assert.match(text, /hard\nbreak/)
      const heights = await body.locator('> p').evaluateAll((all) => all.map((p) => Math.round(p.getBoundingClientRect().height / parseFloat(getComputedStyle(p).lineHeight))))
      assert.deepEqual(heights, [2, 2, 2])
      const list = body.locator('> ul')
      assert.equal(await list.evaluate((ul) => Math.round(ul.getBoundingClientRect().height / parseFloat(getComputedStyle(ul).lineHeight))), 3)
    }
  })

  test(`addresses in a text are links, and not in code or links, with ${how}`, async (t) => {
    const { body } = await shown(
      t,
      'See https://example.org/a. (http://example.org/b) https://example.org/c_(d)! https://example.org/e?f=1&g=2, `https://example.org/code` [https://example.org/h](https://example.org/link) ftp://example.org',
      init,
    )
    const links = await body.locator('a').evaluateAll((all) => all.map((a) => `${a.textContent} ${a.getAttribute('href')} ${a.getAttribute('rel')}`))
    const rel = 'nofollow ugc noopener'
    const addresses = ['https://example.org/a', 'http://example.org/b', 'https://example.org/c_(d)', 'https://example.org/e?f=1&g=2']
    assert.deepEqual(links, [...addresses.map((address) => `${address} ${address} ${rel}`), `https://example.org/h https://example.org/link ${rel}`])
  })
}

for (const [how, init] of Object.entries({ setHTML: '', 'its own allow-list': 'delete Element.prototype.setHTML' })) {
  test(`an upload has its place before it is loaded, and its own shape, with ${how}`, async (t) => {
    const record = newRecord()
    const [wide, tall] = ['wide-320x240.png', 'tall-1000x4000.webp'].map((name) => `https://example.org/media/${name}`)
    const { id } = await w.service.comment(record, `![wide](${wide})\n\n![tall](${tall})\n\n![other](https://example.org/other.png)`)
    const { page } = await w.open(t, { record, init, prepare: (page) => page.route(/example\.org/, () => {}) })
    const images = await article(page, id).locator('.body img').evaluateAll((all) =>
      all.map((image) => {
        const { width, height } = image.getBoundingClientRect()
        return [image.getAttribute('width'), image.getAttribute('height'), width, height]
      }),
    )
    assert.deepEqual(images[0], ['320', '240', 320, 240])
    assert.deepEqual(images[1], ['96', '384', 96, 384])
    assert.deepEqual(images[2].slice(0, 2), [null, null])
  })
}

test('an image links to its full size, unless its writer has made another link', async (t) => {
  const { page, body } = await shown(t, '![A cat](https://example.org/cat.png)\n\n[![linked](https://example.org/dog.png)](https://example.org/page)')
  assert.equal(await page.getByRole('link', { name: 'A cat' }).getAttribute('href'), 'https://example.org/cat.png')
  assert.equal(await body.locator('a').count(), 2)
  assert.equal(await body.locator('a:has(img[alt=linked])').getAttribute('href'), 'https://example.org/page')
  assert.equal(await body.locator('img').first().getAttribute('referrerpolicy'), 'no-referrer')
})

test('a line hides and shows the replies to a comment, and a permalink opens hidden replies', async (t) => {
  const record = newRecord()
  const [first, second, third] = await branch(record, 3)
  const { page } = await w.open(t, { record, hash: `#comment-${third.id}` })
  await article(page, third.id).waitFor()
  const line = article(page, first.id).locator('> .line')
  assert.deepEqual([await line.getAttribute('aria-label'), await line.getAttribute('aria-expanded')], ['Collapse replies', 'true'])
  await line.click()
  assert.equal(await line.getAttribute('aria-expanded'), 'false')
  assert.equal(await article(page, second.id).isVisible(), false)
  await page.getByRole('button', { name: '2 more replies' }).click()
  assert.ok(await article(page, third.id).isVisible())
  await line.click()
  await page.evaluate(() => (location.hash = ''))
  await page.evaluate((id) => (location.hash = `#comment-${id}`), third.id)
  await article(page, third.id).waitFor()
  assert.equal(await line.getAttribute('aria-expanded'), 'true')
})

test('a comment without shown replies has no line', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Alone.' })
  assert.equal(await article(page, id).locator('> .line').isVisible(), false)
})

for (const [viewport, indents] of /** @type {const} */ ([[900, 2], [400, 1]])) {
  test(`at ${viewport} pixels replies have ${indents} indents, and from the third level on a link to the comment they reply to`, async (t) => {
    const record = newRecord()
    const comments = await branch(record, 5)
    const { page } = await w.open(t, { record, context: { viewport: { width: viewport, height: 900 } }, hash: `#comment-${comments[4].id}` })
    await article(page, comments[4].id).waitFor()
    const places = await Promise.all(comments.map(async ({ id }) => Math.round((await article(page, id).locator('> .avatar').boundingBox())?.x ?? 0)))
    assert.equal(new Set(places).size - 1, indents, places.join())
    const link = (/** @type {number} */ level) => article(page, comments[level].id).locator('> .content > header .parent')
    assert.deepEqual([await link(2).count(), await link(3).textContent(), await link(4).textContent()], [0, '↳ Person 2', '↳ Person 3'])
    await link(3).click()
    await page.waitForFunction((id) => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.id === id, `comment-${comments[2].id}`)
  })
}

test('the heading shows the number of comments, and follows one’s own new and deleted ones', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, prepare: answering(({ meta }) => (meta.count = 52)) })
  const count = page.locator('[part=count]')
  assert.equal(await count.textContent(), '52')
  await page.getByPlaceholder('Write a comment…').fill('One more.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  assert.equal(await count.textContent(), '53')
  await deleteComment(page, Number((await page.locator('article').getAttribute('id'))?.slice(8)))
  await page.getByText('Comment deleted').waitFor()
  assert.equal(await count.textContent(), '52')
})

test('a returning visitor sees how many comments are new', async (t) => {
  const record = newRecord()
  const old = await w.service.comment(record, 'Old.', { who: w.service.bob })
  const { page } = await w.open(t, { record, who: w.service.ada })
  assert.equal(await page.locator('.since').textContent(), '')
  await page.getByPlaceholder('Write a comment…').fill('My own.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').nth(1).waitFor()
  await w.service.comment(record, 'New.', { who: w.service.bob })
  await w.service.comment(record, 'A new reply.', { who: w.service.bob, parent: old.id })
  await page.reload()
  await page.getByText('2 new since your visit').waitFor()
  await page.reload()
  await page.locator('article').first().waitFor()
  assert.equal(await page.locator('.since').textContent(), '')
})

test('the number of new comments stays when the thread is loaded again, without one’s own', async (t) => {
  const { page, record, thread } = await w.open(t, { comment: 'Old.', by: w.service.bob })
  await w.service.comment(record, 'New.', { who: w.service.bob })
  await page.reload()
  await page.getByText('1 new since your visit').waitFor()
  await rebuilding(page, () => become(thread, w.service.ada))
  await isVisitor(page, 'Ada Lovelace')
  await page.keyboard.type('My own.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').nth(2).waitFor()
  await thread.evaluate((element) => element.setAttribute('lang', 'de'))
  await page.getByPlaceholder('Schreibe einen Kommentar…').waitFor()
  assert.match((await page.locator('.since').textContent()) ?? '', /^1 /)
})

test('people without a picture have initials on a color that depends on the name', async (t) => {
  const record = newRecord()
  const picture = ''
  await w.service.comment(record, 'One.', { who: token(80, 'ada  king lovelace', { picture }) })
  await w.service.comment(record, 'Two.', { who: token(81, 'Zoë', { picture }) })
  const { page } = await w.open(t, { record, who: token(81, 'Zoë', { picture }), prepare: (page) => page.route(/gravatar/, (route) => route.abort()) })
  await page.locator('article span.avatar').nth(1).waitFor()
  assert.deepEqual(await page.locator('article .avatar').allTextContents(), ['Z', 'AL'])
  const grounds = await page.locator('.avatar').evaluateAll((all) => all.map((avatar) => getComputedStyle(avatar).backgroundColor))
  assert.equal(grounds[0], grounds[1], 'one’s own beside the composer is that of one’s comments')
  assert.notEqual(grounds[1], grounds[2])
})

test('the footer links to the feed', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record })
  assert.equal(await page.getByRole('link', { name: 'Feed' }).getAttribute('href'), `${w.service.api}/posts/${record}/feed.atom`)
})

test('instead of actions, a pending comment shows who can see it, and a rejected one shows the reason', async (t) => {
  const record = newRecord()
  const waiting = await w.service.comment(record, 'Waiting.')
  const rejected = await w.service.comment(record, 'Rejected.')
  const { page } = await w.open(t, {
    record,
    who: w.service.ada,
    prepare: answering(({ data }) => {
      Object.assign(data[1], { is_approved: false })
      Object.assign(data[0], { is_approved: false, review: { state: 'rejected', reason: 'spam', note: 'No advertisements.' } })
    }),
  })
  const actions = (/** @type {number} */ id) => article(page, id).locator('> .content > .actions')
  assert.equal((await actions(waiting.id).textContent())?.trim(), 'Only you see this until it is approved')
  assert.equal((await actions(rejected.id).locator('span').textContent())?.trim(), 'Not approved. Only you see this. Spam')
  assert.equal(await actions(rejected.id).getByRole('button').count(), 0)
  await article(page, rejected.id).getByRole('button', { name: 'More' }).waitFor()
})

for (const [state, change] of /** @type {const} */ ([['read-only mode', ({ features }) => (features.read_only = true)], ['a ban', ({ auth }) => (auth.banned = true)]])) {
  test(`with ${state} likes are numbers, and nothing can be written, edited, deleted or reported`, async (t) => {
    const record = newRecord()
    const liked = await w.service.comment(record, 'Liked.')
    const other = await w.service.comment(record, 'Not liked.', { who: w.service.bob })
    await w.service.call('POST', `comments/${liked.id}/like`, w.service.bob)
    const { page } = await w.open(t, { record, who: w.service.ada, prepare: answering(({ ui }) => change(ui)) })
    assert.equal((await article(page, liked.id).locator('.actions').textContent())?.trim(), '1')
    assert.equal((await article(page, other.id).locator('.actions').textContent())?.trim(), '')
    assert.equal(await page.locator('.actions button, form').count(), 0)
    for (const { id } of [liked, other]) {
      await openMenu(page, id)
      await page.getByRole('menu').waitFor()
      assert.deepEqual(await page.getByRole('menuitem').allTextContents(), ['Copy link'])
      await page.keyboard.press('Escape')
    }
  })
}
