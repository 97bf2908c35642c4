/**
 * The path of a thread, and requests for its list.
 * @import { RequestOptions } from '../types.d.ts'
 */

import { API } from '../kit/address.js'
import { anonymous } from '../kit/api.js'
import { button, h } from '../kit/dom.js'
import { ownSession } from '../kit/session.js'

/** Number of comments that the button loads. */
const MORE = 50

/** Returns the path of a thread, relative to the API. */
export const pathOf = (...parts) => parts.map(encodeURIComponent).join('/')

/**
 * Loads a page of the list. Members, and guests who have written, get their own version. Everyone else gets the public
 * one, whose cached copy is revalidated.
 * @param {any} thread @param {RequestOptions['query']} query @param {AbortSignal} signal
 */
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

/**
 * Creates the part below the list: a button that loads the next page, with the number of comments that aren't shown, and a link to
 * the feed. Sets the thread's `showMore`, which counts a comment as shown. It skips comments that `total` excludes: replies, newer
 * comments, and those that only moderators see.
 * @param {any} thread @param {any} meta @param {(query: RequestOptions['query']) => void} load
 */
export function footOf(thread, { next_cursor: cursor, current_page: page, last_page, per_page, total }, load) {
  const { say, ui, path, views } = thread
  // A ranked list has numbered pages. After the smaller first page, loads page 1 again at full size.
  const next = cursor ? { cursor } : page < last_page && { page: page + (per_page === MORE) }
  const more = button('', { class: 'outlined', click: () => load({ ...next, per_page: MORE }) })
  const newest = Math.max(...views.keys())
  thread.showMore = ({ parent, comment }) => {
    if (!parent && comment.id <= newest && (comment.is_approved || !ui.auth.moderator)) total--
    // The count may lag behind.
    more.textContent = say('load_more', Math.max(total, 1))
  }
  views.forEach(thread.showMore)
  return [next ? more : '', ui.feeds ? h('a', { class: 'muted', href: `${API}${path}/feed.atom` }, say('feed')) : '']
}
