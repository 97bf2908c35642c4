/**
 * Saves screenshots of the moderators' page in every state in `target/pictures`, for review. With README=1, also updates the two
 * screenshots that the documentation shows, in `docs/pictures`. Run by `npm run pictures`.
 */

import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { fromDisk, token, world } from './world.js'

const TARGET = new URL('../../target/pictures/', import.meta.url).pathname
const README = new URL('../../docs/pictures/', import.meta.url).pathname
mkdirSync(TARGET, { recursive: true })

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_ALLOW_GUESTS: 'true', SVC_SPAM_REVIEW: 'half price', SVC_WEBHOOKS: 'true', SVC_WEBHOOK_PRIVATE: 'true' })
const SIZES = { wide: { width: 960, height: 700 }, narrow: { width: 320, height: 700 } }
const names = ['Marie Novak', 'Tomás', 'Watch Outlet', 'Ines Okafor', 'Joe', 'Ada Lovelace']
const [marie, tomas, outlet, ines, joe, ada] = names.map((name, i) => token(21 + i, name))

async function fill() {
  const { service } = w
  const { moderator } = service
  const write = (/** @type {string} */ record, /** @type {string} */ who, /** @type {string} */ body, /** @type {number | undefined} */ parent = undefined) => service.comment(record, body, { who, parent })
  const decide = (/** @type {{ id: number }} */ { id }, /** @type {string} */ action, grounds = {}) => service.call('POST', `comments/${id}/${action}`, moderator, grounds)
  await service.call('PUT', 'posts/1', moderator, { title: 'One table for everything', url: 'https://blog.example/one-table', author_id: 26 })
  await service.call('PUT', 'posts/2', moderator, { title: 'Release notes 2.4', url: 'https://blog.example/2-4' })
  const question = await write('1', marie, 'Has anybody measured this on a smaller machine? I would expect the difference to vanish there.')
  await decide(question, 'approve')
  const rude = await write('2', joe, 'Nobody asked for this. You people have no idea what you are doing.')
  await decide(rude, 'approve')
  const report = (/** @type {string} */ who, /** @type {string} */ reason, details = '') =>
    service.call('POST', `comments/${rude.id}/report`, who, { reason, additional_details: details || null })
  await report(ines, 'offensive', 'Third time this week.')
  await report(marie, 'inappropriate')
  await report(tomas, 'other', 'Off topic, and rude.')
  await report(ada, 'offensive')
  await decide(await write('1', outlet, 'Watches, **half price**!'), 'reject', { reason: 'spam' })
  await decide(await write('2', ines, 'You are all fools, and the notes are worse.'), 'reject', { reason: 'offensive', note: 'Please say it again without the insult. What is wrong with the notes?' })
  await service.call('PUT', 'users/23/ban', moderator, { reason: 'Sells watches' })
  await service.call('DELETE', 'users/23/ban', moderator)
  await service.call('PUT', 'users/25/ban', moderator, { until: '2035-01-01T00:00:00+00:00', reason: 'Insults' })
  const hook = async (/** @type {string} */ url, /** @type {string[]} */ events, enabled = true) =>
    (await service.call('POST', 'moderation/webhooks', moderator, { url, events, enabled })).data
  const search = await hook('http://127.0.0.1:9/hooks/comments', ['comment.created', 'comment.updated', 'comment.deleted'])
  await hook('https://chat.example/services/T0123/B0456/a-very-long-address-that-has-to-break-somewhere', ['comment.pending', 'comment.reported'], false)
  for (let i = 0; i < 3; i++) await service.call('POST', `moderation/webhooks/${search.id}/test`, moderator)
  for (let i = 0; i < 60; i++) await write('2', [marie, tomas, ines][i % 3], `An earlier comment, number ${i + 1}.`)
  const blocked = await service.commentFrom('127.0.1.7', '2', 'Best pills, no questions asked.')
  await service.call('PUT', `comments/${blocked.data.id}/ban`, moderator, { reason: 'Sells pills', reject_recent: true })
  await write('1', tomas, 'Thank you, this saved me an afternoon.')
  await service.commentFrom('127.0.1.8', '1', 'I found this by a search, and it helped. Thank you!')
  await write('2', ines, 'Does the upgrade need a new index, or is a **deploy** enough? The notes say both.')
  await service.call('POST', 'posts/2/close', moderator)
  await write('1', outlet, 'All watches **half price** this week only: [watch-outlet.example](https://watch-outlet.example/)!')
  await write('1', ada, 'Yes: on one core it is 40 ms against 45 ms, so it hardly matters there.\n\n- same data\n- ten runs each', question.id)
}

