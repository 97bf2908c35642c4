import assert from 'node:assert/strict'
import { test } from 'node:test'
import { article, become, choose, chooseImage, deleteComment, focusedComment, hold, newRecord, openMenu, PIXEL, rebuilding, Service, token, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_LIKES: 'true' })
const FOCUS = (/** @type {string} */ id) => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.closest('article')?.id === id

test('a comment is sent by keyboard alone, takes the focus and is announced', async (t) => {
  const { page } = await w.open(t, {
    record: newRecord(),
    who: w.service.ada,
    init: `addEventListener('comment-posted', ({ detail }) => (window.posted = detail.id))`,
  })
  await page.getByPlaceholder('Write a comment…').focus()
  await page.keyboard.type('Written **by hand**.')
  await page.keyboard.press('Control+Enter')
  await page.locator('article').waitFor()
  const id = await page.locator('article').getAttribute('id')
  await page.waitForFunction(FOCUS, id ?? '')
  assert.equal(`comment-${await page.evaluate(() => /** @type {any} */ (window).posted)}`, id)
  assert.equal(await page.getByRole('status').textContent(), 'Comment posted')
  assert.equal(await page.getByPlaceholder('Write a comment…').inputValue(), '')
})

test('a new comment includes the title and the canonical URL of its page, and a reply includes neither', async (t) => {
  for (const [head, address] of [['<link rel="canonical" href="/tea">', '/tea'], ['<link rel="canonical" href="https://elsewhere.example/tea">', ''], ['', '']]) {
    const { page, url } = await w.open(t, { record: newRecord(), who: w.service.ada, head, hash: '#part' })
    const sent = (/** @type {() => Promise<any>} */ act) => Promise.all([page.waitForRequest((request) => request.method() === 'POST' && /comments$/.test(request.url())), act()])
    const text = page.getByPlaceholder('Write a comment…')
    await text.fill('First')
    const [first] = await sent(() => text.press('Control+Enter'))
    assert.deepEqual(first.postDataJSON().page, { title: 'A post', url: address ? new URL(address, url).href : url })
    await page.locator('article').getByRole('button', { name: 'Reply' }).click()
    const reply = page.getByPlaceholder('Write a reply…')
    await reply.fill('Second')
    const [second] = await sent(() => reply.press('Control+Enter'))
    assert.equal(second.postDataJSON().page, undefined)
  }
})

test('a reply appears below its comment; giving up returns the focus and keeps the text', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.bob })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  const text = page.getByPlaceholder('Write a reply…')
  await text.fill('Almost')
  await page.keyboard.press('Escape')
  assert.equal(await focusedComment(page), `comment-${id}`)
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  assert.equal(await text.inputValue(), 'Almost')
  await text.fill('An answer.')
  await article(page, id).locator('form').getByRole('button', { name: 'Reply' }).click()
  await page.locator('.replies article').waitFor()
  assert.equal(await focusedComment(page), await page.locator('.replies article').getAttribute('id'))
  assert.equal(await page.locator('article form').count(), 0)
})

test('an edit is shown at once, and a deletion asks for confirmation and moves the focus', async (t) => {
  const record = newRecord()
  const older = await w.service.comment(record, 'Older.')
  const { id } = await w.service.comment(record, 'Teh text.')
  const { page } = await w.open(t, { record, who: w.service.ada })
  const comment = article(page, id)
  await choose(page, id, 'Edit')
  assert.equal(await comment.locator('textarea').inputValue(), 'Teh text.')
  await comment.locator('textarea').fill('The text.')
  await comment.getByRole('button', { name: 'Save' }).click()
  await comment.getByText('The text.').waitFor()
  assert.equal(await focusedComment(page), `comment-${id}`)
  for (const cancel of [() => page.keyboard.press('Enter'), () => page.keyboard.press('Escape')]) {
    await choose(page, id, 'Delete')
    await comment.getByText('Delete this comment?').waitFor()
    assert.equal(await comment.getByRole('button', { name: 'Reply' }).count(), 0, 'the question takes the place of the actions')
    assert.ok(await comment.getByRole('button', { name: 'Cancel' }).evaluate((element) => element.matches(':focus')))
    await cancel()
    assert.equal(await focusedComment(page), `comment-${id}`)
    await comment.getByRole('button', { name: 'Reply' }).waitFor()
  }
  await deleteComment(page, id)
  await page.getByRole('status').getByText('Comment deleted').waitFor()
  await comment.waitFor({ state: 'detached' })
  await page.waitForFunction(FOCUS, `comment-${older.id}`)
})

