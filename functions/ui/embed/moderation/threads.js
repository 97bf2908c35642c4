/**
 * Closes and opens threads.
 * @import { RecordThread } from '../types.d.ts'
 * @import { App } from './app.js'
 */

/** Closes a thread, or opens a closed one, at once. @param {App} app @param {RecordThread} thread */
export async function toggleThread(app, thread) {
  const path = [thread.type, thread.id].map(encodeURIComponent).join('/')
  try {
    const { data: { closed } } = await app.client.request('POST', `${path}/${thread.closed ? 'open' : 'close'}`)
    for (const card of app.cards) {
      const { type, id } = card.item.thread
      if (type === thread.type && id === thread.id) card.update({ ...card.item, thread: { ...card.item.thread, closed } }, card.note)
    }
    app.tell(app.t(closed ? 'now_closed' : 'now_open', { thread: titleOf(thread) }))
  } catch (error) {
    app.fail(error)
  }
}

/** @param {RecordThread} thread */
export const titleOf = ({ type, id, title }) => title ?? `${type}/${id}`
