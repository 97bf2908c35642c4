/**
 * Threads on cards: their titles, and whether they are closed.
 * @import { Client } from '../kit/api.js'
 * @import { RecordThread } from '../types.d.ts'
 * @import { App } from './app.js'
 */

/** Shows in all cards whether a thread is closed. @param {App} app @param {RecordThread} thread @param {boolean} closed */
export function showClosed(app, thread, closed) {
  for (const card of app.cards) {
    const { type, id } = card.item.thread
    if (type === thread.type && id === thread.id) card.update({ ...card.item, thread: { ...card.item.thread, closed } }, card.note)
  }
}

/** @param {Client} client @param {RecordThread} thread @param {boolean} closed */
export const setClosed = (client, { type, id }, closed) =>
  client.request('POST', `${[type, id].map(encodeURIComponent).join('/')}/${closed ? 'close' : 'open'}`, { keepalive: true })

/** @param {RecordThread} thread */
export const titleOf = ({ type, id, title }) => title ?? `${type}/${id}`