test('a deletion that has begun ignores a second press and can’t be canceled', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Gone soon.', who: w.service.ada })
  /** @type {number[]} */
  const answers = []
  page.on('response', (response) => response.request().method() === 'DELETE' && answers.push(response.status()))
  const release = await hold(page, /\/comments\/\d+$/)
  await choose(page, id, 'Delete')
  const question = article(page, id).getByRole('group')
  await question.getByRole('button', { name: 'Delete' }).dblclick()
  await question.getByRole('button', { name: 'Cancel' }).click()
  await page.keyboard.press('Escape')
  assert.ok(await question.isVisible())
  release()
  await page.getByText('Comment deleted').waitFor()
  assert.deepEqual(answers, [204])
})

test('a deleted comment above the visitor’s own rejected reply leaves no placeholder, as in the service', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Gone soon.')
  const reply = await w.service.comment(record, 'Rejected.', { parent: id })
  await w.service.call('POST', `comments/${reply.id}/reject`, w.service.moderator, {})
  const { page } = await w.open(t, { record, who: w.service.ada })
  await article(page, reply.id).waitFor()
  await choose(page, id, 'Delete')
  await article(page, id).locator('> .content').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No comments yet').waitFor()
  await page.reload()
  await page.getByText('No comments yet').waitFor()
})

test('a comment goes with a reply that was rejected since the page was loaded', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Ask me.', { who: w.service.moderator })
  const reply = await w.service.comment(record, 'Cheap watches.', { who: w.service.bob, parent: id })
  const { page } = await w.open(t, { record, who: w.service.moderator })
  await choose(page, reply.id, 'Reject')
  await page.getByRole('status').getByText('Saved').waitFor()
  await choose(page, id, 'Delete')
  await article(page, id).locator('> .content').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No comments yet').waitFor()
})

test('a deleted comment keeps its place above replies, and goes with the last of them', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'Gone soon.')
  const reply = await w.service.comment(record, 'Still here.', { parent: id })
  const { page } = await w.open(t, { record, who: w.service.ada })
  const place = article(page, id).locator('> .content')
  for (const look of [() => deleteComment(page, id), () => page.reload()]) {
    await look()
    await place.getByText('This comment was deleted').waitFor()
    assert.equal(await place.getByRole('button').count(), 0)
    assert.equal(await article(page, id).locator('> .avatar').textContent(), '')
    await article(page, reply.id).getByText('Still here.').waitFor()
  }
  await deleteComment(page, reply.id)
  await page.getByText('No comments yet').waitFor()
  await page.reload()
  await page.getByText('No comments yet').waitFor()
})

test('a like is shown before the response, and reverted if the API refuses it', async (t) => {
  const { page, id, context } = await w.open(t, { comment: 'Likeable.', who: w.service.bob })
  const like = article(page, id).getByRole('button', { name: /^Like/ })
  const answer = await hold(page, /\/like$/)
  await like.click()
  assert.equal(await like.getAttribute('aria-pressed'), 'true')
  assert.equal(await like.getAttribute('aria-label'), 'Like 1')
  answer()
  await page.locator('.like[aria-busy=false]').waitFor()
  assert.equal(await like.getAttribute('aria-pressed'), 'true')
  await context.setOffline(true)
  await like.click()
  await page.getByRole('status').getByText('No connection').waitFor()
  assert.equal(await like.getAttribute('aria-pressed'), 'true')
  assert.equal(await like.getAttribute('aria-label'), 'Like 1')
})

test('a comment is reported once, with a reason', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Buy this.' })
  await choose(page, id, 'Report')
  await page.getByRole('radio', { name: 'Offensive' }).check()
  await page.getByLabel('Details (optional)').fill('See for yourself.')
  await page.getByRole('dialog').getByRole('button', { name: 'Report' }).click()
  await page.getByText('Thank you for your report').waitFor()
  assert.equal(await focusedComment(page), `comment-${id}`)
  assert.equal(await page.getByRole('status').textContent(), 'Thank you for your report')
  const { data } = await w.service.call('GET', `comments/${id}/reports`, w.service.moderator)
  assert.equal(data[0].reason, 'offensive: See for yourself.')
  await page.reload()
  await openMenu(page, id)
  assert.ok(await page.getByRole('menuitem', { name: 'Reported' }).isDisabled())
})

