/**
 * Makes a composer an editor: tools, fields of guests, mentions, images, a preview, keys, and sending.
 * @import { Composer, Editor } from '../types.d.ts'
 */

import { busily } from '../kit/dom.js'
import { emojis } from './emoji.js'
import { identity } from './guest.js'
import { images } from './images.js'
import { newKey } from './key.js'
import { mentions } from './mentions.js'
import { previewer } from './preview.js'
import { mark, shortcutOf, toolbar } from './toolbar.js'

/** @param {Composer} composer */
export function enhance(composer) {
  const { thread, purpose, element, text, problem, bar, keep } = composer
  let busy = 0
  let last = { content: '', key: '' }
  /** @type {Editor} */
  const editor = { ...composer, fallible, insert }
  const people = mentions(editor)
  const preview = previewer(editor)
  const emoji = emojis(editor)
  const pictures = images(editor)
  const writer = identity(editor)

  async function fallible(act) {
    problem.textContent = ''
    busy++
    await busily(element, act).catch((error) => (problem.textContent = thread.explain(error)))
    busy--
  }

  function insert(string, start = text.selectionStart, end = text.selectionEnd) {
    text.setRangeText(string, start, end, 'end')
    text.focus()
    text.dispatchEvent(new Event('input'))
  }

  function submit() {
    if (busy) return
    const body = text.value
    const fields = { body, ...writer.fields() }
    const content = JSON.stringify(fields)
    if (content !== last.content) last = { content, key: newKey() }
    fallible(async () => {
      await purpose.send(fields, last.key)
      last.content = ''
      if (text.value === body) text.value = ''
      preview.close()
      keep(text.value)
    })
  }

  function keydown(event) {
    const { key, isComposing } = event
    const isCommand = event.ctrlKey || event.metaKey
    const shortcut = thread.ui.features.markdown_toolbar && shortcutOf(key)
    if (isComposing) return
    if (people.choose(key)) event.preventDefault()
    else if (isCommand && shortcut) {
      event.preventDefault()
      mark(editor, shortcut)
    }
  }

  text.addEventListener('input', people.suggest)
  text.addEventListener('keydown', keydown)
  text.addEventListener('paste', (event) => pictures.take(event, event.clipboardData))
  text.addEventListener('drop', (event) => pictures.take(event, event.dataTransfer))
  element.addEventListener('submit', submit)
  text.after(people.element, preview.element, emoji.element, ...writer.elements)
  bar.prepend(toolbar(editor, { emoji, pictures, preview }))
  people.suggest()
}
