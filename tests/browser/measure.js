/**
 * Measures a page with ten comments, each with three replies, on a slow connection: with the widget and, if ISSO is the path of
 * Isso's program (`pip install isso`), also with Isso and the same content. Run by `npm run measure`.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { Service, Site, token } from './world.js'

/** 1.6 Mbit/s down, 750 kbit/s up, 150 ms: a slow phone. */
const SLOW = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 93_750 }
const RUNS = 5
const BODY = 'A comment of some sentences, as people write them. It agrees with a part of what was said, asks about the rest, and ends.'

/** @param {(body: string, parent?: number) => Promise<number>} write */
async function fill(write) {
  for (let i = 0; i < 10; i++) {
    const parent = await write(`${BODY} ${i}`)
    for (let j = 0; j < 3; j++) await write(`${BODY} ${i}.${j}`, parent)
  }
}

async function ours() {
  const service = await Service.start()
  await fill(async (body, parent) => (await service.comment('1', body, { parent, who: token(parent ? 8 : 7, parent ? 'Bob' : 'Ada') })).id)
  return {
    html: `<script type="module" src="${service.api}/embed.js"></script><comment-thread type="posts" record="1"></comment-thread>`,
    comment: 'article .body',
    stop: () => service.stop(),
  }
}

/** @param {string} program */
async function isso(program) {
  const folder = mkdtempSync(join(tmpdir(), 'isso-'))
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (free.address())
  free.close()
  const address = `http://127.0.0.1:${port}`
  const settings = `[general]\ndbpath = ${folder}/isso.db\nhost = ${site.url}\n[server]\nlisten = ${address}\n[guard]\nenabled = false\n`
  writeFileSync(join(folder, 'isso.cfg'), settings)
  const server = spawn(program, ['-c', join(folder, 'isso.cfg'), 'run'], { stdio: 'ignore' })
  const headers = { 'content-type': 'application/json', origin: `${site.url}` }
  const ready = () => fetch(`${address}/info`).then((response) => response.ok, () => false)
  while (!(await ready())) await new Promise((resolve) => setTimeout(resolve, 100))
  await fill(async (text, parent) => {
    const body = JSON.stringify({ text, parent, title: 'A post', author: parent ? 'Bob' : 'Ada' })
    const response = await fetch(`${address}/new?uri=/thread`, { method: 'POST', headers, body })
    return (await response.json()).id
  })
  return {
    html: `<script data-isso="${address}/" src="${address}/js/embed.min.js"></script><section id="isso-thread" data-isso-id="/thread"></section>`,
    comment: '.isso-text p',
    stop: async () => {
      server.kill()
      await once(server, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

const site = new Site()
await site.start()
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
const median = (/** @type {number[]} */ numbers) => numbers.sort((one, other) => one - other)[Math.floor(numbers.length / 2)]

console.log('| | requests | bytes | milliseconds to the first comment | layout shift |')
console.log('|---|---|---|---|---|')
for (const [name, start] of Object.entries({ widget: ours, ...(process.env.ISSO && { isso: () => isso(/** @type {string} */ (process.env.ISSO)) }) })) {
  const peer = await start()
  const url = site.add(`<!doctype html><html lang="en"><meta charset="utf-8"><title>A post</title><h1>A post</h1><p>What it says.</p>${peer.html}<footer>The end.</footer></html>`)
  const runs = []
  for (let run = 0; run < RUNS; run++) {
    const context = await browser.newContext()
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Network.emulateNetworkConditions', SLOW)
    let requests = 0
    let bytes = 0
    // Blocks avatars, which other servers provide.
    await page.route(/^https:/, (route) => route.abort())
    session.on('Network.requestWillBeSent', ({ request }) => (requests += request.url.startsWith('http:') ? 1 : 0))
    session.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength))
    await page.addInitScript(`window.shift = 0
      new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.shift += entry.value))).observe({ type: 'layout-shift', buffered: true })`)
    await page.goto(url, { waitUntil: 'commit' })
    await page.locator(peer.comment).first().waitFor()
    const time = await page.evaluate(() => performance.now())
    await page.waitForLoadState('networkidle')
    runs.push({ time, requests, bytes, shift: await page.evaluate(() => /** @type {any} */ (window).shift) })
    await context.close()
  }
  const of = (/** @type {'time' | 'requests' | 'bytes' | 'shift'} */ key) => median(runs.map((run) => run[key]))
  console.log(`| ${name} | ${of('requests')} | ${of('bytes')} | ${Math.round(of('time'))} | ${of('shift').toFixed(3)} |`)
  await peer.stop()
}
await browser.close()
site.stop()
