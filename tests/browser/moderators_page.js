/** Code shared by the tests of the moderators' page: its users, opening the page, and recording its requests. */

import assert from 'node:assert/strict'
import { PIXEL, fromDisk, stickingOut, token, violations } from './world.js'

/** Each test has separate people, because all tests share one queue. */
let people = 100
/** @param {string} name */
export const member = (name) => {
  const id = ++people
  return { id, name, token: token(id, name) }
}
/** @param {string} name */
export const moderator = (name) => {
  const id = ++people
  return { id, name, token: token(id, name, { roles: ['moderator'] }) }
}

/** @typedef {import('playwright-core').Page} Page */

/** @param {Page} page @param {string} text */
export const card = (page, text) => page.locator('article', { hasText: text })

/** Returns the text of the card that has the focus. @param {Page} page */
export const focused = (page) => page.evaluate(() => document.querySelector('comment-moderation')?.shadowRoot?.activeElement?.querySelector('.body')?.textContent?.trim())

/** @param {Page} page @param {...string} keys */
export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key)
}

/** Advances the clock until a decision can't be undone, and waits for the service's response. @param {Page} page @param {number} [time] */
export async function deliver(page, time = 5_100) {
  const answer = page.waitForResponse((response) => response.request().method() === 'POST')
  await page.clock.runFor(time)
  await (await answer).finished()
}

/** Keeps decisions from reaching the service, however long the rest of the test takes. @param {Page} page */
export const decideNothing = (page) => page.route(/moderation\/comments$/, (route) => route.fulfill({ json: { data: { failed: [] } } }))

/** @param {Page} page @param {string} name */
export async function tab(page, name) {
  const wanted = page.getByRole('tab', { name, exact: true })
  await wanted.click()
  assert.equal(await wanted.getAttribute('aria-selected'), 'true', `the tab ${name}`)
}

/**
 * Repeats `ask` until `is` accepts the result, and returns the last result.
 * @template T @param {() => Promise<T>} ask @param {(answer: T) => boolean} is @param {number} [patience] milliseconds
 */
export async function until(ask, is, patience = 20_000) {
  for (const end = Date.now() + patience; ; ) {
    const answer = await ask()
    if (is(answer) || Date.now() > end) return answer
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Light and dark colors, each on a wide and a narrow page. */
export const LOOKS = /** @type {const} */ (['light', 'dark']).flatMap((colorScheme) =>
  [1000, 320].map((width) => ({ colorScheme, viewport: { width, height: 800 }, reducedMotion: /** @type {const} */ ('reduce'), bypassCSP: true })),
)

/** Requires that axe finds nothing and that nothing overflows. @param {Page} page @param {string} what is shown */
export async function isAccessible(page, what) {
  assert.deepEqual(await violations(page, 'html', {}), [], what)
  assert.deepEqual(await stickingOut(page), [], what)
}

/** Returns functions that open a service's moderators' page and query its data. @param {ReturnType<typeof import('./world.js').world>} w */
export function moderatorsPage(w) {
  /** Decides about all waiting comments, so that a test finds only its own comments. */
  async function emptyQueue() {
    const who = moderator('Before').token
    for (const state of ['pending', 'reported']) {
      for (;;) {
        const { data } = await w.service.call('GET', `moderation/comments?state=${state}&per_page=50`, who)
        if (!data.length) break
        const action = state === 'pending' ? 'approve' : 'dismiss'
        await w.service.call('POST', 'moderation/comments', who, { ids: data.map((/** @type {any} */ { id }) => id), action })
      }
    }
  }

  /**
   * @param {import('node:test').TestContext} t
   * @param {{
   *   who?: string | null, clock?: boolean, context?: import('playwright-core').BrowserContextOptions,
   *   prepare?: (page: import('playwright-core').Page) => Promise<any>,
   * }} options `clock`: time stops unless the test advances it
   */
  async function open(t, { who = null, clock = false, context: more, prepare }) {
    const context = await w.browser.newContext({ viewport: { width: 1000, height: 800 }, locale: 'en-GB', ...more })
    t.after(() => context.close())
    context.setDefaultTimeout(10_000)
    await context.route(/^https:/, (route) => route.fulfill({ contentType: 'image/png', body: PIXEL }))
    await fromDisk(context, w.service.api)
    const page = await context.newPage()
    /** @type {string[]} */
    const errors = []
    page.on('pageerror', (error) => errors.push(`${error}`))
    page.on('console', (message) => /violat|refused to|Trusted/i.test(message.text()) && errors.push(message.text()))
    t.after(() => assert.deepEqual(errors, []))
    /** @type {any[]} */
    const sent = []
    page.on('request', (request) => {
      if (request.method() !== 'GET' && request.method() !== 'OPTIONS') sent.push({ method: request.method(), path: request.url().replace(`${w.service.api}/`, ''), body: request.postDataJSON() })
    })
    if (clock) {
      await page.clock.install({ time: Date.now() - 60_000 })
      await page.clock.pauseAt(Date.now())
    }
    await prepare?.(page)
    await page.goto(`${w.service.api}/moderate${who ? `#token=${who}` : ''}`)
    return { page, context, sent, errors }
  }

  /** @param {{ id: number, token: string }} who @returns {Promise<any[]>} */
  async function logOf(who) {
    const entries = []
    for (let cursor = ''; cursor != null; ) {
      const { data, meta } = await w.service.call('GET', `moderation/log?per_page=50&cursor=${cursor}`, who.token)
      entries.push(...data)
      cursor = meta.next_cursor
    }
    return entries.filter(({ moderator }) => moderator.id === who.id)
  }

  /** @param {number} id @param {{ token: string }} who */
  const isApproved = async (id, who) => (await w.service.call('GET', `comments/${id}`, who.token)).data.is_approved

  return { emptyQueue, open, logOf, isApproved }
}