test('a guest enters a name, which is stored on the device, and an address, which isn’t', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await page.getByPlaceholder('Write a comment…').fill('From a guest.')
  await page.getByLabel('Your name').fill('Zoë')
  await page.getByLabel('Your e-mail address').fill('zoe@example.org')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes('example.org'))
  const reads = page.waitForRequest(/\/comments\?/)
  await page.reload()
  // A shared cache would hide this guest's comments.
  assert.equal(new URL((await reads).url()).searchParams.get('mine'), '1')
  await page.locator('article').waitFor()
  await page.getByPlaceholder('Write a comment…').focus()
  assert.equal(await page.getByLabel('Your name').inputValue(), 'Zoë')
  assert.equal(await page.getByLabel('Your e-mail address').inputValue(), '')
})

test('a draft outlives the page, separately for each thread, until it is sent', async (t) => {
  const record = newRecord()
  const { page } = await w.open(t, { record, who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.fill('Half a thou')
  await page.reload()
  await text.waitFor()
  assert.equal(await text.inputValue(), 'Half a thou')
  await page.locator('comment-thread').evaluate((element, record) => element.setAttribute('record', record), newRecord())
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === '')
  await page.locator('comment-thread').evaluate((element, record) => element.setAttribute('record', record), record)
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('textarea')?.value === 'Half a thou')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  await page.reload()
  await page.locator('article').waitFor()
  assert.equal(await text.inputValue(), '')
})

/** Makes the host change the visitor, as if another person used the device. @param {import('playwright-core').Page} page @param {string | null} auth */
const becoming = (page, auth) => rebuilding(page, () => become(page.locator('comment-thread'), auth))

test('a draft is shown only to its visitor on a device that others also use', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Ask me.', who: w.service.ada })
  const [text, answer] = [page.getByPlaceholder('Write a comment…'), page.getByPlaceholder('Write a reply…')]
  await text.fill('Between us')
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await answer.fill('What Ada answers')
  await becoming(page, w.service.bob)
  assert.deepEqual([await text.inputValue(), await answer.inputValue()], ['', ''])
  await text.fill('What Bob thinks')
  await becoming(page, null)
  assert.deepEqual([await text.inputValue(), await answer.inputValue()], ['', ''])
  await page.reload()
  await text.waitFor()
  assert.equal(await text.inputValue(), 'Between us')
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  assert.equal(await answer.inputValue(), 'What Ada answers')
  await becoming(page, w.service.bob)
  assert.deepEqual([await text.inputValue(), await answer.inputValue()], ['What Bob thinks', ''])
})

test('text that a guest has typed is kept when they sign in, and then belongs to the member', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  const text = page.getByPlaceholder('Write a comment…')
  await text.fill('What I think')
  await becoming(page, w.service.ada)
  assert.equal(await text.inputValue(), 'What I think')
  for (const who of [null, w.service.bob]) {
    await becoming(page, who)
    assert.equal(await text.inputValue(), '')
  }
  await becoming(page, w.service.ada)
  assert.equal(await text.inputValue(), 'What I think')
  await becoming(page, null)
  await text.fill('What a guest left')
  // The visitor returns another day, on the same device.
  await page.reload()
  await text.waitFor()
  assert.equal(await text.inputValue(), 'What a guest left')
  await becoming(page, w.service.ada)
  assert.equal(await text.inputValue(), 'What I think')
  await becoming(page, w.service.bob)
  assert.equal(await text.inputValue(), '')
})

test('an error is visible, is in a live region and names the field', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.getByPlaceholder('Write a comment…').fill('x'.repeat(10_001))
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('alert').getByText('Comment can have at most 10000 characters.').waitFor()
  assert.equal((await page.getByPlaceholder('Write a comment…').inputValue()).length, 10_001)
  await page.getByPlaceholder('Write a comment…').fill('Shorter.')
  await page.getByText('Comment can have at most').waitFor({ state: 'detached' })
})

