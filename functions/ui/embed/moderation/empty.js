/**
 * The notice in an empty list.
 * @import { App } from './app.js'
 */

import { h } from '../kit/dom.js'
import { icon } from './icons.js'

/** @param {App} app @param {string} empty key of the heading @param {string} more key of the text below it */
export function emptyPanel({ t }, empty, more) {
  const below = t(more || `${empty}_more`)
  return h('div', { class: 'panel', tabindex: '-1' },
    h('span', { class: 'mark' }, icon(empty === 'empty_search' ? 'all' : 'approve')),
    h('h2', {}, t(empty)),
    below && h('p', { class: 'muted' }, below))
}
