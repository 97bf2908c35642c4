import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import puppeteer from 'puppeteer-core'
import { newRecord, Service, Site } from './world.js'

/** @typedef {import('puppeteer-core').Page} Page */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

// Playwright cannot drive Debian's Firefox, so these tests use WebDriver BiDi.
const site = new Site()
/** @type {Service} */
let service
/** @type {import('puppeteer-core').Browser} */
let browser

before(async () => {
  await site.start()
  service = await Service.start({ SVC_ALLOW_GUESTS: 'true', SVC_SPAM_REVIEW: 'casino' })
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', headless: true })
})
after(async () => {
  await browser.close()
  await service.stop()
  site.stop()
})

/**
 * Opens a page with a thread in a separate context.
 * @param {import('node:test').TestContext} t
 * @param {{ record: string, who?: string, head?: string }} options
 */
async function open(t, { record, who, head = '' }) {
  const auth = who ? `<script>document.querySelector('comment-thread').auth = ${JSON.stringify(who)}</script>` : ''
  return visit(
    t,
    site.add(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A post</title>${head}
      <script type="module" src="${service.api}/embed.js"></script></head>
      <body><main><h1>A post</h1><comment-thread type="posts" record="${record}"></comment-thread></main>${auth}</body></html>`),
  )
}

/** Opens a page in a separate context, and fails the test if a script on the page fails. @param {import('node:test').TestContext} t @param {string} url */
async function visit(t, url) {
  const context = await browser.createBrowserContext()
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  /** @type {unknown[]} */
  const errors = []
  page.on('pageerror', (error) => errors.push(error))
  t.after(async () => {
    await context.close()
    assert.deepEqual(errors, [])
  })
  await page.goto(url)
  return page
}

/** @param {Page} page */
const bodies = (page) =>
  page.evaluate(() =>
    [...(document.querySelector('comment-thread, comment-moderation')?.shadowRoot?.querySelectorAll('article .body') ?? [])].map(({ innerHTML }) => innerHTML.trim()),
  )

/** Waits until the comments have exactly these bodies. @param {Page} page @param {string[]} expected */
async function showing(page, expected) {
  await page.waitForFunction(
    (wanted) => {
      const root = document.querySelector('comment-thread, comment-moderation')?.shadowRoot
      return JSON.stringify([...(root?.querySelectorAll('article .body') ?? [])].map(({ innerHTML }) => innerHTML.trim())) === wanted
    },
    {},
    JSON.stringify(expected),
  )
}

/**
 * Clicks the last visible element with this name, because the most recently opened one comes last.
 * @param {Page} page @param {string} name
 */
async function click(page, name) {
  const found = await page.waitForFunction(
    (name) => {
      const root = document.querySelector('comment-thread, comment-moderation')?.shadowRoot
      const controls = [...(root?.querySelectorAll('button, [role=menuitem]') ?? [])]
      return controls.filter((control) => control.checkVisibility() && (control.getAttribute('aria-label') ?? control.textContent)?.trim() === name).at(-1)
    },
    {},
    name,
  )
  await /** @type {import('puppeteer-core').ElementHandle<Element>} */ (found.asElement()).click()
}

/** @param {Page} page @param {import('puppeteer-core').KeyInput} key */
async function chord(page, key) {
  await page.keyboard.down('Control')
  await page.keyboard.press(key)
  await page.keyboard.up('Control')
}

/** @param {Page} page @param {string} element */
async function violations(page, element) {
  await page.evaluate(AXE)
  return page.evaluate(async (element) => {
    const { violations } = await /** @type {any} */ (globalThis).axe.run(element)
    return violations.map((/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ node) => node.html).join(' ')}`)
  }, element)
}

