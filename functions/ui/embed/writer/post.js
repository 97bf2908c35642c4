/** Posts comments. */

import { API } from '../kit/address.js'
import { newKey } from '../kit/base64url.js'
import { device } from '../kit/device.js'
import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { addToTotal } from './total.js'

/**
 * Returns a function that posts a comment to this thread, even if the element has changed to another thread. If it hasn't, `show`
 * shows the comment. Sending an unchanged draft again, even from another tab, repeats the request.
 * @param {any} thread @param {(comment: any) => any} show
 */
export function poster(thread, show) {
  const { path, say, ui } = thread
  /** @param {Record<string, any>} fields @param {import('../types.d.ts').Editor} editor */
  return async (fields, { kept, text }) => {
    const name = `${kept} sent`
    let [key, page, isPosted] = JSON.parse(device.get(name) || '[]')
    const save = (isPosted = false) => device.set(name, JSON.stringify([key, page, isPosted]))
    // The same text is another comment if it was typed after the first one was posted.
    if (!key || (isPosted && (device.get(kept) ?? '') === text.value)) {
      key = newKey()
      page = ownPage()
      save()
    }
    // Adds a checksum of the content to the key, so that a changed request has a different key.
    const sum = [...JSON.stringify(fields)].reduce((sum, sign) => (sum * 33 + /** @type {any} */ (sign).codePointAt()) % 1e11, 0)
    const { data } = await thread.write('POST', `${path}/comments`, json(fields.parent_id ? fields : { ...fields, page }, key + sum))
    save(true)
    if (!data.is_approved && !ui.auth.authenticated) device.set(`${API} ${data.id} waiting`, '1')
    const isAsked = fields.subscribe_to_replies && !ui.auth.authenticated
    thread.toast.show(say(!data.is_approved ? 'pending_approval' : isAsked ? 'check_inbox' : 'posted'))
    thread.emit('comment-posted', { id: data.id })
    if (thread.path !== path) return
    if (!thread.views.has(data.id)) addToTotal(thread, +data.is_approved)
    thread.focusOn(show(data))
  }
}

/** Returns the page's title and address: the canonical address, if it has the same origin. */
function ownPage() {
  const own = location.href.split('#')[0]
  const { href = own } = /** @type {Partial<HTMLLinkElement>} */ (document.querySelector('link[rel~=canonical][href]') ?? {})
  return { title: document.title, url: h('a', { href }).origin === location.origin ? href : own }
}

/** Returns a function that posts a comment, and shows it at the top until the next load. @param {any} thread */
export const postFirst = (thread) =>
  poster(thread, (comment) => {
    const view = thread.views.get(comment.id) ?? thread.prepend(comment)
    thread.list.prepend(view.element)
    return view
  })
