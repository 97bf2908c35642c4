import { API } from '../kit/address.js'
import { device } from '../kit/device.js'
import { json } from '../kit/json.js'
import { addToTotal } from './total.js'

/** Posts a comment, and shows the result. @param {any} thread @param {Record<string, any>} body @param {string} key */
export async function post(thread, body, key) {
  const { ui, say } = thread
  const { data } = await thread.write('POST', `${thread.path}/comments`, json(body, key))
  if (!data.is_approved && !ui.auth.authenticated) device.set(`${API} ${data.id} waiting`, '1')
  const isAsked = body.subscribe_to_replies && !ui.auth.authenticated
  thread.toast.show(say(!data.is_approved ? 'pending_approval' : isAsked ? 'check_inbox' : 'posted'))
  addToTotal(thread, +data.is_approved)
  thread.emit('comment-posted', { id: data.id })
  return data
}

/** The page's title and address, by the key of the comment: a comment that is sent again has to be the same. @type {Record<string, object>} */
const pages = {}

function page() {
  const own = location.href.split('#')[0]
  const { href = own } = /** @type {Partial<HTMLLinkElement>} */ (document.querySelector('link[rel~=canonical][href]') ?? {})
  return { title: document.title, url: URL.canParse(href) && new URL(href).origin === location.origin ? href : own }
}

/** Posts a comment to the thread, which comes first until the next load. @param {any} thread */
export const postFirst = (thread) => async (fields, key) => {
  const view = thread.prepend(await post(thread, { ...fields, page: (pages[key] ??= page()) }, key))
  thread.list.prepend(view.element)
  thread.focusOn(view)
}
