import { API } from '../kit/address.js'
import { device } from '../kit/device.js'
import { json } from '../kit/json.js'
import { addToTotal } from './total.js'

/** Returns a function that posts a comment to this thread, even if the element has changed to another thread. If it hasn't, `show` shows the comment. @param {any} thread @param {(comment: any) => any} show */
export function poster(thread, show) {
  const { path, say, ui } = thread
  return async (fields, { key }) => {
    const { data } = await thread.write('POST', `${path}/comments`, json(fields, key))
    if (!data.is_approved && !ui.auth.authenticated) device.set(`${API} ${data.id} waiting`, '1')
    const isAsked = fields.subscribe_to_replies && !ui.auth.authenticated
    thread.toast.show(say(!data.is_approved ? 'pending_approval' : isAsked ? 'check_inbox' : 'posted'))
    thread.emit('comment-posted', { id: data.id })
    if (thread.path !== path) return
    addToTotal(thread, +data.is_approved)
    thread.focusOn(show(data))
  }
}

/** Returns the page's title and address. */
function page() {
  const own = location.href.split('#')[0]
  const { href = own } = /** @type {Partial<HTMLLinkElement>} */ (document.querySelector('link[rel~=canonical][href]') ?? {})
  return { title: document.title, url: URL.canParse(href) && new URL(href).origin === location.origin ? href : own }
}

/** Returns a function that posts a comment, and shows it at the top until the next load. @param {any} thread */
export function postFirst(thread) {
  const post = poster(thread, (comment) => {
    const view = thread.prepend(comment)
    thread.list.prepend(view.element)
    return view
  })
  // A retry must send the same fields.
  return (fields, sent) => post({ ...fields, page: (sent.page ??= page()) }, sent)
}
