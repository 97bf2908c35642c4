import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAccessible } from './moderators_page.js'
import { composer, hold, newRecord, stickingOut, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** Opens a page whose composer is an editor. @param {import('node:test').TestContext} t @param {object} [options] */
async function write(t, options = {}) {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, ...options })
  const text = composer(page)
  await text.focus()
  await page.getByRole('button', { name: 'Cancel' }).waitFor()
  const value = () => text.inputValue()
  return { page, text, value }
}

test('text that tools, shortcuts, emoji and mentions insert is undone and redone step by step', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Here.', { who: w.service.bob })
  const { page, text, value } = await write(t, { record })
  const states = ['', 'one ']
  await page.keyboard.type('one ')
  await page.getByRole('button', { name: 'Emoji' }).click()
  await page.getByRole('button', { name: '👍' }).click()
  states.push(await value())
  await page.keyboard.type(' @bo')
  states.push(await value())
  await page.getByRole('option', { name: 'Bob' }).waitFor()
  await page.keyboard.press('Enter')
  states.push(await value())
  await text.selectText()
  await page.keyboard.press('Control+b')
  states.push(await value())
  await text.selectText()
  await page.getByRole('button', { name: 'Quote' }).click()
  states.push(await value())
  assert.deepEqual(states, ['', 'one ', 'one 👍', 'one 👍 @bo', 'one 👍 @bob ', '**one 👍 @bob** ', '> **one 👍 @bob** '])
  for (const state of states.slice(0, -1).reverse()) {
    await page.keyboard.press('Control+z')
    assert.equal(await value(), state)
  }
  for (const state of states.slice(1)) {
    await page.keyboard.press('Control+Shift+z')
    assert.equal(await value(), state)
  }
})

test('Enter continues a list, and a second Enter ends it', async (t) => {
  const { page, text, value } = await write(t)
  for (const [typed, expected] of [
    ['- a', '- a\n- b\n\nc'],
    ['* a', '* a\n* b\n\nc'],
    ['9) a', '9) a\n10) b\n\nc'],
    ['  3. a', '  3. a\n  4. b\n\nc'],
    ['- [x] a', '- [x] a\n- [ ] b\n\nc'],
    ['-a', '-a\nb\n\nc'],
    ['2026 a', '2026 a\nb\n\nc'],
  ]) {
    await text.fill('')
    await page.keyboard.type(typed)
    await page.keyboard.press('Enter')
    await page.keyboard.type('b')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.keyboard.type('c')
    assert.equal((await value()).replace(/\n+c$/, '\n\nc'), expected)
  }
  await text.fill('- one two')
  await page.keyboard.press('Home')
  await page.keyboard.press('Enter')
  assert.equal(await value(), '\n- one two')
  await text.fill('- one')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('more')
  assert.equal(await value(), '- one\nmore')
})

/** Pastes as a browser does. @param {import('playwright-core').Locator} text @param {string} clip */
async function pasteText(text, clip) {
  await text.evaluate((text, clip) => {
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', clip)
    if (text.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))) document.execCommand('insertText', false, clip)
  }, clip)
}

test('an address that is pasted over words makes them a link, and any other text replaces them', async (t) => {
  const { page, text, value } = await write(t)
  const paste = async (/** @type {string} */ clip, before = 'the words') => {
    await text.fill(before)
    await text.selectText()
    await pasteText(text, clip)
    return value()
  }
  assert.equal(await paste('https://example.org/a?b=c#d'), '[the words](https://example.org/a?b=c#d)')
  assert.equal(await paste(' https://example.org/a_(b)\n'), '[the words](<https://example.org/a_(b)>)')
  await page.keyboard.press('Control+z')
  assert.equal(await value(), 'the words')
  assert.equal(await paste('no address'), 'no address')
  assert.equal(await paste('https://example.org/ and more'), 'https://example.org/ and more')
  assert.equal(await paste('https://example.org/', 'https://example.com/'), 'https://example.org/')
  for (const [words, linked] of [
    ['open [ here', 'open \\[ here'],
    ['closed ] [', 'closed \\] \\['],
    ['C:\\', 'C:\\\\'],
    ['a [b] c', 'a [b] c'],
    ['`a] \\`', '`a] \\`'],
    ['![cat](/cat.png)', '![cat](/cat.png)'],
    ['\\[sic\\]', '\\[sic\\]'],
  ]) assert.equal(await paste('https://example.org/', words), `[${linked}](https://example.org/)`)
})

test('Ctrl+K selects the address that it inserts', async (t) => {
  const { page, text, value } = await write(t)
  await text.fill('see this')
  await text.evaluate((text) => /** @type {HTMLTextAreaElement} */ (text).setSelectionRange(4, 8))
  await page.keyboard.press('Control+k')
  assert.equal(await value(), 'see [this](https://)')
  await page.keyboard.type('https://example.org')
  assert.equal(await value(), 'see [this](https://example.org)')
  await text.selectText()
  await page.keyboard.type('this')
  await text.selectText()
  await page.keyboard.press('Control+k')
  await pasteText(text, 'https://example.org/a')
  assert.equal(await value(), '[this](https://example.org/a)')
})

test('from nine tenths of the limit, a counter shows the characters left', async (t) => {
  const { page, text } = await write(t)
  await text.fill('x'.repeat(8_999))
  assert.equal(await page.getByText(/characters? left/).count(), 0)
  await text.fill('x'.repeat(9_000))
  await page.getByText('1000 characters left').waitFor()
  await text.fill(`${'x'.repeat(9_998)}👍`)
  await page.getByText('1 character left').waitFor()
})

