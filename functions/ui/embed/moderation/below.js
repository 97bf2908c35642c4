/**
 * @import { App } from './app.js'
 */

import { h } from '../kit/dom.js'


/**
 * Creates the footer of a list: "Show more", or the empty state.
 * @param {App} app
 * @param {HTMLElement} rows
 * @param {string | null | undefined} next the cursor of the next page
 * @param {(cursor: string) => void} load
 * @param {string} none key of a text
 */
export function below({ t }, rows, next, load, none) {
  if (next) return h('button', { type: 'button', class: 'outlined', click: () => load(next) }, t('more'))
  return rows.childElementCount ? '' : h('p', { class: 'muted centred' }, t(none))
}
