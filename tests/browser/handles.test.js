/** Tests that the widget and the service agree on handles, and on the mentions in a text. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { handleOf, typedAt } from '../../functions/ui/embed/writer/handles.js'

/** @type {{ handles: [string, string | null][], mentions: [string, string | null][] }} */
const { handles, mentions } = JSON.parse(readFileSync(new URL('../mentions.json', import.meta.url), 'utf8'))

test('the widget computes the handle of every name', () => {
  for (const [name, handle] of handles) assert.equal(handleOf(name), handle ?? '', name)
  assert.equal(handleOf('李'.repeat(60)), '李'.repeat(50))
})

test('a mention is offered where the service accepts it', () => {
  for (const [typed, query] of mentions) {
    const caret = typed.indexOf('|')
    assert.equal(typedAt(typed.slice(0, caret) + typed.slice(caret + 1), caret) ?? null, query, typed)
  }
})

test('the place of a mention is found in time that grows with the text', () => {
  const length = 10_000
  for (const unit of ['\u200b', 'e\u0301', '\u0301', '[', '[a](', '[a](b', '![', '(', '`', '`a``', '@', '@a', 'a@', 'http://', '~~~\n', '<!', '@李', '_']) {
    for (const start of ['', 'http://a', '[', '> ', '@', '`']) {
      const text = `${start}${unit.repeat(length / unit.length)}\n\n@a`
      const begun = process.cpuUsage().user
      typedAt(text, text.length)
      // Quadratic work would take half a second, linear work a few milliseconds.
      assert.ok(process.cpuUsage().user - begun < 250_000, `${JSON.stringify(start + unit)}: ${process.cpuUsage().user - begun} µs`)
    }
  }
})
