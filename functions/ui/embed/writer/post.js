import { json } from '../kit/json.js'
import { addToTotal } from './total.js'

/** Writes a comment, and says what has become of it. @param {any} thread @param {Record<string, any>} body @param {string} key */
export async function post(thread, body, key) {
  const { ui, say } = thread
  const { data } = await thread.write('POST', `${thread.path}/comments`, json(body, key))
  const isAsked = body.subscribe_to_replies && !ui.auth.authenticated
  thread.toast.show(say(!data.is_approved ? 'pending_approval' : isAsked ? 'check_inbox' : 'posted'))
  addToTotal(thread, +data.is_approved)
  thread.emit('comment-posted', { id: data.id })
  return data
}

/** Writes a comment of the thread, which comes first until the next load. @param {any} thread */
export const postFirst = (thread) => async (fields, key) => {
  const view = thread.prepend(await post(thread, fields, key))
  thread.list.prepend(view.element)
  thread.focusOn(view)
}
