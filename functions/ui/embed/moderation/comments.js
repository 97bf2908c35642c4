/**
 * Comments as the API has them now.
 * @import { Client } from '../kit/api.js'
 * @import { Item } from '../types.d.ts'
 */

/**
 * A comment as it is now. What is said besides of comments in a queue comes from there, or else from `known`.
 * @param {Client} client
 * @param {number} id
 * @param {Partial<Item>} [known]
 * @returns {Promise<Item>}
 */
export async function commentNow(client, id, known) {
  const newest = (/** @type {string} */ state) => client.get('moderation/comments', { state, cursor: '', per_page: 50 }).catch(() => ({ data: [] }))
  const queues = await Promise.all(['pending', 'reported'].map(newest))
  const queued = queues.flatMap(({ data }) => data).find((item) => item.id === id)
  if (queued) return queued
  const { data, ancestors, thread } = await client.get(`comments/${id}`)
  const rest = { held_for: null, reports: [], reports_count: 0, ...known }
  return { ...rest, ...data, thread, parent: ancestors.at(-1) ?? null }
}
