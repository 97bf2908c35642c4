/** Tests the elements on host pages with other font sizes, styles and colors, with a second thread, translated and printed. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, article, choose, newRecord, openMenu, token, violations, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })
const PHONE = { viewport: { width: 320, height: 800 } }

/** @typedef {import('playwright-core').Page} Page */

/** Describes every element in the shadow tree with these style properties. @param {Page} page @param {string[]} properties */
const styles = (page, properties) =>
  page.evaluate((properties) => {
    const root = document.querySelector('comment-thread, comment-moderation')?.shadowRoot
    return [...(root?.querySelectorAll('*') ?? [])].map((element) => {
      const style = /** @type {any} */ (getComputedStyle(element))
      return `${element.localName}.${element.classList} ${properties.map((name) => style[name]).join(' | ')}`
    })
  }, properties)

/** Opens the moderation element on a host page. @param {import('node:test').TestContext} t @param {Partial<Parameters<typeof w.open>[1]>} options */
async function moderate(t, options) {
  const { page } = await w.moderate(t, options)
  await page.getByRole('tab', { name: 'All' }).click()
  await page.locator('article').first().waitFor()
  return page
}

async function conversation() {
  const record = newRecord()
  const { id } = await w.service.comment(record, '# Title\n\nText with `code`.\n\n> A quote')
  const reply = await w.service.comment(record, 'A reply.', { who: w.service.bob, parent: id })
  await w.service.comment(record, 'Deeper.', { who: null, parent: reply.id })
  await w.service.call('POST', `comments/${id}/pin`, w.service.moderator)
  return { record, id }
}

/** Opens the editor and a dialog, so that tests cover their elements too. @param {Page} page @param {number} id */
async function openAll(page, id) {
  await page.getByPlaceholder('Write a comment…').fill('A draft.')
  await page.getByRole('button', { name: 'Emoji' }).waitFor()
  await choose(page, id, 'Report')
  await page.getByRole('dialog').waitFor()
}

// Sizes

const SIZES = ['fontSize', 'lineHeight', 'inlineSize', 'blockSize', 'paddingInlineStart', 'paddingBlockStart', 'marginInlineStart', 'marginBlockStart']
for (const width of [900, 420]) {
  test(`the root of the page changes no size at ${width} pixels, in the widget and on the moderators’ page`, async (t) => {
    const { record, id } = await conversation()
    const context = { viewport: { width, height: 900 }, reducedMotion: /** @type {const} */ ('reduce') }
    /** @type {{ widget: string[], moderation: string[] }[]} */
    const seen = []
    for (const root of ['100%', '62.5%', '150%']) {
      const head = `<style>html { font-size: ${root} } body { font-size: 17px; max-width: 700px; margin: 20px auto; padding: 0 10px }</style>`
      const { page } = await w.open(t, { record, head, context })
      await openAll(page, id)
      const moderators = await moderate(t, { head, context })
      seen.push({ widget: await styles(page, SIZES), moderation: await styles(moderators, SIZES) })
    }
    for (const { widget, moderation } of seen.slice(1)) {
      assert.deepEqual(widget, seen[0].widget)
      assert.deepEqual(moderation, seen[0].moderation)
    }
  })
}

test('fields and selects have at least 16 pixels on a page whose text is small, and follow it where it is large', async (t) => {
  const { record, id } = await conversation()
  const fields = (/** @type {Page} */ page) =>
    page.locator('comment-thread, comment-moderation').locator('input:not([type=radio], [type=checkbox], [type=file]), select, textarea').evaluateAll((all) => all.map((field) => parseFloat(getComputedStyle(field).fontSize)))
  for (const [size, least] of [[12, 16], [24, 19]]) {
    const head = `<style>html { font-size: 62.5% } body { font-size: ${size}px }</style>`
    const { page } = await w.open(t, { record, head })
    await openAll(page, id)
    const found = await fields(page)
    assert.ok(found.length >= 5 && found.every((size) => size >= least), found.join())
    const moderators = await moderate(t, { head })
    await moderators.getByRole('tab', { name: 'Users' }).click()
    await moderators.getByRole('searchbox').waitFor()
    const others = await fields(moderators)
    assert.ok(others.length && others.every((size) => size >= least), others.join())
  }
})

for (const lang of ['en', 'de', 'ru']) {
  test(`at 320 pixels the sort is beside the heading, also with buttons, in ${lang}`, async (t) => {
    const { record } = await conversation()
    for (const who of [null, w.service.ada]) {
      const { page } = await w.open(t, { record, who, lang, context: PHONE })
      const boxes = [await page.locator('h2').boundingBox(), await page.getByRole('combobox').boundingBox()]
      const [heading, select] = boxes.map((box) => box ?? assert.fail('not shown'))
      assert.ok(select.y < heading.y + heading.height && select.y + select.height > heading.y, JSON.stringify(boxes))
      assert.ok(select.x + select.width <= 320)
    }
  })
}

