/** Pasted, dropped and chosen content: text is inserted as text, and an image is uploaded unless it is too large. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newRecord, PIXEL, world } from './world.js'

const w = world({ SVC_MEDIA_MAX_BYTES: '2097152' })

/**
 * Content to paste or drop. It includes an image unless `picture` is false.
 * @typedef {{ plain?: string, html?: string, name?: string, picture?: boolean }} Content
 */

/** Content that programs put on the clipboard together with an image of it. @type {Record<string, Content>} */
const TEXTS = {
  'cells of a spreadsheet': { plain: '1\t2\r\n3\t4', html: '<table><tr><td>1<td>2<tr><td>3<td>4</table>' },
  'a paragraph of a word processor': { plain: 'Dear all,', html: '<p class="MsoNormal"><span>Dear all,</span></p><img src="file:///clip_image001.png">' },
  'an address in a cell': { plain: 'https://example.org/', html: '<table><tr><td><a href="https://example.org/">https://example.org/</a></table>' },
  'text alone': { plain: 'Words.' },
  'a picture with its caption': { html: '<figure><img src="https://example.org/cat.png"><figcaption>A cat</figcaption></figure>' },
  'a sentence that ends in the name of the picture': { plain: 'I have marked it in image.png' },
  'a relative path of the picture': { plain: 'See docs/image.png' },
  'words that are HTML alone': { html: '<o:p><span style="color: red">Dear all,</span></o:p>' },
}
/** @type {Record<string, Content>} */
const PICTURES = {
  'a picture alone': {},
  'a picture copied from a page': { html: '<meta charset="utf-8"><!--StartFragment--><img src="https://example.org/cat.png" alt="A cat"><!--EndFragment-->' },
  'a picture dragged from a page, with its address': { plain: 'https://example.org/cat.png?size=2', html: '<a href="https://example.org/"><img src="https://example.org/cat.png?size=2"></a>' },
  'a picture whose description has a sign of comparison': { html: '<img src="https://example.org/cat.png" alt="cats > dogs" title="2 < 3">' },
  'a picture in empty paragraphs': { html: '<p>&#160;\u200b</p><img src="https://example.org/cat.png"><p>&#xa0;</p>' },
  'a picture beside a script and styles': { html: '<STYLE>p { color: red }</STYLE><script>let a = 1</script><!--[if mso]>Words<![endif]--><img src="x">' },
  'a picture and its place in a text': { plain: '\ufffc', html: '<img src="webkit-fake-url://1/image.png">' },
  'a picture that is its own address': { plain: 'data:image/png;base64,AAAA', html: '<img src="data:image/png;base64,AAAA">' },
  'a file with its name': { plain: 'My cat.png', name: 'My cat.png' },
  'a file with its path': { plain: '/home/ada/My pictures/My cat.png', name: 'My cat.png' },
  'a file with its path on Windows': { plain: 'C:\\Users\\ada\\My cat.png', name: 'My cat.png' },
  'a file with its address': { plain: 'file:///home/ada/My%20cat.png\r\n', name: 'My cat.png' },
}

/**
 * Pastes or drops an image with other content on the text field. Returns whether the widget prevented the default action.
 * @param {import('playwright-core').Page} page @param {'paste' | 'drop'} type @param {Content} content
 */
const give = (page, type, content) =>
  page.getByPlaceholder('Write a comment…').evaluate(
    (element, { type, content: { plain, html, name = 'image.png', picture = true }, bytes }) => {
      const data = new DataTransfer()
      if (plain) data.setData('text/plain', plain)
      if (html) data.setData('text/html', html)
      if (picture) data.items.add(new File([Uint8Array.from(bytes)], name, { type: 'image/png' }))
      const init = { bubbles: true, cancelable: true }
      const event = type === 'paste' ? new ClipboardEvent(type, { ...init, clipboardData: data }) : new DragEvent(type, { ...init, dataTransfer: data })
      return !element.dispatchEvent(event)
    },
    { type, content, bytes: [...PIXEL] },
  )

/** Opens a composer with its tools, and records its uploads. @param {import('node:test').TestContext} t @param {Partial<Parameters<typeof w.open>[1]>} [options] */
async function compose(t, options) {
  const { page, context } = await w.open(t, { record: newRecord(), who: w.service.ada, ...options })
  /** @type {string[]} */
  const uploads = []
  page.on('request', (request) => request.method() === 'POST' && request.url().endsWith('/media') && uploads.push(request.url()))
  await page.getByPlaceholder('Write a comment…').focus()
  await page.getByRole('button', { name: 'Upload an image' }).waitFor()
  return { page, context, uploads }
}

for (const type of /** @type {const} */ (['paste', 'drop'])) {
  test(`text stays text where a picture of it comes along, after a ${type}`, async (t) => {
    const { page, uploads } = await compose(t)
    for (const [name, content] of Object.entries(TEXTS)) {
      assert.equal(await give(page, type, content), false, name)
      assert.equal(await page.locator('.chip').count(), 0, name)
    }
    assert.deepEqual(uploads, [])
  })

  test(`a picture is uploaded, also with what only shows or names it, after a ${type}`, async (t) => {
    const { page } = await compose(t)
    let chips = 0
    for (const [name, content] of Object.entries(PICTURES)) {
      assert.equal(await give(page, type, content), true, name)
      await page.getByLabel('Describe the image').nth(chips++).waitFor()
    }
    assert.equal(await page.getByPlaceholder('Write a comment…').inputValue(), '')
  })
}

