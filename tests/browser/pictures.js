/**
 * Saves screenshots of the widget in every state in `target/pictures`, for review: each state wide and light, and narrow and dark,
 * and the first states in all four looks. With README=1, also updates the two screenshots that the documentation shows, in
 * `docs/pictures`. Run by `npm run pictures`.
 */

import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { answering, article, choose, chooseImage, newRecord, openMenu, token, world } from './world.js'

const TARGET = new URL('../../target/pictures/', import.meta.url).pathname
const README = new URL('../../docs/pictures/', import.meta.url).pathname
mkdirSync(TARGET, { recursive: true })

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })
/** Avatars are letters, because nothing is loaded from other servers. @param {import('playwright-core').Page} page */
const prepare = (page) => page.route(/^https:/, (route) => route.abort())
const WIDE = { width: 800, height: 900 }
const NARROW = { width: 320, height: 800 }

async function conversation() {
  const { service } = w
  const record = newRecord()
  const [ada, mary, emil] = [service.ada, token(31, 'Mary Anning'), token(32, 'Emil Noether')]
  await service.call('PUT', `posts/${record}`, service.moderator, { author_id: 31 })
  const old = await service.comment(record, 'I keep coming back to the second figure. Is the dip around **1843** in the data, or an artefact of the binning?', { who: emil })
  await service.comment(record, 'In the data: two of the stations were flooded that spring.\n\n> The instruments were recovered in June.', { who: mary, parent: old.id })
  const answer = await service.comment(record, 'That explains a lot, thank you!', { who: emil, parent: old.id })
  await service.comment(record, 'A footnote would be nice :)', { who: null, parent: answer.id })
  await service.comment(record, 'For those who want to check, this is all it takes:\n\n```python\nseries.groupby("year").mean().plot()\n```', { who: ada })
  await service.comment(record, 'Wonderful write-up. I have sent it to my whole department.', { who: null })
  const rules = await service.comment(record, 'Please keep to the topic: what was measured, and how. Other questions are welcome in the [forum](https://example.org).', { who: service.moderator })
  await service.call('POST', `comments/${rules.id}/pin`, service.moderator)
  for (const who of [ada, mary, service.moderator]) await service.call('POST', `comments/${old.id}/like`, who)
  await service.call('POST', `comments/${answer.id}/like`, mary)
  return { record, old, answer }
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const [width, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
    const context = { colorScheme, viewport }
    /** @param {string} name @param {Parameters<typeof w.open>[1]} options @param {(page: import('playwright-core').Page) => Promise<any>} [act] */
    const picture = (name, options, act) =>
      test(`${name}, ${colorScheme}, ${width}`, async (t) => {
        const { page } = await w.open(t, { context, prepare, ...options })
        await act?.(page)
        await page.waitForTimeout(300)
        await page.screenshot({ path: `${TARGET}${name}-${colorScheme}-${width}.png`, fullPage: true })
      })

    test(`a thread, ${colorScheme}, ${width}`, async (t) => {
      const { record, old } = await conversation()
      const { page } = await w.open(t, { record, who: w.service.ada, context, prepare })
      await page.waitForTimeout(300)
      await page.screenshot({ path: `${TARGET}thread-${colorScheme}-${width}.png`, fullPage: true })
      if (process.env.README && (colorScheme === 'light') === (width === 'wide')) {
        mkdirSync(README, { recursive: true })
        const box = await page.locator('comment-thread').boundingBox()
        if (!box) throw new Error('the thread is not shown')
        const clip = { x: box.x - 16, y: box.y - 16, width: box.width + 32, height: box.height + 32 }
        await page.screenshot({ path: `${README}${colorScheme}.png`, clip, fullPage: true })
      }
      await article(page, old.id).locator('> .content').getByRole('button', { name: 'Reply' }).click()
      await page.getByPlaceholder('Write a reply…').fill('A reply that is being written, with an emoji')
      await page.locator('article form').getByRole('button', { name: 'Emoji' }).click()
      await page.screenshot({ path: `${TARGET}reply-${colorScheme}-${width}.png`, fullPage: true })
      await page.keyboard.press('Escape')
      await openMenu(page, old.id)
      await page.screenshot({ path: `${TARGET}menu-${colorScheme}-${width}.png` })
      await page.getByRole('menuitem', { name: 'Report' }).click()
      await page.screenshot({ path: `${TARGET}dialog-${colorScheme}-${width}.png` })
    })
    picture('empty', { record: newRecord() })
    picture('failed', { record: newRecord(), ready: false, prepare: (page) => page.route(/\/comments\?/, (route) => route.abort()) }, (page) => page.getByRole('alert').waitFor())
    picture('slow', { record: newRecord(), ready: false, prepare: (page) => page.route(/\/comments\?/, () => {}) })
  }
}