// Styles

const REACHING = 'textAlign textTransform letterSpacing wordSpacing lineHeight textIndent whiteSpaceCollapse overflowWrap'.split(' ')
const REACHES = 'text-align: center; text-transform: uppercase; letter-spacing: 3px; word-spacing: 9px; line-height: 3; text-indent: 2em; white-space: pre; overflow-wrap: normal'
for (const where of ['body', '*']) {
  test(`styles that the host gives to ${where} do not reach into the elements`, async (t) => {
    const { record, id } = await conversation()
    /** @type {string[][]} */
    const seen = []
    for (const head of ['', `<style>${where} { ${REACHES} }</style>`]) {
      const { page } = await w.open(t, { record, head, context: { reducedMotion: 'reduce' } })
      await openAll(page, id)
      const moderators = await moderate(t, { head })
      seen.push([...(await styles(page, REACHING)), ...(await styles(moderators, REACHING))])
    }
    assert.deepEqual(seen[1], seen[0])
  })
}

/** @param {Page} page @param {number} id */
const lines = (page, id) => article(page, id).locator('> .content > .body').evaluate((body) => /** @type {HTMLElement} */ (body).innerText.split('\n').filter(Boolean))

/** Describes the boxes of all blocks in a comment's body. @param {Page} page @param {number} id */
const blocks = (page, id) =>
  article(page, id).locator('> .content > .body').locator('*').evaluateAll((all) => all.map((block) => {
    const { x, y, width, height } = block.getBoundingClientRect()
    return `${block.localName} ${x} ${y + scrollY} ${width} ${height} ${getComputedStyle(block).fontSize} ${getComputedStyle(block).fontWeight} ${getComputedStyle(block).letterSpacing}`
  }))

const STRUCTURED = '## One\n\n## Two\n\n### Three\n\n# Four\n# Five\n\n> #### Six\n> ##### Seven\n>\n> first\n>\n> second\n\n- ## Eight\n- loose\n\n  item'
test('headings in comments are blocks, and look alike', async (t) => {
  const { page, id } = await w.open(t, { comment: STRUCTURED })
  assert.deepEqual(await lines(page, id), ['One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'first', 'second', 'Eight', 'loose', 'item'])
  const headings = await article(page, id).locator('.body :is(h1, h2, h3, h4, h5, h6)').evaluateAll((all) => all.map((heading) => {
    const { display, fontSize, fontWeight, letterSpacing } = getComputedStyle(heading)
    return `${display} ${fontSize} ${fontWeight} ${letterSpacing}`
  }))
  assert.deepEqual([...new Set(headings)].length, 1, headings.join())
  assert.match(headings[0], /^block/)
})

test('paragraphs in quotes and lists have space between them', async (t) => {
  const { page, id } = await w.open(t, { comment: '> first\n>\n> second\n\n- loose\n\n  item' })
  for (const parent of ['blockquote', 'li']) {
    const [first, second] = await article(page, id).locator(`.body ${parent} > p`).evaluateAll((all) => all.map((p) => p.getBoundingClientRect().toJSON()))
    assert.ok(second.top - first.bottom >= 4, `${parent}: ${first.bottom} ${second.top}`)
  }
})

test('the writer’s styles change nothing in comments', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, `${STRUCTURED}\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\`\`\`\ncode\n\`\`\``)
  const { page } = await w.open(t, { record, who: w.service.ada, context: { reducedMotion: 'reduce' } })
  const before = await blocks(page, id)
  await openMenu(page, id)
  await page.getByRole('menu').waitFor()
  await page.keyboard.press('Escape')
  assert.deepEqual(await blocks(page, id), before)
})

test('on the moderators’ page headings of comments look alike, and paragraphs in quotes have space between them', async (t) => {
  const { id } = await w.service.comment(newRecord(), `${STRUCTURED} of moderators`)
  const page = await moderate(t, {})
  const body = page.locator('article', { hasText: 'of moderators' }).locator('.body')
  const looks = await body.locator('h1, h2, h3, h4, h5, h6').evaluateAll((all) => all.map((heading) => {
    const { display, fontSize, fontWeight, letterSpacing } = getComputedStyle(heading)
    return `${display} ${fontSize} ${fontWeight} ${letterSpacing}`
  }))
  assert.equal(new Set(looks).size, 1, looks.join())
  const [first, second] = await body.locator('blockquote > p').evaluateAll((all) => all.map((p) => p.getBoundingClientRect().toJSON()))
  assert.ok(second.top - first.bottom >= 4, `${id}`)
})

