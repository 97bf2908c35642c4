/**
 * Help on Markdown. All examples except task lists and tables are shown in the format that they produce.
 * @import { Editor } from '../types.d.ts'
 */

import { button, h } from '../kit/dom.js'
import { toggler } from './popover.js'

/** @param {Editor} editor @param {Record<string, any>} marks the marks of the tools, by the names of their labels */
export function help({ thread: { say } }, marks) {
  const [bold, italic, ...others] = Object.entries(marks).map(([name, { tag, line = '', before = '', after = '' }]) => h(tag, {}, line + before + say(name) + after))
  const element = h('div', { class: 'help sheet', popover: 'auto', role: 'group', 'aria-label': 'Markdown', autofocus: true, tabindex: -1 }, bold, ' ', italic, ' ', h('del', {}, '~~x~~'), ...others, h('pre', {}, '- [ ] x\n\n|x|y|\n|-|-|'))
  return [button('?', { title: 'Markdown', click: toggler(element) }), element]
}
