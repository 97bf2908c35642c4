/**
 * The buttons of an editor, and the marks of Markdown.
 * @import { Editor } from '../types.d.ts'
 */

import { button, drawing, h } from '../kit/dom.js'
import { help } from './help.js'
import { withoutBlankEnds } from './typing.js'

const ICONS = {
  bold: 'M5 3v10h4a2 2 0 0 0 0-5H5h3a2 2 0 0 0 0-5z',
  italic: 'M6 3h6M4 13h6M9 3 7 13',
  code: 'M5 4 1 8l4 4M11 4l4 4-4 4',
  link: 'M6 10l4-4M7 5l1-1a3 3 0 0 1 4 4l-1 1M5 7 4 8a3 3 0 0 0 4 4l1-1',
  quote: 'M3 3v10M6 5h8M6 8h8M6 11h5',
  list: 'M6 4h8M6 8h8M6 12h8M2 4h0M2 8h0M2 12h0',
  emoji: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M6 6h0M10 6h0M5 9a4 4 0 0 0 6 0',
  upload_image: 'M2 3h12v10H2zM2 11l4-4 6 6M10 6h0',
}

/** The text that each tool inserts, and the element that the text becomes. @type {Record<string, any>} */
const MARKS = {
  bold: { tag: 'b', before: '**', after: '**', key: 'b' },
  italic: { tag: 'i', before: '_', after: '_', key: 'i' },
  code: { tag: 'code', before: '`', after: '`', key: 'e' },
  link: { tag: 'a', before: '[', after: '](https://)', key: 'k', selected: 'https://' },
  quote: { tag: 'blockquote', line: '> ' },
  list: { tag: 'div', line: '- ' },
}

/** @param {string} key */
export const shortcutOf = (key) => Object.values(MARKS).find((mark) => mark.key === key)

/**
 * Puts a mark around the selected words, or before each selected line. Afterwards, selects the words or the link's address. Code
 * gets more backticks than it contains. Several lines of code become a block, with the caret after it.
 * @param {Editor} editor
 */
export function mark({ text, insert }, { tag, line = '', before = '', after = '', selected: next = '' }) {
  const { value, selectionStart: start, selectionEnd: end } = text
  const begin = line ? value.lastIndexOf('\n', start - 1) + 1 : start
  const selected = value.slice(begin, end)
  const isBlock = tag === 'code' && /\n/.test(selected.trim())
  const words = isBlock ? withoutBlankEnds(selected) : selected.trim()
  const at = begin + selected.indexOf(words)
  if (tag === 'code') {
    const edge = (place) => (isBlock && /./.test(value.charAt(place)) ? '\n' : '')
    let ticks = isBlock ? '```' : '`'
    while (words.includes(ticks)) ticks += '`'
    const gap = isBlock ? '\n' : ticks[1] ? ' ' : ''
    before = edge(at - 1) + ticks + gap
    after = gap + ticks + edge(at + words.length)
  }
  insert(selected.replace(line ? /^/gm : words, () => line || before + words + after), begin, end)
  const place = at + before.length + (next ? words.length + after.indexOf(next) : 0)
  if (!line && !isBlock) text.setSelectionRange(place, place + (next || words).length)
}

/** @param {Editor} editor */
export function toolbar(editor, { emoji, pictures, preview }) {
  const { say, ui } = editor.thread
  const { features } = ui
  const tool = (name, click) => button(drawing(ICONS[name]), { 'aria-label': say(name), title: say(name), click })
  return h(
    'div',
    { class: 'toolbar' },
    ...Object.keys(features.markdown_toolbar && MARKS).map((name) => tool(name, () => mark(editor, MARKS[name]))),
    ...(features.markdown_toolbar ? help(editor, MARKS) : []),
    features.emoji_picker && tool('emoji', emoji.toggle),
    features.media && tool('upload_image', pictures.choose),
    features.markdown_preview && preview.toggle,
  )
}
