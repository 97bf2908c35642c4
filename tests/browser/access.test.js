import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, choose, dialogCloses, newRecord, openMenu, stickingOut, token, violations, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

const BODY = 'Some `code`, [a link](https://example.org), ![a picture](https://example.org/x.png)\n\n> quoted\n\n```\nfn main() {}\n```'

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`axe finds nothing in ${colorScheme} colors: list, editor, reply, dialog, preview, notices`, async (t) => {
    const record = newRecord()
    // Elements that fade in have less contrast at first.
    const context = { colorScheme, reducedMotion: /** @type {const} */ ('reduce') }
    const { id } = await w.service.comment(record, BODY)
    await w.service.comment(record, BODY, { parent: id, who: null })
    await w.service.call('POST', `comments/${id}/pin`, w.service.moderator)
    await w.service.call('POST', `comments/${id}/like`, w.service.ada)
    const { page } = await w.open(t, { record, who: w.service.ada, context })
    assert.deepEqual(await violations(page), [])
    await article(page, id).hover()
    await article(page, id).locator('> .content').getByRole('button', { name: 'Reply' }).click()
    await article(page, id).getByRole('button', { name: 'Emoji' }).click()
    await page.getByPlaceholder('Write a comment…').fill(BODY)
    await page.getByRole('button', { name: 'Preview' }).first().click()
    await page.locator('.preview pre').waitFor()
    assert.deepEqual(await violations(page), [])
    await openMenu(page, id)
    assert.deepEqual(await violations(page), [])
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    assert.deepEqual(await violations(page), [])
    const guest = await w.open(t, { record, context })
    await choose(guest.page, id, 'Report')
    assert.deepEqual(await violations(guest.page), [])
    const failed = await w.open(t, { record, ready: false, context, prepare: (page) => page.route(/\/comments\?/, (route) => route.abort()) })
    await failed.page.getByRole('alert').waitFor()
    assert.deepEqual(await violations(failed.page), [])
    const empty = await w.open(t, { record: newRecord(), context })
    assert.deepEqual(await violations(empty.page), [])
  })
}

test('every target is at least 28 pixels in each direction, except the line, which is 24 wide', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, BODY)
  await w.service.comment(record, 'Hm.', { parent: id })
  const { page } = await w.open(t, { record, who: w.service.moderator, context: { viewport: { width: 320, height: 800 } } })
  await page.getByPlaceholder('Write a comment…').focus()
  await page.getByRole('button', { name: 'Emoji' }).click()
  const small = await page.locator('comment-thread').locator('button, select, input, header a, .foot a').evaluateAll((targets) =>
    targets
      .map((target) => ({ box: target.getBoundingClientRect(), least: target.matches('.line') ? 24 : 28, html: target.outerHTML }))
      .filter(({ box, least }) => box.width > 0 && (box.width < least || box.height < 28))
      .map(({ html, box }) => `${box.width} ${box.height} ${html}`),
  )
  assert.deepEqual(small, [])
})

test('everything is reachable and usable by keyboard', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Hello.', by: w.service.bob, who: w.service.ada })
  const names = new Set()
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press('Tab')
    const name = await page.evaluate(() => {
      const element = document.querySelector('comment-thread')?.shadowRoot?.activeElement
      return element && (element.getAttribute('aria-label') ?? element.textContent)
    })
    if (name) names.add(name.trim())
    // The editor's tools follow the field in the tab order.
    if (name === 'Write a comment…') await page.getByRole('button', { name: 'Bold' }).waitFor()
  }
  for (const name of ['Sort by', 'Write a comment…', 'Bold', 'Emoji', 'Upload an image', 'Preview', 'Post comment', 'Like', 'Reply', 'More']) {
    assert.ok(names.has(name), `${name} of ${[...names].join(', ')}`)
  }
  await article(page, id).getByRole('button', { name: 'More' }).focus()
  for (const key of ['Enter', 'ArrowDown', 'Enter']) await page.keyboard.press(key)
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await dialogCloses(page)
  assert.equal(await page.evaluate(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.ariaLabel), 'More')
})

test('code that is wider than the page can be scrolled by keyboard', async (t) => {
  const { page } = await w.open(t, { comment: `\`\`\`\n${'wide '.repeat(100)}\n\`\`\``, context: { viewport: { width: 320, height: 800 } } })
  const code = page.locator('article pre')
  await code.focus()
  await page.keyboard.press('ArrowRight')
  await page.waitForFunction(() => (document.querySelector('comment-thread')?.shadowRoot?.querySelector('pre')?.scrollLeft ?? 0) > 0)
})

