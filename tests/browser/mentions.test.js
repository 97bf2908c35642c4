import assert from 'node:assert/strict'
import { test } from 'node:test'
import { typedAt } from '../../functions/ui/embed/writer/handles.js'
import { composer, hold, newRecord, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true' })

/** @typedef {import('playwright-core').Page} Page */
const options = (/** @type {Page} */ page) => page.locator('[role=option]')

/** @param {import('node:test').TestContext} t @param {string | null} who */
async function writing(t, who, record = newRecord()) {
  const { page } = await w.open(t, { record, who })
  await composer(page).focus()
  await page.getByRole('button', { name: 'Bold' }).waitFor()
  return page
}

/** Types a text, and returns the people offered for it once the search has ended. @param {Page} page @param {string} text */
async function offered(page, text) {
  const found = page.waitForResponse(/\/users\?/)
  await composer(page).fill(text)
  await found
  return options(page).locator('span:last-child').allTextContents()
}

test('a person with a name in any script is offered and linked in text without spaces, and no one else is', async (t) => {
  for (const [id, name] of /** @type {const} */ ([[71, '李雷'], [72, '韩梅梅'], [73, '!!']])) await w.service.call('GET', 'ui', token(id, name))
  const page = await writing(t, w.service.ada)
  await composer(page).fill('谢谢＠李')
  await options(page).getByText('李雷').waitFor()
  await page.keyboard.press('Enter')
  assert.equal(await composer(page).inputValue(), '谢谢@李雷 ')
  await page.keyboard.type('!')
  await page.keyboard.press('Control+Enter')
  const link = page.locator('article .body a')
  assert.equal(await link.getAttribute('href'), '/users/%E6%9D%8E%E9%9B%B7')
  assert.equal(await link.textContent(), '@李雷')
})

test('a person with symbols around the name is mentioned by the inserted text, even between underscores', async (t) => {
  await w.service.call('GET', 'ui', token(74, '★さくら★'))
  const page = await writing(t, w.service.ada)
  await composer(page).fill('_Hello @さく')
  await options(page).waitFor()
  await page.keyboard.press('Enter')
  assert.equal(await composer(page).inputValue(), '_Hello @_さくら\\_ ')
  await page.keyboard.press('Control+Enter')
  assert.equal(await page.locator('article .body a').textContent(), '@_さくら_')
})

test('nothing is offered where the service links no one', async (t) => {
  const page = await writing(t, w.service.ada)
  await offered(page, '@ada')
  await options(page).first().waitFor()
  for (const text of ['foo@ada', '`@ada|`', '```\n@ada', 'https://a.example/@ada', '_@ada', '@@ada', '@_']) {
    await composer(page).fill(text.replace('|', ''))
    if (text.includes('|')) await composer(page).press('ArrowLeft')
    await composer(page).dispatchEvent('input')
    assert.equal(await options(page).filter({ visible: true }).count(), 0, text)
  }
})

/** Texts with a caret, and whether a person is offered there. @type {[string, boolean][]} */
const PLACES = [
  ['[docs](https://example.org)@ada|', false],
  ['**[docs](https://example.org/a_(b) "A title")**@ada|', false],
  ['[the docs.](https://example.org)@ada|', true],
  ['请看[文档](https://example.org/[1])@ada|', true],
  ['(docs)@ada|', true],
  ['see [docs](https://example.org) (or ask)@ada|', true],
  ['<https://example.org>@ada|', false],
  ['*<mailto:bob@example.org>*@ada|', false],
  ['<https://example.org/>@ada|', true],
  ['1>@ada|', true],
  ['> @ada|', true],
  ['see\\@ada|', false],
  ['see \\@ada|', true],
  ['Caf&eacute;@ada|', false],
  ['Caf&#233;@ada|', false],
  ['thanks;@ada|', true],
  ['    @ada|', false],
  ['\t@ada|', false],
  ['Code:\n\n    @ada|', false],
  ['Code:\n   \n  \t@ada|', false],
  ['Code:\n\n    first\n\n    second\n    @ada|', false],
  ['# Code\n    @ada|', false],
  ['Code:\n\n    first\n\n@ada|', true],
  ['Code:\n\n   @ada|', true],
  ['A paragraph\n    @ada|', true],
  ['- A list\n    - @ada|', true],
]

test('people are offered after links, escapes and indents only where the service links them', async () => {
  await w.service.call('GET', 'ui', token(77, 'Ada'))
  for (const [place, isOffered] of PLACES) {
    const caret = place.indexOf('|')
    const text = place.replace('|', '')
    assert.equal(typedAt(text, caret) === 'ada', isOffered, place)
    const { data } = await w.service.call('POST', 'markdown/preview', null, { body: `${text} hi` })
    assert.equal(data.html.includes('href="/users/ada"'), isOffered, `${place}: ${data.html}`)
  }
})

test('the writers of the thread come first, by every word of their names', async (t) => {
  const record = newRecord()
  for (let id = 81; id < 87; id++) await w.service.call('GET', 'ui', token(id, `Wilma ${id}`))
  await w.service.comment(record, 'Hello.', { who: token(88, 'Zed Wilmot') })
  await w.service.comment(record, 'Hello.', { who: token(89, 'Wilmer Last') })
  const page = await writing(t, w.service.ada, record)
  const names = await offered(page, 'Hello @wilm')
  await options(page).nth(6).waitFor()
  assert.deepEqual((await options(page).locator('span:last-child').allTextContents()).slice(0, 2), ['Wilmer Last', 'Zed Wilmot'], `${names}`)
})

test('a writer whose name begins with İ is offered after an i', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.', { who: token(90, 'İpek İnce') })
  const page = await writing(t, null, record)
  for (const typed of ['ip', 'İp', 'inc']) {
    await composer(page).fill(`@${typed}`)
    await options(page).getByText('İpek').waitFor()
  }
  await page.keyboard.press('Enter')
  await page.keyboard.press('Backspace')
  assert.equal(await composer(page).inputValue(), '@i̇pek_i̇nce')
})