test('in Firefox a box that does not grow with its text can be resized', async (t) => {
  const page = await open(t, { record: 'resized', who: service.ada })
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea'))
  const [grows, resize] = await page.evaluate(() => {
    const box = /** @type {Element} */ (document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea'))
    return [CSS.supports('field-sizing', 'content'), getComputedStyle(box).resize]
  })
  assert.equal(resize, grows ? 'none' : 'vertical')
})

test('in Firefox a thread is read, and a comment is written', async (t) => {
  const record = newRecord()
  await service.comment(record, 'Hello, **world**.', { who: service.bob })
  const page = await open(t, { record, who: service.ada })
  await page.waitForSelector('>>> article strong')
  const text = await page.waitForSelector('>>> textarea')
  await text?.type('From **Firefox**.')
  await click(page, 'Post comment')
  await showing(page, ['<p>From <strong>Firefox</strong>.</p>', '<p>Hello, <strong>world</strong>.</p>'])
})

test('in Firefox text that a tool and Enter insert is undone step by step', async (t) => {
  const page = await open(t, { record: newRecord(), who: service.ada })
  const text = await page.waitForSelector('>>> textarea')
  const value = () => page.evaluate(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value)
  await text?.type('- one')
  await page.waitForSelector('>>> .toolbar button')
  await page.keyboard.press('Enter')
  const states = ['- one', await value()]
  await chord(page, 'b')
  states.push(await value())
  assert.deepEqual(states, ['- one', '- one\n- ', '- one\n- ****'])
  for (const state of states.slice(0, -1).reverse()) {
    await chord(page, 'z')
    assert.equal(await value(), state)
  }
})

test('in Firefox a guest edits their comment, and deletes it after a reload', async (t) => {
  const page = await open(t, { record: newRecord() })
  const text = await page.waitForSelector('>>> textarea')
  await text?.type('Teh text.')
  await (await page.waitForSelector('>>> input[autocomplete=name]'))?.type('Zoë')
  await (await page.waitForSelector('>>> input[inputmode=email]'))?.type('zoe@example.org')
  await click(page, 'Post comment')
  await showing(page, ['<p>Teh text.</p>'])
  await click(page, 'More')
  await click(page, 'Edit')
  const edited = await page.waitForSelector('>>> article textarea')
  await edited?.focus()
  await chord(page, 'a')
  await page.keyboard.type('The text.')
  await click(page, 'Save')
  await showing(page, ['<p>The text.</p>'])
  await page.reload()
  await showing(page, ['<p>The text.</p>'])
  await click(page, 'More')
  await click(page, 'Delete')
  await page.waitForFunction(() => !document.querySelector('comment-thread')?.shadowRoot?.querySelector('[role=menu]')?.checkVisibility())
  await click(page, 'Delete')
  await showing(page, [])
})

test('in Firefox a comment and a reply are written by keyboard alone', async (t) => {
  const record = newRecord()
  await service.comment(record, 'First.', { who: service.bob })
  const page = await open(t, { record, who: service.ada })
  await showing(page, ['<p>First.</p>'])
  const name = () =>
    page.evaluate(() => {
      const focused = document.querySelector('comment-thread')?.shadowRoot?.activeElement
      return focused?.getAttribute('aria-label') ?? focused?.getAttribute('placeholder') ?? focused?.textContent?.trim()
    })
  /** @param {RegExp} wanted */
  const tabTo = async (wanted) => {
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab')
      if (wanted.test((await name()) ?? '')) return
    }
    assert.fail(`the keyboard does not reach ${wanted}`)
  }
  await tabTo(/^Write a comment/)
  await page.keyboard.type('Second.')
  await chord(page, 'Enter')
  await showing(page, ['<p>Second.</p>', '<p>First.</p>'])
  await tabTo(/^Reply/)
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.closest('article'))
  await page.keyboard.type('Third.')
  await chord(page, 'Enter')
  await page.waitForSelector('>>> .replies article')
  assert.equal((await bodies(page)).length, 3)
})

test('in Firefox text with a picture of it is pasted as text, and a picture alone is uploaded', async (t) => {
  const page = await open(t, { record: newRecord(), who: service.ada })
  await (await page.waitForSelector('>>> textarea'))?.focus()
  await page.waitForSelector('>>> .toolbar')
  const paste = (/** @type {Record<string, string>} */ texts) =>
    page.evaluate(async (texts) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 })
      const picture = await new Promise((resolve) => canvas.toBlob(resolve))
      const clipboardData = new DataTransfer()
      for (const [type, text] of Object.entries(texts)) clipboardData.setData(type, text)
      clipboardData.items.add(new File([picture], 'image.png', { type: 'image/png' }))
      // In Firefox, events created by scripts have a separate clipboard.
      const event = Object.defineProperty(new Event('paste', { bubbles: true, cancelable: true }), 'clipboardData', { value: clipboardData })
      return !document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.dispatchEvent(event)
    }, texts)
  assert.equal(await paste({ 'text/plain': '1\t2', 'text/html': '<table><tr><td>1<td>2</table>' }), false)
  assert.equal(await page.$('>>> .chip'), null)
  assert.equal(await paste({ 'text/html': '<img src="https://example.org/cat.png">' }), true)
  await page.waitForSelector('>>> .chip input')
})

for (const [name, colours] of Object.entries({ white: '#111 on #fff', black: '#eee on #111' })) {
  test(`in Firefox axe finds nothing on a ${name} page without a color scheme`, async (t) => {
    const record = newRecord()
    const { id } = await service.comment(record, 'Some `code`, https://example.org and\n\n> a quote')
    await service.comment(record, 'A reply.', { who: service.bob, parent: id })
    const [text, ground] = colours.split(' on ')
    const page = await open(t, { record, who: service.ada, head: `<style>body { color: ${text}; background: ${ground} }</style>` })
    await page.waitForSelector('>>> .replies article')
    await click(page, 'Reply')
    await page.waitForSelector('>>> article textarea')
    // Elements that fade in have less contrast at first.
    await page.evaluate(() => Promise.allSettled(document.getAnimations().map((animation) => animation.finished)))
    assert.deepEqual(await violations(page, 'comment-thread'), [])
  })
}

test('in Firefox a moderator approves a pending comment with a key, and everyone sees it', async (t) => {
  const record = newRecord()
  await service.comment(record, 'A casino by the sea.', { who: service.bob })
  const page = await visit(t, `${service.api}/moderate#token=${service.moderator}`)
  await showing(page, ['<p>A <mark>casino</mark> by the sea.</p>'])
  assert.deepEqual(await violations(page, 'comment-moderation'), [])
  const decided = page.waitForResponse((response) => response.url().endsWith('/moderation/comments') && response.request().method() === 'POST')
  await page.keyboard.press('a')
  await showing(page, [])
  await decided
  const visitor = await open(t, { record })
  await showing(visitor, ['<p>A casino by the sea.</p>'])
})
