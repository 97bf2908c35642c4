/**
 * Closes and opens threads.
 * @import { RecordThread } from '../types.d.ts'
 * @import { Desk } from './desk.js'
 */

/** Closes a thread, or opens a closed one, at once. @param {Desk} desk @param {RecordThread} thread */
export async function toggleThread(desk, thread) {
  const path = [thread.type, thread.id].map(encodeURIComponent).join('/')
  try {
    const { data: { closed } } = await desk.client.request('POST', `${path}/${thread.closed ? 'open' : 'close'}`)
    for (const card of desk.cards) {
      const { type, id } = card.item.thread
      if (type === thread.type && id === thread.id) card.update({ ...card.item, thread: { ...card.item.thread, closed } }, card.note)
    }
    desk.tell(desk.t(closed ? 'now_closed' : 'now_open', { thread: titleOf(thread) }))
  } catch (error) {
    desk.fail(error)
  }
}

/** @param {RecordThread} thread */
export const titleOf = ({ type, id, title }) => title ?? `${type}/${id}`