test('words that exist only as HTML are inserted as text if a picture of them comes along', async (t) => {
  const { page, uploads } = await compose(t)
  for (const type of /** @type {const} */ (['paste', 'drop'])) {
    await page.getByPlaceholder('Write a comment…').fill('Hi! ')
    await give(page, type, { html: '<style>p { color: red }</style>\n<p>Dear <b>all</b>,</p>\n<p>می\u200cخواهم 👩\u200d🚀</p>' })
    assert.equal(await page.getByPlaceholder('Write a comment…').inputValue(), 'Hi! Dear all,\nمی\u200cخواهم 👩\u200d🚀', type)
  }
  assert.equal(await page.locator('.chip').count(), 0)
  assert.deepEqual(uploads, [])
})

test('words that exist only as HTML keep their lines, with and without a picture', async (t) => {
  const { page, uploads } = await compose(t)
  const box = page.getByPlaceholder('Write a comment…')
  for (const [html, text] of [
    ['<p>One\n  more</p><p>Two</p><ul><li>x</li><li>y</li></ul>', 'One more\nTwo\nx\ny'],
    ['<div>first</div><div>sec<b>ond</b></div>last', 'first\nsecond\nlast'],
    ['line 1<br>line 2<BR/>line 3', 'line 1\nline 2\nline 3'],
    ['<h1>Title</h1>Text', 'Title\nText'],
    ['<table>\n<tr><th>Name</th><th>Age</th></tr>\n<tr>\n<td>Ada</td>\n<td>36</td></tr></table>', 'Name\nAge\nAda\n36'],
    ['un<u>believ</u>able H<sub>2</sub>O <code>a</code><kbd>b</kbd><o:p>c</o:p>', 'unbelievable H2O abc'],
  ]) {
    for (const picture of [true, false]) {
      for (const type of /** @type {const} */ (['paste', 'drop'])) {
        await box.fill('')
        await give(page, type, { html, picture })
        assert.equal(await box.inputValue(), text, `${type} ${picture}`)
      }
    }
  }
  assert.equal(await page.locator('.chip').count(), 0)
  assert.deepEqual(uploads, [])
})

test('a long text of white space is pasted and sent without delay', async (t) => {
  const { page } = await compose(t)
  const blanks = `a${' '.repeat(400_000)}b`
  await give(page, 'paste', { plain: blanks, picture: false })
  await give(page, 'paste', { html: `a${'&nbsp;'.repeat(400_000)}b`, picture: false })
  await page.getByPlaceholder('Write a comment…').fill(blanks)
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('.error', { hasText: '10,000' }).or(page.getByRole('alert')).first().waitFor()
})

test('a paste from the clipboard of a spreadsheet inserts the text', async (t) => {
  const { page, context, uploads } = await compose(t)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.evaluate(async (bytes) => {
    const blob = (/** @type {BlobPart} */ content, /** @type {string} */ type) => new Blob([content], { type })
    const picture = blob(Uint8Array.from(bytes), 'image/png')
    const html = blob('<table><tr><td>1<td>2</table>', 'text/html')
    await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob('1\t2', 'text/plain'), 'text/html': html, 'image/png': picture })])
  }, [...PIXEL])
  await page.getByPlaceholder('Write a comment…').focus()
  await page.keyboard.press('Control+v')
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === '1\t2')
  assert.equal(await page.locator('.chip').count(), 0)
  assert.deepEqual(uploads, [])
})

for (const lang of ['en', 'de', 'ar', 'ja']) {
  test(`a photo over the limit is refused before it is sent, and the sentence has the limit, in ${lang}`, async (t) => {
    const { page } = await w.open(t, { record: newRecord(), who: w.service.ada, lang, attributes: `lang="${lang}"` })
    /** @type {string[]} */
    const uploads = []
    page.on('request', (request) => request.url().endsWith('/media') && uploads.push(request.url()))
    await page.locator('textarea').fill('Look:')
    await page.locator('.toolbar').waitFor()
    const chooser = page.waitForEvent('filechooser')
    await page.locator('.toolbar button').nth(-2).click()
    await (await chooser).setFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.alloc(2_097_153) })
    const limit = new Intl.NumberFormat(lang, { style: 'unit', unit: 'megabyte' }).format(2)
    await page.getByRole('alert').getByText(limit).waitFor()
    assert.deepEqual(uploads, [])
    assert.equal(await page.locator('textarea').inputValue(), 'Look:')
  })
}

test('a photo that the service or the gateway refuses shows a message with the limit too', async (t) => {
  const { page } = await compose(t)
  const answers = [{ message: 'The file is too large.', code: 'payload_too_large', errors: {} }, { message: 'Request Entity Too Large' }]
  for (const json of answers) {
    await page.route(/\/media$/, (route) => route.fulfill({ status: 413, headers: { 'access-control-allow-origin': '*' }, json }), { times: 1 })
    await give(page, 'paste', {})
    await page.getByRole('alert').getByText('The image is too large. The limit is 2 MB.').waitFor()
    await page.getByPlaceholder('Write a comment…').pressSequentially('x')
    await page.getByRole('alert').getByText('too large').waitFor({ state: 'hidden' })
  }
})

test('an upload whose response has an invalid status fails at once', async (t) => {
  const { page } = await compose(t)
  await page.route(/\/media$/, (route) => route.fulfill({ status: 999, headers: { 'access-control-allow-origin': '*' }, body: 'Request denied' }))
  await give(page, 'paste', {})
  await page.getByRole('alert').getByText('Something went wrong').waitFor()
  assert.equal(await page.locator('.chip').count(), 0)
})