test('at 320 pixels, in both directions, nothing is wider than the page', async (t) => {
  const record = newRecord()
  let parent = await w.service.comment(record, `${'long'.repeat(60)} https://example.org/${'x'.repeat(200)}`)
  for (let i = 0; i < 6; i++) parent = await w.service.comment(record, `${BODY} ${'مرحبا '.repeat(10)}`, { parent: parent.id })
  for (const dir of ['ltr', 'rtl']) {
    const { page } = await w.open(t, {
      record,
      dir,
      who: w.service.moderator,
      hash: `#comment-${parent.id}`,
      context: { viewport: { width: 320, height: 800 } },
    })
    await article(page, parent.id).waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320, dir)
    assert.ok(((await article(page, parent.id).locator('> .content').boundingBox())?.width ?? 0) > 120, dir)
  }
})

test('at 320 pixels with text at 200 %, nothing is wider than the page, including menus', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Hello. '.repeat(20))
  await w.service.comment(record, 'A reply.', { parent: id })
  const head = '<style>html { font-size: 200% } body { font-size: 1rem }</style>'
  for (const who of [w.service.moderator, null]) {
    const { page } = await w.open(t, { record, who, head, context: { viewport: { width: 320, height: 800 } } })
    await page.getByPlaceholder('Write a comment…').fill('Hm.')
    await page.getByRole('button', { name: 'Bold' }).waitFor()
    assert.deepEqual(await stickingOut(page), [])
    await openMenu(page, id)
    await page.getByRole('menu').waitFor()
    assert.deepEqual(await stickingOut(page), [])
  }
})

test('a name of 300 letters is not wider than the page, in comments, the composer and a menu', async (t) => {
  const record = newRecord()
  const who = token(31, 'W'.repeat(300))
  const { id } = await w.service.comment(record, 'Hello.', { who })
  for (const width of [320, 900]) {
    const { page } = await w.open(t, { record, who, context: { viewport: { width, height: 800 } } })
    await page.getByPlaceholder('Write a comment…').focus()
    await page.getByText('Posting as').waitFor()
    await openMenu(page, id)
    await page.getByRole('menu').waitFor()
    assert.deepEqual(await stickingOut(page), [], `${width}`)
  }
})

test('nothing that a stranger writes is wider than the page, however deep it is nested', async (t) => {
  const record = newRecord()
  const family = '👨\u200d'.repeat(50)
  const deep = ['- ', '> ', '1. ', '> - '].map((mark) => `${mark.repeat(32 / mark.length / (mark === '> - ' ? 1 : 2))}deep`)
  for (const body of [...deep, `# ${family}`, family]) {
    const guest = { guest_name: family, guest_email: 'm@example.org' }
    const { data } = await w.service.call('POST', `posts/${record}/comments`, null, { body, ...guest })
    await w.service.call('POST', `posts/${record}/comments`, null, { body, parent_id: data.id, ...guest })
  }
  for (const dir of ['ltr', 'rtl']) {
    const { page } = await w.open(t, { record, dir, context: { viewport: { width: 320, height: 800 } } })
    await page.locator('article').first().waitFor()
    assert.deepEqual(await stickingOut(page), [], dir)
    const cut = await page.locator('.body', { hasText: 'deep' }).evaluateAll((all) => all.filter((body) => body.scrollWidth > body.clientWidth).length)
    assert.equal(cut, 0, dir)
    assert.deepEqual(await violations(page), [])
  }
})

test('names and words of any length break, or scroll where they are code or tables', async (t) => {
  const word = 'W'.repeat(100)
  const body = `# ${word}\n\n${word} **${word}** [${word}](https://example.org/${word}) https://example.org/${word} \`${word}\`

> ${word}

- ${word}

| ${word} | b |\n|---|---|\n| ${word} | ${word} |

\`\`\`\n${word}\n\`\`\``
  const record = newRecord()
  const who = token(31, word)
  const parent = await w.service.comment(record, body, { who })
  await w.service.call('POST', `posts/${record}/comments`, null, { body, parent_id: parent.id, guest_name: 'M'.repeat(100), guest_email: 'm@example.org' })
  for (const dir of ['ltr', 'rtl']) {
    const { page } = await w.open(t, { record, dir, who, context: { viewport: { width: 320, height: 800 } } })
    const comment = article(page, parent.id).locator('> .content')
    await comment.waitFor()
    assert.deepEqual(await stickingOut(page), [], `the list, ${dir}`)
    await comment.getByRole('button', { name: 'Reply' }).click()
    await page.getByPlaceholder('Write a reply…').fill('@www')
    await page.locator('[role=option]').waitFor()
    assert.ok(((await page.locator('[role=option] .avatar').boundingBox())?.width ?? 0) === 28, 'avatars keep their size')
    assert.deepEqual(await stickingOut(page), [], `the suggestions, ${dir}`)
    await page.keyboard.press('Escape')
    const text = page.getByPlaceholder('Write a comment…')
    await text.fill(body)
    await page.getByRole('button', { name: 'Preview' }).first().click()
    await page.locator('.preview pre').waitFor()
    assert.deepEqual(await stickingOut(page), [], `the preview, ${dir}`)
  }
})