test('the preview is the HTML that is published', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const body = 'A **bold** [link](https://example.org), `code` and <b>no HTML</b>.\n\n> Quoted\n\n```rust\nfn main() {}\n```'
  await page.getByPlaceholder('Write a comment…').fill(body)
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview strong').waitFor()
  const preview = await page.locator('.preview').innerHTML()
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  assert.equal(await page.locator('article .body').innerHTML(), preview)
})

test('after a comment was sent from its preview the next one can be written', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.fill('One.')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview p').waitFor()
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  await text.fill('Two.')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').nth(1).waitFor()
})

test('tools and shortcuts put Markdown around the selection', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  const after = async (/** @type {string} */ name) => {
    await text.fill('one\ntwo')
    await text.selectText()
    await page.getByRole('button', { name, exact: true }).click()
    return text.inputValue()
  }
  assert.equal(await after('Bold'), '**one\ntwo**')
  assert.equal(await after('Quote'), '> one\n> two')
  assert.equal(await after('List'), '- one\n- two')
  await text.fill('word')
  await text.selectText()
  await page.keyboard.press('Control+i')
  assert.equal(await text.inputValue(), '_word_')
  await page.keyboard.press('Control+k')
  assert.equal(await text.inputValue(), '_[word](https://)_')
  for (const [written, words, marked] of [
    ['one', 'one', '`one`'],
    ['a `b` c', 'a `b` c', '`` a `b` c ``'],
    ['``', '``', '``` `` ```'],
    ['if a:\n    b\n', 'if a:\n    b\n', '```\nif a:\n    b\n```\n'],
    ['  if a:\n    b', '  if a:\n    b', '```\n  if a:\n    b\n```'],
    ['one\n\ntwo\n', '\n\ntwo\n', 'one\n\n`two`\n'],
    ['see a\nb too', 'a\nb', 'see \n```\na\nb\n```\n too'],
    ['```\na\n```', '```\na\n```', '````\n```\na\n```\n````'],
  ]) {
    await text.fill(written)
    await text.evaluate((text, [at, length]) => /** @type {HTMLTextAreaElement} */ (text).setSelectionRange(at, at + length), [written.indexOf(words), words.length])
    await page.keyboard.press('Control+e')
    assert.equal(await text.inputValue(), marked)
  }
  await page.keyboard.type('\nc')
  assert.equal(await text.inputValue(), '````\n```\na\n```\n````\nc', 'the caret is after a block')
  for (const [words, marked] of [[' one two \n', ' **one two** \n'], ['  ', '****  '], ['', '****']]) {
    await text.fill(words)
    await text.selectText()
    await page.keyboard.press('Control+b')
    assert.equal(await text.inputValue(), marked, 'blanks stay outside')
    await page.keyboard.type('x')
    assert.equal(await text.inputValue(), marked.replace(/(\*\*)(.*)\1/, '$1x$1'), 'what is inside is selected')
  }
})

test('an emoji is inserted without a request', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.getByPlaceholder('Write a comment…').fill('Good ')
  await page.getByRole('button', { name: 'Emoji' }).waitFor()
  /** @type {string[]} */
  const requests = []
  page.on('request', (request) => requests.push(request.url()))
  await page.getByRole('button', { name: 'Emoji' }).click()
  await page.getByRole('button', { name: '👍' }).click()
  assert.equal(await page.getByPlaceholder('Write a comment…').inputValue(), 'Good 👍')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').waitFor()
  assert.match(requests[0], /\/comments$/)
})

test('a mention is completed by keyboard and becomes a link', async (t) => {
  await w.service.call('GET', 'ui', token(21, 'Marie Curie'))
  await w.service.call('GET', 'ui', token(22, 'Marie Tharp'))
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.focus()
  await page.keyboard.type('Ask @mar')
  await page.locator('[role=option]').nth(1).waitFor()
  await page.keyboard.press('ArrowDown')
  const second = await page.locator('[role=option]').nth(1).locator('span').last().textContent()
  assert.equal(await text.getAttribute('aria-activedescendant'), await page.locator('[role=option]').nth(1).getAttribute('id'))
  await page.keyboard.press('Enter')
  const handle = (second ?? '').toLowerCase().replace(' ', '_')
  assert.equal(await text.inputValue(), `Ask @${handle} `)
  await page.keyboard.press('Control+Enter')
  await page.locator(`article .body a[href="/users/${handle}"]`).waitFor()
})