for (const dir of ['ltr', 'rtl']) {
  test(`a comment takes its own direction as a whole, on a page from ${dir}`, async (t) => {
    const record = newRecord()
    const hebrew = await w.service.comment(record, 'שלום עולם\n\nAn English paragraph.\n\n- item')
    const english = await w.service.comment(record, 'Hello.\n\nשלום עולם\n\n> שלום')
    const { page } = await w.open(t, { record, dir, who: w.service.ada })
    const directions = (/** @type {import('playwright-core').Locator} */ body) =>
      body.locator('p, li, blockquote').evaluateAll((all) => [...new Set(all.map((block) => {
        const { direction, textAlign, unicodeBidi } = getComputedStyle(block)
        return `${direction} ${textAlign} ${unicodeBidi}`
      }))])
    for (const [{ id }, own] of /** @type {const} */ ([[hebrew, 'rtl'], [english, 'ltr']])) {
      assert.deepEqual(await directions(article(page, id).locator('.body')), [`${own} start isolate`])
    }
    await page.getByPlaceholder('Write a comment…').fill('שלום עולם\n\nAn English paragraph.')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.locator('.preview p').first().waitFor()
    assert.deepEqual(await directions(page.locator('.preview')), ['rtl start isolate'])
  })
}

// Colors

/** Returns the lightness of a background, as the browser computes it. @param {Page} page @param {string} selector */
const lightness = (page, selector) =>
  page.locator(selector).first().evaluate((element) => {
    const probe = document.createElement('i')
    probe.style.color = `oklch(from ${getComputedStyle(element).backgroundColor} l 0 0)`
    document.body.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return Number(color.match(/[\d.]+/)?.[0])
  })

/** Host page styles with little contrast, and whether the page is dark. @type {Record<string, [string, boolean]>} */
const PALE = {
  'grey text on white': ['body { color: #888; background: #fff }', false],
  'greyer text on white': ['body { color: #999; background: #fff }', false],
  'pale text on cream': ['body { color: oklch(.68 .05 60); background: oklch(.98 .02 90) }', false],
  'grey text on the white of the browser': [':root { color-scheme: light } body { color: #8a8a8a; background: none }', false],
  'pale text in a white card on a dark page': ['body { color: #eee; background: #222 } comment-thread { display: block; color: #909090; background: #fff }', false],
  'a half transparent ground on white': ['html { background: #fff } body { color: #999; background: rgb(0 0 0 / 5%) }', false],
  'grey text on black': ['body { color: #888; background: #000 }', true],
  'darker grey text on black': ['body { color: #777; background: #000 }', true],
  'grey text on a dark ground': ['body { color: #999; background: #222 }', true],
  'light text on white letters of a picture': ['body { color: #fff; background: linear-gradient(#000, #222) }', true],
}
for (const [name, [css, isDark]] of Object.entries(PALE)) {
  test(`menus are ${isDark ? 'dark' : 'light'} where the page has ${name}`, async (t) => {
    const { record, id } = await conversation()
    const { page } = await w.open(t, { record, head: `<style>:root { color-scheme: normal } ${css}</style>` })
    await openMenu(page, id)
    assert.equal((await lightness(page, '.menu')) < 0.5, isDark)
  })
}

test('the elements turn dark with their page, even if its text is pale', async (t) => {
  const { record, id } = await conversation()
  const head = '<style>:root { color-scheme: normal } body { color: #888; background: #fff } .night body { color: #999; background: #111 }</style>'
  const { page } = await w.open(t, { record, head })
  for (const isDark of [false, true, false]) {
    await page.evaluate((isDark) => document.documentElement.classList.toggle('night', isDark), isDark)
    await openMenu(page, id)
    await page.getByRole('menu').waitFor()
    await page.waitForFunction((isDark) => {
      const menu = document.querySelector('comment-thread')?.shadowRoot?.querySelector('.menu')
      return menu && Number(getComputedStyle(menu).backgroundColor.match(/[\d.]+/)?.[0]) < 0.5 === isDark
    }, isDark)
    await page.keyboard.press('Escape')
    await page.locator('.menu').waitFor({ state: 'detached' })
  }
})

// Two threads, a translation, a printer, a phone

test('two threads on a page have different names, and a single one has a short name', async (t) => {
  const [one, two] = [newRecord(), newRecord()]
  const { page } = await w.open(t, { html: [one, two].map((record) => `<comment-thread type="posts" record="${record}" loading="eager"></comment-thread>`).join('') })
  await page.locator('h2').nth(1).waitFor()
  const names = await page.locator('comment-thread section').evaluateAll((all) => all.map(({ ariaLabel }) => ariaLabel))
  assert.equal(new Set(names).size, 2, names.join())
  for (const name of names) assert.match(name ?? '', /^Comments/)
  assert.deepEqual(await violations(page, 'comment-thread', { runOnly: { type: 'tag', values: ['best-practice'] } }), [])
  const { page: alone } = await w.open(t, { record: one })
  assert.equal(await alone.locator('comment-thread section').getAttribute('aria-label'), 'Comments')
})