/**
 * Takes two screenshots of a state: wide and light, and narrow and dark.
 * @param {string} name @param {() => Promise<Parameters<typeof w.open>[1]>} options @param {(page: import('playwright-core').Page) => Promise<any>} [act]
 */
function state(name, options, act) {
  for (const [look, context] of Object.entries({ wide: { viewport: WIDE }, narrow: { viewport: NARROW, colorScheme: /** @type {const} */ ('dark') } })) {
    test(`${name}, ${look}`, async (t) => {
      const { context: more, ...others } = await options()
      const { page } = await w.open(t, { prepare, ...others, context: { ...context, ...more } })
      await act?.(page)
      await page.waitForTimeout(300)
      await page.screenshot({ path: `${TARGET}${name}-${look}.png`, fullPage: true })
    })
  }
}

/** Changes the list's response. @param {(json: any) => void} change */
const changed = (change) => async (/** @type {import('playwright-core').Page} */ page) => {
  await prepare(page)
  await answering(change)(page)
}

state('right-to-left', async () => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'شكرا جزيلا على هذا المقال **الرائع**، وأرجو أن تكتب المزيد.\n\nA paragraph in English.', { who: token(41, 'سارة') })
  await w.service.comment(record, '> اقتباس\n\nأتفق معك.', { who: token(42, 'عمر'), parent: id })
  return { record, dir: 'rtl', lang: 'ar', who: w.service.ada }
})
state('two-hundred', async () => {
  const record = newRecord()
  for (let i = 0; i < 200; i++) await w.service.comment(record, `Comment ${i}`, { who: token(100 + (i % 7), `Person ${i % 7}`) })
  return { record }
}, async (page) => {
  for (const last of [59, 109, 159, 199]) {
    await page.getByRole('button', { name: /more comment/ }).click()
    await page.locator('.list > article').nth(last).waitFor()
  }
})
state('long', async () => {
  const record = newRecord()
  await w.service.comment(record, 'A sentence of a long comment. '.repeat(333))
  return { record }
})
state('one', async () => {
  const record = newRecord()
  await w.service.comment(record, 'First!')
  return { record }
})
state('placeholder', async () => {
  const { record } = await conversation()
  const nobody = { id: null, name: '', avatar: '' }
  return { record, prepare: changed((json) => Object.assign(json.data.at(-1), { is_deleted: true, body: '', html: '', user: nobody, can: {} })) }
})
state('read-only', async () => ({ record: (await conversation()).record, who: w.service.ada, prepare: changed((json) => (json.ui.features.read_only = true)) }))
state('banned', async () => ({ record: (await conversation()).record, who: w.service.ada, prepare: changed((json) => (json.ui.auth.banned = true)) }))
state('sign-in', async () => ({ record: (await conversation()).record, prepare: changed((json) => (json.ui.auth.can_comment = false)) }))
state('preview', async () => ({ record: newRecord(), who: w.service.ada }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('Some **bold** text, `code` and a list:\n\n- one\n- two\n\n> A quote')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview strong').waitFor()
})
state('mention', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await page.getByPlaceholder('Write a comment…').focus()
  await page.keyboard.type('What does @ma')
  await page.locator('[role=option]').first().waitFor()
})
state('refused', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await page.route(/\/like$/, (route) => route.abort())
  await page.getByPlaceholder('Write a comment…').fill('x'.repeat(10_001))
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('10000').waitFor()
  await page.getByPlaceholder('Write a comment…').fill('short')
  await page.locator('article').first().getByRole('button', { name: /^Like/ }).click()
})
state('dark-theme-on-a-light-page', async () => ({ record: (await conversation()).record, attributes: 'theme="dark"' }))