test('an image is uploaded by button, paste and drop, with an alternative text', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.focus()
  await chooseImage(page)
  const descriptions = page.getByLabel('Describe the image')
  await descriptions.fill('A [cat]')
  assert.equal(await text.inputValue(), '')
  for (const [place, type] of ['paste', 'drop'].entries()) {
    await text.evaluate(
      (element, { type, bytes }) => {
        const data = new DataTransfer()
        data.items.add(new File([Uint8Array.from(bytes)], 'dog.png', { type: 'image/png' }))
        const init = { bubbles: true, cancelable: true }
        const event = type === 'paste' ? new ClipboardEvent(type, { ...init, clipboardData: data }) : new DragEvent(type, { ...init, dataTransfer: data })
        element.dispatchEvent(event)
      },
      { type, bytes: [...PIXEL] },
    )
    await descriptions.nth(place + 1).waitFor()
  }
  await page.getByRole('button', { name: 'Delete: dog.png' }).last().click()
  await descriptions.nth(1).fill('A dog')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article .body img').nth(1).waitFor()
  assert.deepEqual(await page.locator('article .body img').evaluateAll((all) => all.map((image) => image.getAttribute('alt'))), ['A [cat]', 'A dog'])
  assert.equal(await descriptions.count(), 0)
})

test('an image goes where the caret was when it was chosen, whatever is typed around it meanwhile', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  const caret = async (/** @type {number} */ at) => {
    await text.focus()
    await text.evaluate((text, at) => /** @type {HTMLTextAreaElement} */ (text).setSelectionRange(at, at), at)
  }
  await text.fill('Before. After.')
  await caret(7)
  await chooseImage(page, 'second.png')
  await caret(0)
  await chooseImage(page, 'first.png')
  await caret(14)
  await page.keyboard.type(' The end.')
  await caret(0)
  await page.keyboard.type('Start. ')
  await caret(7)
  for (let n = 0; n < 7; n += 1) await page.keyboard.press('Backspace')
  await page.keyboard.type('Oh. ')
  assert.equal(await text.inputValue(), 'Oh. Before. After. The end.')
  await page.getByLabel('Describe the image').first().fill('second')
  await page.getByLabel('Describe the image').nth(1).fill('first [')
  const request = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/comments'))
  await page.getByRole('button', { name: 'Post comment' }).click()
  const { body } = (await request).postDataJSON()
  assert.match(body, /^!\[first \\\[\]\(\S+\)\n\nOh\. Before\.\n\n!\[second\]\(\S+\)\n\n After\. The end\.$/)
})