test('text that an input method commits is searched for, and the key that commits it picks no one', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.', { who: token(75, '王芳') })
  const page = await writing(t, null, record)
  const session = await page.context().newCDPSession(page)
  await composer(page).fill('你好@')
  await session.send('Input.imeSetComposition', { text: '王', selectionStart: 1, selectionEnd: 1 })
  assert.equal(await options(page).filter({ visible: true }).count(), 0)
  await session.send('Input.insertText', { text: '王' })
  await options(page).getByText('王芳').waitFor()
  // Safari sends the key after the end of the composition.
  await composer(page).evaluate((text) => text.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true })))
  assert.equal(await composer(page).inputValue(), '你好@王')
  await page.keyboard.press('Enter')
  assert.equal(await composer(page).inputValue(), '你好@王芳 ')
})

test('only Enter and Tab alone pick a person, and Ctrl+Enter sends what is written', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.', { who: w.service.bob })
  for (const [key, expected] of [['Enter', 'Hi @bob '], ['Tab', 'Hi @bob '], ['Shift+Enter', 'Hi @bo\n'], ['Shift+Tab', 'Hi @bo'], ['Control+Enter', 'Hi @bo']]) {
    const page = await writing(t, w.service.ada, record)
    const release = await hold(page, /\/comments$/)
    await composer(page).fill('Hi @bo')
    await options(page).getByText('Bob').waitFor()
    await page.keyboard.press(key)
    assert.equal(await composer(page).inputValue(), expected, key)
    assert.equal(await options(page).filter({ visible: true }).count(), 0, key)
    release()
  }
})

test('people are no longer offered once keys move the caret or select text', async (t) => {
  const record = newRecord()
  await w.service.comment(record, 'Hello.', { who: w.service.bob })
  const page = await writing(t, w.service.ada, record)
  for (const key of ['ArrowLeft', 'ArrowRight', 'Home', 'End', 'Shift+ArrowLeft', 'Alt+ArrowLeft', 'Control+ArrowLeft']) {
    await composer(page).fill('Hi @bo')
    await options(page).getByText('Bob').waitFor()
    await page.keyboard.press(key)
    assert.equal(await options(page).filter({ visible: true }).count(), 0, key)
  }
  // Typing offers people again.
  await page.keyboard.press('End')
  await page.keyboard.type('b')
  await options(page).getByText('Bob').waitFor()
})

test('people are offered at the caret in paragraphs of either direction', async (t) => {
  await w.service.call('GET', 'ui', token(76, 'Yusuf'))
  const page = await writing(t, w.service.ada)
  for (const [text, isRight] of /** @type {const} */ ([['مرحبا @yus', true], ['Hello\nمرحبا @yus', true], ['مرحبا\nHello @yus', false]])) {
    await composer(page).fill('')
    await composer(page).fill(text)
    await options(page).waitFor()
    const [list, box] = [await page.locator('[role=listbox]').boundingBox(), await composer(page).boundingBox()]
    assert.equal((list?.x ?? 0) > (box?.x ?? 0) + (box?.width ?? 0) / 2, isRight, `${text}: ${JSON.stringify([list, box])}`)
  }
})

test('a guest’s address may be of any script', async (t) => {
  const page = await writing(t, null)
  await composer(page).fill('Hello')
  await page.getByLabel('Your name').fill('प्रिया')
  await page.getByLabel(/^Your e-mail address/).fill('संपर्क@डाटामेल.भारत')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
})
