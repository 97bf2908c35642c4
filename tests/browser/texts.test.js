import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { card, moderator, moderatorsPage } from './moderators_page.js'
import { answering, article, MAIL, newRecord, token, world } from './world.js'

const w = world({ SVC_SPAM_REVIEW_LINKS: '0', SVC_SPAM_DENY_LINKS: '0', ...MAIL })
const held = world({ SVC_REQUIRE_APPROVAL: 'true', SVC_SPAM_DENY_LINKS: '0' })
const { open: openQueue } = moderatorsPage(held)
const read = async (/** @type {string} */ name) => JSON.parse(await readFile(new URL(`../${name}.json`, import.meta.url), 'utf8'))
const LONGEST = 10_000
/** Maximum number of blocks of the widget's code that run per character. */
const MAX_STEPS = 40
const HOW = { setHTML: '', 'its own allow-list': 'delete Element.prototype.setHTML' }

/** Opens a page that loads `kit/html.js`. @param {import('node:test').TestContext} t @param {string} init */
async function kit(t, init) {
  for (const name of ['addresses', 'dom', 'html']) {
    const source = await readFile(new URL(`../../functions/ui/embed/kit/${name}.js`, import.meta.url), 'utf8')
    w.site.add(source, { 'content-type': 'text/javascript' }, `/kit/${name}.js`)
  }
  const { page } = await w.open(t, { init, html: '<div id="place"></div>' })
  await page.evaluate(async () => {
    Object.assign(window, await import(/** @type {any} */ ('/kit/html.js')), { place: document.querySelector('#place') })
  })
  return page
}

for (const [how, init] of Object.entries(HOW)) {
  test(`addresses end where the samples say, with ${how}`, async (t) => {
    const page = await kit(t, init)
    const samples = await read('addresses')
    const found = await page.evaluate((samples) => {
      const { showHtml, place } = /** @type {any} */ (window)
      return samples.map((/** @type {any} */ { text }) => {
        showHtml(place, new Option(text).innerHTML, text)
        return [...place.querySelectorAll('a')].map((a) => a.textContent)
      })
    }, samples)
    for (const [place, { text, addresses }] of samples.entries()) assert.deepEqual(found[place], addresses, JSON.stringify(text))
  })
}

/** @param {{ start?: string, unit: string, end?: string }} hostile @param {number} length in characters */
function bodyOf({ start = '', unit, end = '' }, length) {
  const units = [...unit]
  const signs = [...start]
  const room = length - [...end].length
  while (signs.length < room) signs.push(units[(signs.length - [...start].length) % units.length])
  return signs.slice(0, room).join('') + end
}