test('an image splits no word, mention, address or mark that is typed or put around it', async (t) => {
  for (const [id, name] of /** @type {const} */ ([[24, 'Bob'], [25, 'Bob Smith']])) await w.service.call('GET', 'ui', token(id, name))
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  const select = async (/** @type {string} */ words) => {
    await text.focus()
    await text.evaluate((text, words) => {
      const { value } = /** @type {HTMLTextAreaElement} */ (text)
      const start = value.lastIndexOf(words)
      ;/** @type {HTMLTextAreaElement} */ (text).setSelectionRange(start, start + words.length)
    }, words)
  }
  const press = async (/** @type {string[]} */ ...keys) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  for (const [written, change, expected, at = written.length] of /** @type {[string, () => Promise<void>, string, number?][]} */ ([
    ['I like this pictrue', async () => (await press('Backspace', 'Backspace', 'Backspace'), page.keyboard.type('ure')), 'I like this picture\n\nIMAGE'],
    ['Look at teh', async () => (await select('teh'), page.keyboard.type('the cat')), 'Look at the cat\n\nIMAGE'],
    ['one', async () => (await press('Control+a'), page.keyboard.type('new text')), 'new text\n\nIMAGE'],
    ['one two', async () => (await select('two'), press('Control+b')), 'one **two**\n\nIMAGE'],
    ['one two', async () => press('Control+a', 'x', 'Control+z'), 'one two\n\nIMAGE'],
    ['one two', async () => press('Control+a', 'Delete', 'Control+z'), 'one two\n\nIMAGE'],
    ['one', async () => page.keyboard.type(' and two'), 'one\n\nIMAGE\n\n and two'],
    ['**bold text** end', async () => {}, '**bold text** end\n\nIMAGE', 6],
    ['see [two words](https://x.example/)\nend', async () => {}, 'see [two words](https://x.example/)\n\nIMAGE\n\nend', 8],
    ['| a | b |\n|---|---|\n| 1 | 2 |', async () => {}, '| a | b |\n|---|---|\n| 1 | 2 |\n\nIMAGE', 23],
    ['> one two', async () => {}, '> one two\n\nIMAGE', 5],
    ['你好世界。再见\n再见', async () => {}, '你好世界。再见\n\nIMAGE\n\n再见', 2],
    ['one two', async () => {}, 'one\n\nIMAGE\n\ntwo', 4],
    ['दुनिया में', async () => {}, 'दुनिया\n\nIMAGE\n\n में', 4],
    ['Don’t', async () => {}, 'Don’t\n\nIMAGE', 3],
    ['https://example.org/a', async () => page.keyboard.type('-b too'), 'https://example.org/a-b\n\nIMAGE\n\n too'],
    ['👩', async () => page.keyboard.insertText('\u200d💻👍'), '👩\u200d💻👍\n\nIMAGE'],
    ['Hi @', async () => page.keyboard.type('bob look'), 'Hi @bob\n\nIMAGE\n\n look'],
    ['Hi @bob', async () => (await page.keyboard.type('_s'), await page.getByText('Bob Smith').waitFor(), await press('Enter'), page.keyboard.type('look')), 'Hi @bob_smith\n\nIMAGE\n\n look'],
  ])) {
    await text.fill(written)
    await text.evaluate((text, at) => /** @type {HTMLTextAreaElement} */ (text).setSelectionRange(at, at), at)
    // The list of people would cover the button.
    await text.blur()
    await chooseImage(page)
    await text.focus()
    await change()
    const request = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/comments'))
    await page.getByRole('button', { name: 'Post comment' }).click()
    const { body } = (await request).postDataJSON()
    assert.equal(body.replace(/!\[\]\(\S+\)/, 'IMAGE'), expected)
    await page.locator('.chip').waitFor({ state: 'detached' })
  }
})

test('an image that is removed while its comment is sent is not in it', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const release = await hold(page, /\/media$/)
  await page.getByPlaceholder('Write a comment…').fill('No image.')
  await chooseImage(page, 'first.png')
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.getByRole('button', { name: 'Delete: first.png' }).click()
  release()
  await page.locator('article').waitFor()
  assert.equal(await page.locator('article img:not(.avatar)').count(), 0)
})

test('a comment whose image fails while it is sent is posted with it by the next press', async (t) => {
  for (const [written, ...names] of [['Look:', 'first.png'], ['Look:', 'first.png', 'second.png'], ['', 'first.png']]) {
    const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
    const text = page.getByPlaceholder('Write a comment…')
    await page.route(/\/media$/, (route) => route.fulfill({ status: 503, headers: { 'access-control-allow-origin': '*' } }), { times: 1 })
    const release = await hold(page, /\/media$/)
    await text.fill(written)
    for (const name of names) await chooseImage(page, name)
    await page.getByRole('button', { name: 'Post comment' }).click()
    release()
    await page.getByRole('alert').getByText('Something went wrong').waitFor()
    await page.getByRole('button', { name: 'Post comment' }).waitFor()
    assert.deepEqual(await page.getByRole('alert').filter({ hasText: /./ }).allTextContents(), ['Something went wrong'])
    assert.deepEqual([await text.inputValue(), await page.locator('.chip').count(), await page.locator('article').count()], [written, names.length, 0])
    await page.getByRole('button', { name: 'Post comment' }).click()
    await page.locator('article').waitFor()
    assert.equal(await page.locator('article .body img').count(), names.length)
  }
})