/** @type {Promise<void> | undefined} */
let filled

/** @typedef {import('playwright-core').Page} Page */
const tab = (/** @type {string} */ name) => (/** @type {Page} */ page) => page.getByRole('tab', { name, exact: true }).click()
const keys = (/** @type {string[]} */ ...letters) => async (/** @type {Page} */ page) => {
  for (const letter of letters) await page.keyboard.press(letter)
}
const nothing = { json: { data: [], links: {}, meta: { next_cursor: null } } }

/** @type {Record<string, { who?: string | null, act?: (page: Page) => Promise<any>, prepare?: (page: Page) => Promise<any>, leave?: (page: Page) => Promise<any> }>} */
const STATES = {
  pending: { act: keys('j') },
  selection: { act: keys('j', 'x', 'j', 'j', 'Shift+X') },
  undo: { act: keys('j', 'a'), leave: keys('u') },
  reasons: { act: keys('j', 'j', 'r', '2'), leave: keys('u') },
  note: { act: keys('j', 'j', 'r', '6') },
  ban: { act: keys('j', 'b') },
  block: { act: keys('j', 'j', 'j', 'b') },
  bans: { act: keys('*', 'b') },
  help: { act: keys('?') },
  writer: { act: (page) => page.locator('article').nth(1).getByRole('button', { name: 'All by' }).click() },
  reported: { act: tab('Reported') },
  rejected: { act: tab('Rejected') },
  all: { act: tab('All') },
  users: { act: tab('Users') },
  webhooks: { act: tab('Webhooks') },
  webhook: { act: async (page) => {
    await tab('Webhooks')(page)
    await page.getByRole('button', { name: 'Edit' }).first().click()
  } },
  deliveries: { act: async (page) => {
    await tab('Webhooks')(page)
    await page.getByRole('button', { name: 'Deliveries' }).first().click()
  } },
  log: { act: tab('Log') },
  empty: { prepare: (page) => page.route(/moderation\/comments/, (route) => route.fulfill(nothing)) },
  error: { prepare: (page) => page.route(/moderation\/comments/, (route) => route.abort()) },
  refusal: { who: ada },
  'sign-in': { who: null },
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    test(`pictures of the moderators' page, ${colorScheme}, ${size}`, async (t) => {
      await (filled ??= fill())
      for (const [name, { who = w.service.moderator, act, prepare, leave }] of Object.entries(STATES)) {
        const context = await w.browser.newContext({ locale: 'en-GB', colorScheme, viewport, reducedMotion: 'reduce' })
        await fromDisk(context, w.service.api)
        t.after(() => context.close())
        // Avatars are letters, because nothing is loaded from other servers.
        await context.route(/^https:/, (route) => route.abort())
        const page = await context.newPage()
        await prepare?.(page)
        await page.goto(`${w.service.api}/moderate${who ? `#token=${who}` : ''}`)
        await page.locator('h1, article').first().waitFor()
        await page.waitForLoadState('networkidle')
        await act?.(page)
        await page.getByText('Loading…').waitFor({ state: 'detached' })
        await page.screenshot({ path: `${TARGET}moderation-${name}-${size}-${colorScheme}.png` })
        await leave?.(page)
        if (process.env.README && name === 'pending' && size === 'wide') await page.screenshot({ path: `${README}moderation-${colorScheme}.png` })
      }
    })
  }
}
