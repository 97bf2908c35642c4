/** The widget and the service agree on handles, and on where a text mentions somebody. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { handleOf, typedAt } from '../../functions/ui/embed/writer/handles.js'

/** @type {{ handles: [string, string | null][], mentions: [string, string | null][] }} */
const { handles, mentions } = JSON.parse(readFileSync(new URL('../mentions.json', import.meta.url), 'utf8'))

test('the widget knows the handle of every name', () => {
  for (const [name, handle] of handles) assert.equal(handleOf(name), handle ?? '', name)
  assert.equal(handleOf('李'.repeat(60)), '李'.repeat(50))
})

test('a mention is offered where the service accepts it', () => {
  for (const [typed, query] of mentions) {
    const caret = typed.indexOf('|')
    assert.equal(typedAt(typed.slice(0, caret) + typed.slice(caret + 1), caret) ?? null, query, typed)
  }
})