test('an image that is added while a comment or an edit is sent stays for the next one', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Mine.', who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  const send = page.getByRole('button', { name: 'Post comment' })
  await text.fill('First.')
  await chooseImage(page, 'first.png')
  const release = await hold(page, /\/comments(\/\d+)?$/)
  await send.click()
  await chooseImage(page, 'second.png')
  release()
  await page.locator('article').getByText('First.').waitFor()
  await page.getByRole('button', { name: 'Delete: second.png' }).waitFor()
  assert.deepEqual([await page.locator('.chip').count(), await text.inputValue()], [1, ''])
  await text.fill('Second.')
  await send.click()
  const posted = page.locator('article', { hasText: 'Second.' })
  await posted.locator('.body img').waitFor()
  assert.deepEqual([await page.locator('article .body img').count(), await page.locator('.chip').count()], [2, 0])

  await choose(page, id, 'Edit')
  const form = article(page, id).locator('form')
  await form.locator('textarea').fill('Changed.')
  const releaseEdit = await hold(page, /\/comments\/\d+$/)
  await form.getByRole('button', { name: 'Save' }).click()
  const chooser = page.waitForEvent('filechooser')
  await form.getByRole('button', { name: 'Upload an image' }).click()
  await (await chooser).setFiles({ name: 'third.png', mimeType: 'image/png', buffer: PIXEL })
  releaseEdit()
  await form.waitFor({ state: 'detached' })
  await choose(page, id, 'Edit')
  assert.deepEqual([await form.locator('.chip').count(), await form.locator('textarea').inputValue()], [1, 'Changed.'])
})

test('a reply that is put aside while it is sent has its image', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Mine.', who: w.service.ada })
  const release = await hold(page, /\/media$/)
  await article(page, id).getByRole('button', { name: 'Reply' }).first().click()
  const form = article(page, id).locator('form')
  await form.locator('textarea').fill('Look:')
  await chooseImage(page)
  await form.getByRole('button', { name: 'Reply' }).click()
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  release()
  await article(page, id).locator('article', { hasText: 'Look:' }).locator('.body img').waitFor()
})

test('an image that is chosen offline stays with the text, and is uploaded when that is sent', async (t) => {
  const { page, context } = await w.open(t, { record: newRecord(), who: w.service.ada })
  await page.getByPlaceholder('Write a comment…').fill('Look:')
  await page.getByRole('button', { name: 'Upload an image' }).waitFor()
  await context.setOffline(true)
  await chooseImage(page)
  await page.getByRole('alert').getByText(/saved/).waitFor()
  const send = page.getByRole('button', { name: 'Post comment' })
  await Promise.all([page.waitForEvent('requestfailed'), send.click()])
  await send.waitFor()
  assert.equal(await page.locator('.chip').count(), 1)
  await context.setOffline(false)
  await page.getByText('Back online').waitFor()
  await send.click()
  await page.locator('article .body img').waitFor()
  assert.equal(await page.locator('.chip').count(), 0)
})

test('a reply and an edit that are put aside keep their images and descriptions', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Mine.', who: w.service.ada })
  const form = article(page, id).locator('form')
  const [reply, edit] = [() => article(page, id).getByRole('button', { name: 'Reply' }).first().click(), () => choose(page, id, 'Edit')]
  for (const [open, send, close] of /** @type {const} */ ([
    [reply, 'Reply', () => page.keyboard.press('Escape')],
    [reply, 'Reply', reply],
    [edit, 'Save', () => form.getByRole('button', { name: 'Cancel' }).click()],
  ])) {
    await open()
    assert.equal(await page.locator('.chip').count(), 0, 'what was sent is gone')
    await form.locator('textarea').fill('Look:')
    await chooseImage(page)
    await page.getByLabel('Describe the image').fill('A cat')
    await close()
    await open()
    assert.equal(await form.locator('textarea').inputValue(), 'Look:')
    await form.getByRole('button', { name: send }).click()
    await form.waitFor({ state: 'detached' })
    await page.getByRole('img', { name: 'A cat' }).last().waitFor()
  }
  assert.equal(await page.getByRole('img', { name: 'A cat' }).count(), 3)
})

test('a reply with an image that is put aside shows no lost connection once there is one again', async (t) => {
  const { page, id, context } = await w.open(t, { comment: 'Mine.', who: w.service.ada })
  const reply = () => article(page, id).getByRole('button', { name: 'Reply' }).first().click()
  const form = article(page, id).locator('form')
  const notice = form.getByText('No connection. Your draft is saved.')
  await reply()
  await form.locator('textarea').fill('Look:')
  await chooseImage(page)
  await page.getByLabel('Describe the image').waitFor()
  for (let n = 0; n < 2; n += 1) {
    await context.setOffline(true)
    await notice.waitFor()
    await page.keyboard.press('Escape')
    await form.waitFor({ state: 'detached' })
    await context.setOffline(false)
    await page.getByText('Back online').waitFor()
    await reply()
    await form.waitFor()
    assert.equal(await notice.count(), 0)
  }
})

