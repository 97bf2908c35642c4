import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, newRecord, world } from './world.js'

const w = world()

/** Everything that a comment may contain, and content that must be removed. */
const BODY = `# Title

A **bold** _word_, \`code\`, [a link](https://example.org "title") and <script>alert(1)</script>.

3. three

> quote

\`\`\`rust
fn main() {}
\`\`\`

![picture](https://example.org/i.png)

---`

const strict = (/** @type {string} */ extra = '') => ({
  'content-security-policy': `default-src 'none'; script-src ${new URL(w.service.api).origin} 'nonce-host'; connect-src ${new URL(w.service.api).origin};
    img-src ${new URL(w.service.api).origin} https:; require-trusted-types-for 'script'; trusted-types ${extra || "'none'"}`.replace(/\s+/g, ' '),
})

const WATCH = `window.violations = []
  document.addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`
const NO_SET_HTML = 'delete Element.prototype.setHTML'
const body = (/** @type {import('playwright-core').Page} */ page) => page.locator('article .body').first()
const violations = (/** @type {import('playwright-core').Page} */ page) => page.evaluate(() => /** @type {any} */ (window).violations)

test('under the strictest policy nothing is violated, and everything works', async (t) => {
  const record = newRecord()
  await w.service.comment(record, BODY)
  const html = `<comment-thread type="posts" record="${record}"></comment-thread>
    <script nonce="host">document.querySelector('comment-thread').auth = ${JSON.stringify(w.service.bob)}</script>`
  const { page, errors } = await w.open(t, { record, html, headers: strict(), init: WATCH })
  await body(page).locator('strong').waitFor()
  await page.getByPlaceholder('Write a comment…').fill('A reply with **bold**.')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.locator('.preview strong').waitFor()
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('button', { name: 'Post comment' }).click()
  await page.locator('article').nth(1).waitFor()
  await page.getByRole('button', { name: 'More' }).last().click()
  await page.getByRole('menuitem', { name: 'Report' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  assert.deepEqual(await violations(page), [])
  assert.deepEqual(errors, [])
  assert.equal(await page.locator('comment-thread [style], comment-thread style').count(), 0)
})

test('without setHTML, its own policy gives the same tree', async (t) => {
  const record = newRecord()
  await w.service.comment(record, BODY)
  const headers = strict('comment-thread')
  const modern = await w.open(t, { record, headers, init: WATCH })
  const older = await w.open(t, { record, headers, init: `${WATCH}; ${NO_SET_HTML}` })
  const [one, other] = await Promise.all([body(modern.page).innerHTML(), body(older.page).innerHTML()])
  assert.equal(one, other)
  assert.match(one, /<strong>bold<\/strong>/)
  assert.deepEqual(await violations(older.page), [])
})

test('where neither may run, bodies are shown as text, and one violation is reported', async (t) => {
  const record = newRecord()
  await w.service.comment(record, BODY)
  await w.service.comment(record, 'Another **one**.')
  const { page, errors } = await w.open(t, { record, headers: strict(), init: `${WATCH}; ${NO_SET_HTML}` })
  assert.equal(await body(page).textContent(), 'Another **one**.')
  await page.waitForFunction(() => /** @type {any} */ (window).violations.length)
  assert.equal((await violations(page)).length, 1)
  assert.deepEqual(errors, [])
})

test('content that the API would never send does not get through, on either path', async (t) => {
  const hostile = `<p class="x language-y" onclick="bad()" style="color: red" id="a" data-x="1">text<!-- comment --></p>
    <a href="javascript:bad()" rel="nofollow" target="_blank">run</a> <a href=" java&#10;script:bad()">run</a> <a href="data:text/html,bad">run</a>
    <a href="/users/ada" rel="nofollow ugc noopener" title="t">ada</a> <a href="mailto:a@example.org">mail</a>
    <img src="data:image/svg+xml,bad" alt="a" onerror="bad()"> <img src="x" srcset="y"><img src="https://example.org/a.png" alt="b">
    <script>bad()</script><style>p { color: red }</style><iframe src="//x"></iframe><svg><a href="x">y</a><script>bad()</script></svg>
    <form action="/x"><input name="y"></form><template><p>z</p></template><math><mi>q</mi></math><b>not allowed</b>
    <constructor>inherited</constructor><constructor title="x">inherited</constructor><p constructor="x">own</p>
    <ol start="3"><li>three</ol><pre><code class="language-js">1</code></pre><code class="other">2</code>
    <table><tr><td onclick="bad()">cell</table><p><table><tr><td>in a paragraph</table></body></html><p>after`
  const record = newRecord()
  await w.service.comment(record, 'Hello.')
  const show = async (/** @type {string} */ init) => {
    const { page } = await w.open(t, {
      record,
      init: `window.bad = () => (window.ran = true); ${init}`,
      prepare: answering(({ data }) => (data[0].html = hostile)),
    })
    // Once the last image is loaded, all scripts that can run have run.
    await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelector('img[alt=b]')?.['naturalWidth'])
    assert.equal(await page.evaluate(() => /** @type {any} */ (window).ran), undefined)
    return body(page).innerHTML()
  }
  const [one, other] = await Promise.all([show(''), show(NO_SET_HTML)])
  assert.equal(one, other)
  assert.match(one, /<p>text<\/p>/)
  assert.match(one, /<a href="\/users\/ada" rel="nofollow ugc noopener" title="t">ada<\/a>/)
  assert.match(one, /<a href="mailto:a@example.org">/)
  assert.match(one, /<img src="https:\/\/example.org\/a.png" alt="b" loading="lazy" referrerpolicy="no-referrer">/)
  assert.match(one, /<code class="language-js">/)
  assert.doesNotMatch(one, /bad|style|iframe|svg|form|template|data-|class="other"|srcset|not allowed|inherited|constructor|math|target|data:/)
})
