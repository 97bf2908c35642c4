import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { article, newRecord, token, world } from './world.js'

const AXE = createRequire(import.meta.url).resolve('axe-core')
const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })

/** What axe finds in the widget. @param {import('playwright-core').Page} page */
async function violations(page) {
  await page.addScriptTag({ path: AXE })
  const found = await page.evaluate(() => /** @type {any} */ (window).axe.run('comment-thread', { runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] } }))
  return found.violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(' ')}`)
}

/** Replies below each other, the first of them to a comment on the thread. @param {string} record @param {number} count */
async function branch(record, count) {
  const comments = [await w.service.comment(record, 'Level 0.', { who: token(50, 'Person 0') })]
  for (let i = 1; i < count; i++) comments.push(await w.service.comment(record, `Level ${i}.`, { who: token(50 + i, `Person ${i}`), parent: comments[i - 1].id }))
  return comments
}

/** Changes what the list answers. @param {(json: any) => void} change */
const changed = (change) => (/** @type {import('playwright-core').Page} */ page) =>
  page.route(/\/comments\?/, async (route) => {
    const response = await route.fetch()
    const json = await response.json()
    change(json)
    await route.fulfill({ response, json })
  })

/** The body of a comment in a thread of its own. @param {import('node:test').TestContext} t @param {string} text @param {string} [init] */
async function shown(t, text, init) {
  const record = newRecord()
  const { id } = await w.service.comment(record, text)
  const { page } = await w.open(t, { record, init })
  return { page, body: article(page, id).locator('.body') }
}

const GROUNDS = { white: '#111 on #fff', cream: '#3a2e24 on #fbf6ea', black: '#eee on #111', blue: '#fff on #002b5c', grey: '#666 on #fff', 'light grey': '#aaa on #222' }
for (const [name, colours] of Object.entries(GROUNDS)) {
  test(`axe finds nothing on a ${name} page that says nothing of its colour scheme: ${colours}`, async (t) => {
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
        await changed(({ data }) => (data.at(-1).replies[0].is_approved = false))(page)
      },
    })
    await page.getByText('The comment that you are looking for is not here').waitFor()
    assert.deepEqual(await violations(page), [])
  })
}

test('the theme and custom properties come before the colour that the page has', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  const { page, thread } = await w.open(t, { record, head: '<style>body { color: #eee; background: #111 }</style>', context: { reducedMotion: 'reduce' } })
  const accent = () => page.locator('.primary').first().evaluate((button) => getComputedStyle(button).backgroundColor)
  const dark = await accent()
  await thread.evaluate((element) => element.setAttribute('theme', 'light'))
  assert.notEqual(await accent(), dark)
  await thread.evaluate((element) => element.removeAttribute('theme'))
  assert.equal(await accent(), dark)
  await page.addStyleTag({ content: 'comment-thread { --comment-accent: rgb(1, 2, 3) }' })
  assert.equal(await accent(), 'rgb(1, 2, 3)')
})

test('forced colours keep the edges of what has a ground alone', async (t) => {
  const record = newRecord()
  await branch(record, 2)
  const { page } = await w.open(t, { record, context: { forcedColors: 'active' }, prepare: (page) => page.route(/gravatar/, (route) => route.abort()) })
  for (const selector of ['.primary', '.avatar']) {
    assert.equal(await page.locator(selector).first().evaluate((element) => getComputedStyle(element).borderTopStyle), 'solid', selector)
  }
})

for (const [how, init] of Object.entries({ setHTML: '', 'its own allow-list': 'delete Element.prototype.setHTML' })) {
  test(`lines break where they were broken, and hard breaks not twice, with ${how}`, async (t) => {
    const { body } = await shown(t, 'soft\nbreak\n\nhard  \nbreak\n\n- tight\n  item\n  - inner\n\n**bold**\nend', init)
    const text = await body.evaluate((body) => /** @type {HTMLElement} */ (body).innerText)
    assert.deepEqual(text.split(/\n+/).filter(Boolean), ['soft', 'break', 'hard', 'break', 'tight', 'item', 'inner', 'bold', 'end'])
    assert.match(text, /hard\nbreak/)
    const heights = await body.locator('> p').evaluateAll((all) => all.map((p) => Math.round(p.getBoundingClientRect().height / parseFloat(getComputedStyle(p).lineHeight))))
    assert.deepEqual(heights, [2, 2, 2])
    const list = body.locator('> ul')
    assert.equal(await list.evaluate((ul) => Math.round(ul.getBoundingClientRect().height / parseFloat(getComputedStyle(ul).lineHeight))), 3)
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

test('an image links to the whole of it, unless its writer has made another link', async (t) => {
  const { page, body } = await shown(t, '![A cat](https://example.org/cat.png)\n\n[![linked](https://example.org/dog.png)](https://example.org/page)')
  assert.equal(await page.getByRole('link', { name: 'A cat' }).getAttribute('href'), 'https://example.org/cat.png')
  assert.equal(await body.locator('a').count(), 2)
  assert.equal(await body.locator('a:has(img[alt=linked])').getAttribute('href'), 'https://example.org/page')
  assert.equal(await body.locator('img').first().getAttribute('referrerpolicy'), 'no-referrer')
})
