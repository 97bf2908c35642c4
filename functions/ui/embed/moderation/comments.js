/**
 * @import { Client } from '../kit/api.js'
 * @import { Item } from '../types.d.ts'
 */

/**
 * Loads the current version of a comment, whatever its state.
 * @param {Client} client
 * @param {number} id
 * @returns {Promise<Item>}
 */
export async function commentNow(client, id) {
  const { data } = await client.get('moderation/comments', { id })
  return data[0]
}
