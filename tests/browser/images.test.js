import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { card } from './moderators_page.js'
import { article, choose, Images, newRecord, token, world } from './world.js'

const w = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_SPAM_REVIEW: 'casino' })
const images = new Images()
before(() => images.start())
after(() => images.stop())

/** Makes browsers send the page's full URL, because by default other sites get only the origin. */
const head = '<meta name="referrer" content="unsafe-url">'
const MODERN = ''
const OLDER = 'delete Element.prototype.setHTML'

/** @param {{ id: number }} comment @param {'approve' | 'reject'} verdict */
const decide = ({ id }, verdict) => w.service.call('POST', `comments/${id}/${verdict}`, w.service.moderator)

for (const [how, init] of Object.entries({ 'setHTML': MODERN, 'its own allow-list': OLDER })) {
  test(`the widget doesn’t reveal the page to servers of images, with ${how}`, async (t) => {
    const from = `/${newRecord()}`
    const picture = (/** @type {string} */ name) => `![x](${images.url}${from}/${name}.png)`
    const zelda = token(40, 'Zelda', { picture: `${images.url}${from}/avatar.png` })
    const record = newRecord()
    await decide(await w.service.comment(record, `Far below: ${picture('below')}`, { who: zelda }), 'approve')
    for (let i = 0; i < 8; i++) await decide(await w.service.comment(record, 'More text.\n\n'.repeat(20)), 'approve')
    const top = await w.service.comment(record, picture('top'), { who: zelda })
    await decide(top, 'approve')
    const { page } = await w.open(t, { record, who: zelda, head, init })
    await Promise.all([images.asked(`${from}/top.png`), images.asked(`${from}/avatar.png`)])
    await page.locator('article').last().scrollIntoViewIfNeeded()
    await images.asked(`${from}/below.png`)
    await page.getByPlaceholder('Write a comment…').fill(picture('preview'))
    await page.getByRole('button', { name: 'Preview' }).click()
    await images.asked(`${from}/preview.png`)
    await choose(page, top.id, 'Edit')
    await article(page, top.id).locator('textarea').fill(picture('edited'))
    await article(page, top.id).getByRole('button', { name: 'Save' }).click()
    await images.asked(`${from}/edited.png`)
    assert.deepEqual(images.requests.filter(({ path, referer }) => path.startsWith(from) && referer != null), [])
  })
}

test('the moderators’ page doesn’t reveal its address to servers of images', async (t) => {
  const from = `/${newRecord()}`
  const yara = token(41, 'Yara', { picture: `${images.url}${from}/avatar.png` })
  const record = newRecord()
  const seen = await w.service.comment(record, `Seen ![x](${images.url}${from}/seen.png)`, { who: yara })
  await decide(seen, 'approve')
  await w.service.call('POST', `comments/${seen.id}/report`, w.service.ada, { reason: 'spam' })
  await w.service.comment(record, `Waiting ![x](${images.url}${from}/waiting.png)`, { who: yara })
  const { page } = await w.moderate(t, { head })
  await card(page, 'Waiting').getByRole('button', { name: 'Load image' }).click()
  await images.asked(`${from}/waiting.png`)
  await page.getByRole('tab', { name: 'Reported' }).click()
  await Promise.all([images.asked(`${from}/seen.png`), images.asked(`${from}/avatar.png`)])
  assert.deepEqual(images.requests.filter(({ path, referer }) => path.startsWith(from) && referer != null), [])
})

test('on the moderators’ page, images of comments that are not approved load when they are pressed', async (t) => {
  const from = `/${newRecord()}`
  const asked = () => images.requests.filter(({ path }) => path.startsWith(from)).map(({ path }) => path.slice(from.length + 1))
  const picture = (/** @type {string} */ name, alt = 'x') => `![${alt}](${images.url}${from}/${name})`
  const record = newRecord()
  const approved = await w.service.comment(record, `Approved ${picture('approved')}`)
  await decide(approved, 'approve')
  await w.service.comment(record, `Undecided ${picture('waiting', 'A cat on a mat')} and [${picture('linked', '')}](https://example.org/)`)
  const edited = await w.service.comment(record, 'Harmless')
  await decide(edited, 'approve')
  await w.service.call('PATCH', `comments/${edited.id}`, w.service.ada, { body: `Edited: casino ${picture('edited')}` })
  const refused = await w.service.comment(record, `Refused ${picture('refused')}`)
  await w.service.comment(record, 'An answer to a refused one', { parent: refused.id })
  await decide(refused, 'reject')
  await w.service.comment(record, 'An answer to an approved one', { parent: approved.id })

  // A host page may show images from any address.
  const { page } = await w.moderate(t, { head })
  const waiting = card(page, 'Undecided')
  // The parent comment is approved, so its image loads at once.
  await images.asked(`${from}/approved`)
  for (const text of ['Edited: casino', 'An answer to a refused one']) await card(page, text).getByRole('button', { name: 'Load image: x' }).waitFor()
  assert.deepEqual(asked(), ['approved'])

  const cat = waiting.getByRole('button', { name: 'Load image: A cat on a mat' })
  await cat.focus()
  await page.keyboard.press('Enter')
  await images.asked(`${from}/waiting`)
  await waiting.getByRole('img', { name: 'A cat on a mat' }).waitFor()
  assert.ok(await waiting.evaluate((element) => element.matches(':focus')), 'the card has the focus')
  await waiting.getByRole('button', { name: 'Load image', exact: true }).press(' ')
  await images.asked(`${from}/linked`)
  assert.ok(page.url().startsWith(`${w.site.url}`), 'the link around the image was not followed')
  assert.deepEqual(asked(), ['approved', 'waiting', 'linked'])

  await page.getByRole('tab', { name: 'Rejected' }).click()
  await card(page, 'Refused').getByRole('button', { name: 'Load image: x' }).click()
  await images.asked(`${from}/refused`)
  assert.deepEqual(asked(), ['approved', 'waiting', 'linked', 'refused'])
})
