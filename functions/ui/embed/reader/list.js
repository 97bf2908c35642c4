/**
 * The path of a thread, and requests for its list.
 * @import { RequestOptions } from '../types.d.ts'
 */

import { API } from '../kit/address.js'
import { anonymous } from '../kit/api.js'
import { button, h } from '../kit/dom.js'
import { ownSession } from '../kit/session.js'

/** Comments that a press of the button loads. */
const MORE = 50

/** Returns the path of a thread, relative to the API. */
export const pathOf = (...parts) => parts.map(encodeURIComponent).join('/')

/** Loads a page of the visitor's own list, or else of the public list. A cached copy of the public list is revalidated. @param {any} thread @param {RequestOptions['query']} query @param {AbortSignal} signal */
export async function readPage({ api, path, sort, language: lang, fresh }, query, signal) {
  const list = `${path}/comments`
  const asked = { sort: sort || null, ...query }
  return api.mine || api.guestKey || (await api.token())
    ? api.get(list, asked, signal)
    : anonymous.get(`public/${list}`, { ...asked, lang, newest: fresh.newest }, signal, 'no-cache')
}

/** Loads the first page, from which the thread is built, and detects whether the session has ended. @param {any} thread @param {AbortSignal} signal */
export async function readFirst(thread, signal) {
  const { api } = thread
  const ask = () => readPage(thread, { include: 'ui', cursor: '' }, signal)
  const session = ownSession()
  const token = await api.token()
  let page = await ask()
  const isRefused = () => token && !page.ui.auth.authenticated
  if (isRefused() && (await api.renew(token))) page = await ask()
  if ((session || isRefused()) && !ownSession()) thread.ended ??= {}
  return page
}

/** Creates the part below the list: a button that loads the remaining comments, and a link to the feed. @param {any} thread @param {any} meta @param {number} left @param {(query: RequestOptions['query']) => void} load */
export function footOf({ say, ui, path }, { next_cursor: cursor, current_page: page, last_page, total }, left, load) {
  // A ranked list has numbered pages, and its first page is smaller than the others.
  const next = cursor ? { cursor } : page < last_page && { page: Math.floor((total - left) / MORE) + 1 }
  return [
    left && next ? button(say('load_more', left), { class: 'outlined', click: () => load({ ...next, per_page: MORE }) }) : '',
    ui.feeds ? h('a', { class: 'muted', href: `${API}${path}/feed.atom` }, say('feed')) : '',
  ]
}