/** Changes all texts as browsers' translations do: replaces each text with other words in separate elements. @param {Page} page */
const translate = (page) =>
  page.evaluate(() => {
    const root = document.querySelector('comment-thread')?.shadowRoot
    if (!root) return
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
    const texts = /** @type {Text[]} */ ([])
    while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode))
    for (const text of texts) {
      if (!text.data.trim() || text.parentElement?.closest('textarea')) continue
      const [outer, inner] = [document.createElement('font'), document.createElement('font')]
      outer.append(inner)
      text.replaceWith(outer)
      inner.textContent = text.data.replace(/\d/g, (digit) => '٠١٢٣٤٥٦٧٨٩'[+digit])
    }
  })

test('after a translation by the browser the number of comments and the button still follow changes', async (t) => {
  const record = newRecord()
  for (let n = 0; n < 3; n++) await w.service.comment(record, `Comment ${n}`, { who: w.service.bob })
  const { page } = await w.open(t, { record, who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.focus()
  await page.getByText('Posting as').waitFor()
  await translate(page)
  assert.equal(await page.locator('[part=count]').textContent(), '٣')
  for (const [n, body] of ['One more.', 'And another.'].entries()) {
    await text.fill(body)
    await page.getByRole('button', { name: 'Post comment' }).click()
    await page.locator('article').getByText(body).waitFor()
    assert.equal(await page.locator('[part=count]').textContent(), `${4 + n}`)
  }
  assert.equal(await page.locator('form .primary').textContent(), 'Post comment')
})

test('on paper, there are comments but no forms, buttons or sort order', async (t) => {
  const { record, id } = await conversation()
  for (const who of [null, w.service.moderator]) {
    const { page } = await w.open(t, { record, who })
    await page.getByPlaceholder('Write a comment…').fill('A draft.')
    await article(page, id).locator('> .content').getByRole('button', { name: 'Reply' }).click()
    await page.getByPlaceholder('Write a reply…').waitFor()
    await page.emulateMedia({ media: 'print' })
    const shown = await page.locator('comment-thread').locator('form, button, select, textarea, input').evaluateAll((all) => all.filter((element) => element.checkVisibility()).map(({ outerHTML }) => outerHTML))
    assert.deepEqual(shown, [])
    assert.ok(await page.getByText('Text with').isVisible())
    assert.ok(await page.getByText('A reply.').isVisible())
  }
  const { page } = await w.open(t, { record, prepare: answering(({ ui }) => (ui.auth.can_comment = false)) })
  await page.getByRole('button', { name: 'Sign in to comment' }).waitFor()
  await page.emulateMedia({ media: 'print' })
  assert.equal(await page.locator('[part=notice]').isVisible(), false, 'a notice whose only content was a button')
})

test('stacked combining marks cover neither the next comment nor the name above', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, `${'Z\u0301'}${'\u0302\u0303\u0308\u030a'.repeat(60)} and words.`)
  const above = await w.service.comment(record, 'The next one, with a few words.', { who: w.service.bob })
  const { page } = await w.open(t, { record, context: { reducedMotion: 'reduce' } })
  const places = [article(page, above.id), article(page, id).locator('header b')]
  const looks = () => Promise.all(places.map(async (place) => (await place.screenshot()).toString('base64')))
  const marked = await looks()
  await article(page, id).locator('.body p').evaluate((p) => {
    p.style.height = `${p.getBoundingClientRect().height}px`
    p.textContent = ''
  })
  assert.ok((await looks()).every((look, place) => look === marked[place]))
})

for (const [device, context, shown] of /** @type {const} */ ([['a phone', { isMobile: true, hasTouch: true, ...PHONE }, false], ['a computer', {}, true]])) {
  test(`hints at keys ${shown ? 'show' : 'do not show'} on ${device}`, async (t) => {
    const record = newRecord()
    await w.service.comment(record, `To be rejected on ${device}.`, { who: token(95, 'Emil') })
    const page = await moderate(t, { context })
    const card = page.locator('article', { hasText: `To be rejected on ${device}.` })
    await card.getByRole('button', { name: 'Reject' }).click()
    const undo = page.getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    const hints = await page.locator('comment-moderation kbd').evaluateAll((all) => all.filter((hint) => hint.checkVisibility()).length)
    assert.equal(hints > 0, shown)
    await undo.click()
  })
}