for (const [how, init] of Object.entries(HOW)) {
  test(`the steps of a hostile body are bounded and grow as it does, with ${how}`, async (t) => {
    const page = await kit(t, init)
    const profiler = await page.context().newCDPSession(page)
    await profiler.send('Profiler.enable')
    await profiler.send('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    /** Returns the number of blocks of the widget's code that run to show a body. @param {string} body */
    const steps = async (body) => {
      const { data } = await w.service.call('POST', 'markdown/preview', w.service.ada, { body })
      await profiler.send('Profiler.takePreciseCoverage')
      await page.evaluate(
        ([html, body]) => {
          const { showHtml, linkImages, place } = /** @type {any} */ (window)
          showHtml(place, html, body)
          linkImages(place)
        },
        [data.html, body],
      )
      const { result } = await profiler.send('Profiler.takePreciseCoverage')
      const ranges = result.filter(({ url }) => url.includes('/kit/')).flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      return ranges.reduce((sum, { count }) => sum + count, 0)
    }
    const bodies = await read('hostile')
    assert.ok(bodies.length >= 100)
    for (const hostile of bodies) {
      const [half, whole] = [await steps(bodyOf(hostile, LONGEST / 2)), await steps(bodyOf(hostile, LONGEST))]
      assert.ok(whole <= MAX_STEPS * LONGEST, `${hostile.name}: ${whole} steps`)
      assert.ok(whole <= half * 2.2 + LONGEST, `${hostile.name}: ${half} steps, then ${whole}`)
    }
  })
}

test('a comment that can’t be rendered doesn’t hide others, and its text is shown', async (t) => {
  const record = newRecord()
  const [first, broken, last] = [await w.service.comment(record, 'First.'), await w.service.comment(record, 'Broken.'), await w.service.comment(record, 'Last.')]
  const breaking = answering(({ data }) => (data.find((/** @type {any} */ { id }) => id === broken.id).user = null))
  const { page } = await w.open(t, { record, prepare: breaking })
  for (const [id, text] of [[first.id, 'First.'], [broken.id, 'Broken.'], [last.id, 'Last.']]) await article(page, id).getByText(text).waitFor()
})

test('a body that makes the browser fail is shown as text', async (t) => {
  const page = await kit(t, '')
  const shown = await page.evaluate(() => {
    const { showHtml, place } = /** @type {any} */ (window)
    URL.canParse = () => {
      throw new RangeError('too deep')
    }
    showHtml(place, '<p>See <em>https://a.example</em></p>', 'See *https://a.example*')
    return place.innerHTML
  })
  assert.equal(shown, 'See *https://a.example*')
})

/** @param {string} html */
const unescape = (html) => html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')

/** The hardest texts in five scripts, with the addresses that become links. */
const FIVE = [
  ['Latin', 'See **https://a.example/pkg/__init__.py**, (https://a.example/x_(y)).', ['https://a.example/pkg/__init__.py', 'https://a.example/x_(y)']],
  ['Han', '请看「https://a.example/页面」。参照：https://b.example/字（一）、次', ['https://a.example/页面', 'https://b.example/字（一）']],
  ['Arabic', '\u2067انظر https://a.example/كلمة، ثم https://b.example/x؟\u2069', ['https://a.example/كلمة', 'https://b.example/x']],
  ['Devanagari', 'देखें https://a.example/शब्द। और ‘https://b.example/x’', ['https://a.example/शब्द', 'https://b.example/x']],
  ['Thai', 'ดู https://a.example/สวัสดี๚ «https://b.example/x»\u200b', ['https://a.example/สวัสดี', 'https://b.example/x']],
]

for (const [script, text, addresses] of /** @type {[string, string, string[]][]} */ (FIVE)) {
  test(`addresses in ${script} text are the same in the widget, the page, the feed and the email`, async (t) => {
    const record = newRecord()
    const email = `cara-${script.toLowerCase()}@example.org`
    const writer = token(script.length + 900, 'Cara', { email, email_verified: true })
    const { data: parent } = await w.service.call('POST', `posts/${record}/comments`, writer, { body: 'Mail me.', subscribe_to_replies: true })
    const hostile = bodyOf({ start: `${text} ${'http://['.repeat(9)}`, unit: ')' }, LONGEST)
    const { id } = await w.service.comment(record, hostile, { who: w.service.bob, parent: parent.id })
    const { page } = await w.open(t, { record })
    await article(page, id).locator('.body').waitFor()
    assert.deepEqual(await article(page, id).locator('.body a').allTextContents(), addresses)
    const links = (/** @type {string} */ html) => [...html.matchAll(/rel="nofollow ugc noopener">([^<]*)</g)].map(([, link]) => link)
    const document = await (await fetch(`${w.service.api}/posts/${record}/comments.html`)).text()
    assert.deepEqual(links(document), addresses)
    const feed = await (await fetch(`${w.service.api}/posts/${record}/feed.atom`)).text()
    assert.deepEqual(links(unescape(feed)), addresses)
    assert.deepEqual(links(unescape(await w.service.mailTo(email))), addresses)
  })
}

test('hostile pending comments don’t break the moderators’ queue', async (t) => {
  const record = newRecord()
  const units = ['http://a!', 'http://[)', '\ufdfa', 'http://a（', '*_', '[http://a](b', 'e\u0301', '> - ', '&#', '字@ada']
  for (const [n, unit] of units.entries()) await held.service.comment(record, bodyOf({ start: `Hostile ${n}, `, unit }, LONGEST), { who: token(700 + n, `Writer ${n}`) })
  const { page } = await openQueue(t, { who: moderator('Grace').token })
  for (const n of units.keys()) await card(page, `Hostile ${n},`).getByRole('button', { name: 'Approve' }).waitFor()
})

test('a card that can’t be rendered doesn’t hide others, and can be decided', async (t) => {
  const record = newRecord()
  for (const n of [1, 2, 3]) await held.service.comment(record, `Card ${n}.`, { who: token(720 + n, `Writer ${n}`) })
  const breaking = answering(({ data }) => {
    for (const item of data) if (item.body === 'Card 2.') item.user.avatar = null
  })
  const { page } = await openQueue(t, { who: moderator('Grace').token, prepare: breaking })
  for (const n of [1, 2, 3]) await card(page, `Card ${n}.`).getByRole('button', { name: 'Approve' }).waitFor()
})