test('a file that isn’t an image is refused, and the text is kept', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: w.service.ada })
  const text = page.getByPlaceholder('Write a comment…')
  await text.fill('Look: ')
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: 'Upload an image' }).click()
  await (await chooser).setFiles({ name: 'cat.png', mimeType: 'image/png', buffer: Buffer.from('not an image') })
  await page.getByRole('alert').getByText(/image/).waitFor()
  assert.equal(await text.inputValue(), 'Look: ')
})

test('actions that the page’s visitor may not perform are not offered', async (t) => {
  const [readOnly, members, approval] = await Promise.all([
    Service.start({ SVC_READ_ONLY: 'true' }),
    Service.start(),
    Service.start({ SVC_REQUIRE_APPROVAL: 'true' }),
  ])
  t.after(() => Promise.all([readOnly.stop(), members.stop(), approval.stop()]))
  const record = newRecord()
  const closed = await w.open(t, { record, service: readOnly, who: readOnly.ada })
  await closed.page.getByText('Comments are closed').waitFor()
  assert.equal(await closed.page.locator('form').count(), 0)

  await members.call('PUT', 'users/8/ban', members.moderator, {})
  await members.comment(record, 'Hello.')
  const banned = await w.open(t, { record, service: members, who: members.bob })
  await banned.page.getByText("You can't comment right now.").waitFor()
  assert.equal(await banned.page.getByRole('button', { name: 'Reply' }).count(), 0)
  await banned.page.getByRole('button', { name: 'More' }).click()
  await banned.page.getByRole('menu').waitFor()
  assert.deepEqual(await banned.page.getByRole('menuitem').allTextContents(), ['Copy link'])

  const guest = await w.open(t, { record, service: members, init: `addEventListener('comment-sign-in', (event) => (window.asked = event.cancelable))` })
  await guest.page.getByRole('button', { name: 'Sign in to comment' }).click()
  assert.equal(await guest.page.evaluate(() => /** @type {any} */ (window).asked), true)
  await guest.page.evaluate(() => Object.assign(window, { asked: undefined }))
  for (const name of ['Like', 'Reply']) {
    await guest.page.getByRole('button', { name }).click()
    assert.equal(await guest.page.evaluate(() => /** @type {any} */ (window).asked), true, name)
    await guest.page.evaluate(() => Object.assign(window, { asked: undefined }))
  }
  assert.equal(await guest.page.locator('form').count(), 0)

  const waiting = await w.open(t, { record, service: approval, who: approval.ada })
  await waiting.page.getByPlaceholder('Write a comment…').fill('May I?')
  await waiting.page.getByRole('button', { name: 'Post comment' }).click()
  await waiting.page.locator('article').getByText('Only you see this until it is approved').waitFor()
  assert.equal(await waiting.page.locator('article').getByRole('button', { name: 'Reply' }).count(), 0)
})

test('a reply that is being written survives a change of the visitor', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Ask me.' })
  await article(page, id).getByRole('button', { name: 'Reply' }).click()
  await page.getByPlaceholder('Write a reply…').fill('As a guest, then signed in')
  await become(thread, w.service.bob)
  await page.waitForFunction(() => !document.querySelector('comment-thread')?.shadowRoot?.querySelector('.names'))
  assert.equal(await page.getByPlaceholder('Write a reply…').inputValue(), 'As a guest, then signed in')
})

test('an edit that is being written survives a new token as an edit', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'Teh text.', who: w.service.ada })
  await choose(page, id, 'Edit')
  await article(page, id).locator('textarea').fill('The text.')
  const first = await article(page, id).elementHandle()
  await become(thread, token(7, 'Ada Lovelace', { jti: 'new' }))
  await page.waitForFunction((element) => !element?.isConnected, first)
  assert.equal(await article(page, id).locator('textarea').inputValue(), 'The text.')
  await article(page, id).getByRole('button', { name: 'Save' }).click()
  await article(page, id).getByText('The text.').waitFor()
})

test('after the last comment of a thread was deleted the focus is in the editor', async (t) => {
  const { page, id } = await w.open(t, { comment: 'Only one.', who: w.service.ada })
  await deleteComment(page, id)
  await article(page, id).waitFor({ state: 'detached' })
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.activeElement?.matches('textarea'))
})
