import assert from 'node:assert/strict'
import { test } from 'node:test'
import { focused, moderator, moderatorsPage, press, until } from './moderators_page.js'
import { newRecord, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_ALLOW_GUESTS: 'true' })
const { open, logOf } = moderatorsPage(w)

const HONEST = 'An honest comment'
const FIFTY = Array.from({ length: 50 }, (_, i) => `127.0.0.${i + 1}`)
const ONE = '127.0.1.1'

/** Posts 1,000 comments from one network and 20 from each of fifty networks, in turn. */
async function write() {
  const records = Array.from({ length: 10 }, newRecord)
  const turns = Array.from({ length: 1000 }, (_, i) => [FIFTY[i % FIFTY.length], ONE]).flat().entries()
  const worker = async () => {
    for (const [i, address] of turns) {
      const { data } = await w.service.commentFrom(address, records[i % records.length], `Buy number ${i}`)
      assert.ok(data, `comment ${i} was written`)
    }
  }
  await Promise.all([worker(), worker(), worker(), worker()])
  return records
}

/** Milliseconds that a busy machine may take. */
const PATIENCE = 600_000

/**
 * Bans writers by keyboard until the honest comment has the focus: all shown writers at once, or one at a time once the
 * honest comment is shown. Returns the number of key presses.
 * @param {import('playwright-core').Page} page
 */
async function stop(page) {
  let pressed = 0
  const type = (/** @type {string[]} */ ...keys) => {
    pressed += keys.length
    return press(page, ...keys)
  }
  const dialog = page.getByRole('dialog')
  for (let isFirst = true; (await until(() => focused(page), (text) => text != null, PATIENCE)) !== HONEST; isFirst = false) {
    const isLast = await page.locator('article', { hasText: HONEST }).count()
    await type(...(isLast ? ['b'] : ['*', 'b']))
    await dialog.waitFor()
    // The choice about the writer's comments is remembered after the first ban.
    if (isFirst) await type('ArrowDown')
    await type('Enter')
    // Each ban takes a request while the service is still rejecting earlier writers' comments, and the next comment may
    // be on the fortieth page.
    await dialog.waitFor({ state: 'detached', timeout: PATIENCE })
  }
  return pressed
}

test('a wave of 2,000 comments from 51 networks is stopped and cleaned up with few keys, and all of it is in the log', async (t) => {
  const grace = moderator('Grace')
  await w.service.comment(newRecord(), HONEST)
  const [record] = await write()
  const { page } = await open(t, { who: grace.token })
  const pressed = await stop(page)
  assert.ok(pressed < 20, `${pressed} keys`)
  const waiting = async () => (await w.service.call('GET', 'moderation/comments?state=pending&per_page=1', grace.token)).meta.counts.pending
  while ((await waiting()) !== 1) await new Promise((resolve) => setTimeout(resolve, 100))
  for (const address of [ONE, ...FIFTY]) assert.equal((await w.service.commentFrom(address, record, 'Once more')).code, 'comment_banned')
  const entries = await logOf(grace)
  const count = (/** @type {string} */ action) => entries.filter((entry) => entry.action === action)
  assert.deepEqual([count('ban').length, count('reject').length, entries.length], [51, 2000, 2051])
  assert.equal(new Set(count('reject').map(({ comment_id }) => comment_id)).size, 2000)
})
