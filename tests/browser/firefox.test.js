import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import puppeteer from 'puppeteer-core'
import { newRecord, Service, Site } from './world.js'

// Playwright cannot drive Debian's Firefox, so this goes by WebDriver BiDi.
const site = new Site()
/** @type {Service} */
let service
/** @type {import('puppeteer-core').Browser} */
let browser

before(async () => {
  await site.start()
  service = await Service.start()
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', headless: true })
})
after(async () => {
  await browser.close()
  await service.stop()
  site.stop()
})

test('in Firefox a thread is read, and a comment is written', async () => {
  const record = newRecord()
  await service.comment(record, 'Hello, **world**.', { who: service.bob })
  const page = await browser.newPage()
  /** @type {unknown[]} */
  const errors = []
  page.on('pageerror', (error) => errors.push(error))
  await page.goto(
    site.add(`<!doctype html><html lang="en"><script type="module" src="${service.api}/embed.js"></script>
      <comment-thread type="posts" record="${record}"></comment-thread>
      <script>document.querySelector('comment-thread').auth = ${JSON.stringify(service.ada)}</script>`),
  )
  await page.waitForSelector('>>> article strong')
  const text = await page.waitForSelector('>>> textarea')
  await text?.type('From **Firefox**.')
  await (await page.waitForSelector('>>> form .primary'))?.click()
  await page.waitForFunction(() => document.querySelector('comment-thread')?.shadowRoot?.querySelectorAll('article').length === 2)
  const bodies = await page.evaluate(() =>
    [...(document.querySelector('comment-thread')?.shadowRoot?.querySelectorAll('article .body') ?? [])].map(({ innerHTML }) => innerHTML.trim()),
  )
  assert.deepEqual(bodies, ['<p>From <strong>Firefox</strong>.</p>', '<p>Hello, <strong>world</strong>.</p>'])
  assert.deepEqual(errors, [])
})