test('a tool that is pressed while a comment is sent changes nothing', async (t) => {
  const { page, text, value } = await write(t)
  await text.fill('Hello')
  const release = await hold(page, /\/comments$/)
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('button', { name: 'Bold' }).click()
  assert.equal(await value(), 'Hello')
  release()
  await page.locator('article').waitFor()
  assert.equal(await value(), '')
})

test('a tool that is pressed while the preview is shown closes it and inserts', async (t) => {
  const { page, text, value } = await write(t)
  for (const [insert, expected] of /** @type {const} */ ([
    [() => page.getByRole('button', { name: 'Bold' }).click(), '**Hello**'],
    [async () => (await page.getByRole('button', { name: 'Emoji' }).click(), page.getByRole('button', { name: '👍' }).click()), 'Hello👍'],
  ])) {
    await text.fill('Hello')
    if (expected.startsWith('*')) await text.selectText()
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.locator('.preview').waitFor()
    await insert()
    await text.waitFor()
    assert.equal(await value(), expected)
    assert.equal(await page.getByRole('button', { name: 'Preview' }).getAttribute('aria-pressed'), 'false')
  }
})

test('Cancel and Escape fold the composer and keep the draft, which is shown when it is entered, also after a reload', async (t) => {
  const { page, text, value } = await write(t)
  const send = page.getByRole('button', { name: 'Post comment' })
  for (const close of [() => page.keyboard.press('Escape'), () => page.getByRole('button', { name: 'Cancel' }).click()]) {
    await text.fill('Half a thought')
    await send.waitFor()
    await close()
    await send.waitFor({ state: 'hidden' })
    await page.reload()
    await text.waitFor()
    assert.equal(await send.isVisible(), false)
    await text.focus()
    await send.waitFor()
    assert.equal(await value(), 'Half a thought')
  }
  await page.reload()
  await send.waitFor()
})

test('a folded draft that is entered is shown after a reload, although the writer’s script has never arrived', async (t) => {
  const { page, text } = await write(t)
  const send = page.getByRole('button', { name: 'Post comment' })
  await text.fill('Half a thought')
  await page.keyboard.press('Escape')
  await send.waitFor({ state: 'hidden' })
  await hold(page, /embed\/writer/)
  await page.reload()
  await text.focus()
  await send.waitFor()
  await page.reload()
  await send.waitFor()
})

test('mistakes are shown beside their fields in the page’s language, the first has the focus, and nothing is lost', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), lang: 'de' })
  const text = page.locator('textarea').first()
  await text.fill('Hallo')
  const name = page.locator('input[autocomplete=name]')
  const address = page.locator('input[autocomplete=email]')
  await address.fill('no address')
  await page.locator('form .primary').click()
  const wrong = async (/** @type {import('playwright-core').Locator} */ field) => {
    await page.waitForFunction((field) => field?.getAttribute('aria-invalid') === 'true', await field.elementHandle())
    return field.evaluate((field) => {
      const root = /** @type {ShadowRoot} */ (field.getRootNode())
      return root.getElementById(field.getAttribute('aria-describedby') ?? '')?.textContent
    })
  }
  assert.match((await wrong(name)) ?? '', /^Dein Name /)
  assert.match((await wrong(address)) ?? '', /^Deine E-Mail-Adresse /)
  assert.ok(await name.evaluate((field) => /** @type {ShadowRoot} */ (field.getRootNode()).activeElement === field))
  assert.deepEqual([await text.inputValue(), await address.inputValue()], ['Hallo', 'no address'])
  await name.fill('Zoë')
  assert.equal(await name.getAttribute('aria-invalid'), null)
  assert.equal(await page.getByText(/^Dein Name .+\./).count(), 0)
  await address.fill('zoe@example.org')
  await page.locator('form .primary').click()
  await page.locator('article').getByText('Hallo').waitFor()
})

for (const width of [900, 320]) {
  test(`the help on Markdown opens by a key or a press, fits ${width} pixels, and Escape closes it alone, with the focus back`, async (t) => {
    const { page } = await w.open(t, { record: newRecord(), context: { viewport: { width, height: 900 } } })
    await composer(page).fill('Half a thought')
    const opener = page.getByRole('button', { name: '?', exact: true })
    const help = page.getByRole('group', { name: 'Markdown' })
    await opener.press('Enter')
    await help.getByText('**Bold**').waitFor()
    const shown = await help.locator('> *').evaluateAll((lines) => lines.map(({ localName, textContent }) => `${localName} ${textContent}`))
    assert.deepEqual(shown, [
      'b **Bold**',
      'i _Italic_',
      'del ~~x~~',
      'code `Code`',
      'a [Link](https://)',
      'blockquote > Quote',
      'div - List',
      'pre - [ ] x\n\n|x|y|\n|-|-|',
    ])
    await isAccessible(page, 'help on Markdown')
    assert.deepEqual(await stickingOut(page), [])
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'hidden' })
    assert.ok(await opener.evaluate((button) => /** @type {ShadowRoot} */ (button.getRootNode()).activeElement === button))
    assert.ok(await page.getByRole('button', { name: 'Post comment' }).isVisible(), 'the composer stays open')
    await opener.click()
    await help.waitFor()
    await opener.click()
    await help.waitFor({ state: 'hidden' })
  })
}

test('the help on Markdown is in the language of the page', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), lang: 'ar', dir: 'rtl', context: { viewport: { width: 320, height: 900 } } })
  await page.locator('textarea').fill('مرحبا')
  await page.getByRole('button', { name: '?', exact: true }).click()
  await page.getByRole('group', { name: 'Markdown' }).getByText('**غامق**').waitFor()
  assert.deepEqual(await stickingOut(page), [])
})