state('waiting-and-rejected', async () => {
  const record = newRecord()
  await w.service.comment(record, 'Does the foil not burn the leaves in July?')
  await w.service.comment(record, 'Cheap foil at https://example.org!')
  const change = changed(({ data }) => {
    Object.assign(data[1], { is_approved: false, review: { state: 'pending', reason: null, note: null } })
    Object.assign(data[0], { is_approved: false, review: { state: 'rejected', reason: 'spam', note: 'No advertisements, please.' } })
  })
  return { record, who: w.service.ada, prepare: change }
})
state('deciding', async () => ({ record: (await conversation()).record, who: w.service.moderator }), async (page) => {
  await choose(page, await page.locator('.list > article').nth(1).evaluate(({ id }) => +id.slice(8)), 'Reject')
  await page.getByRole('button', { name: 'Off topic' }).click()
})
state('wrong-fields', async () => ({ record: newRecord() }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('x'.repeat(9_500))
  await page.getByPlaceholder('Write a comment…').evaluate((text) => (/** @type {HTMLTextAreaElement} */ (text).style.maxHeight = '6em'))
  await page.locator('input[autocomplete=email]').fill('nowhere')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('[aria-invalid=true]').first().waitFor()
})
state('folded', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('A draft that was put aside.\n\nWith a second paragraph.')
  await page.getByRole('button', { name: 'Cancel' }).click()
})
state('closed', async () => ({ record: (await conversation()).record, who: w.service.ada, prepare: changed(({ meta }) => (meta.closed = true)) }))
state('session-ended', async () => ({ record: (await conversation()).record, who: token(7, 'Ada Lovelace', { exp: 1000 }) }))
state('mistake', async () => ({ html: '<comment-thread type="posts"></comment-thread>' }), (page) => page.locator('.mistake').waitFor())
state('not-here', async () => ({ record: (await conversation()).record, hash: '#comment-1' }), (page) => page.locator('[part~=notice]').waitFor())
state('collapsed', async () => ({ record: (await conversation()).record }), (page) => page.getByRole('button', { name: 'Collapse replies' }).first().click())
state('returning', async () => ({ record: (await conversation()).record }), async (page) => {
  await page.evaluate(() => Object.keys(localStorage).forEach((key) => key.endsWith(' seen') && (localStorage[key] = '1')))
  await page.reload()
  await page.locator('article').first().waitFor()
})
state('guest-on-cream', async () => ({
  record: (await conversation()).record,
  head: '<style>:root { color-scheme: normal } body { color: #3a2e24; background: #fbf6ea; font: 18px/1.5 Georgia, serif }</style>',
}), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('A sentence that a guest begins to write.')
  await page.getByLabel('Your name').fill('Wanda')
})
state('deleting', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await choose(page, Number((await page.locator('article', { hasText: 'For those who want' }).getAttribute('id'))?.slice(8)), 'Delete')
})
state('posted', async () => ({ record: (await conversation()).record, who: w.service.ada, context: { reducedMotion: 'reduce' } }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('Same here!')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByText('Comment posted').waitFor()
})
state('posting', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await page.route(/\/comments$/, () => {})
  await page.getByPlaceholder('Write a comment…').fill('Same here!')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('.posting').waitFor()
})
state('offline', async () => ({ record: (await conversation()).record, who: w.service.ada }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('On a train.')
  await page.getByRole('button', { name: 'Preview' }).waitFor()
  await page.context().setOffline(true)
  await page.getByText('Your draft is saved').waitFor()
})
state('image', async () => ({ record: newRecord(), who: w.service.ada }), async (page) => {
  await page.getByPlaceholder('Write a comment…').fill('Look at this:')
  await chooseImage(page, 'balcony.png')
  await page.getByPlaceholder('Describe the image').fill('Tomatoes on a balcony')
})
state('forced-colours', async () => ({ record: (await conversation()).record, who: w.service.ada, context: { forcedColors: 'active' } }))
