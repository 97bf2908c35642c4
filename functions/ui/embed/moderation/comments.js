/**
 * Comments as the API has them now.
 * @import { Client } from '../kit/api.js'
 * @import { Item } from '../types.d.ts'
 */

/**
 * A comment as it is now, in whatever state.
 * @param {Client} client
 * @param {number} id
 * @returns {Promise<Item>}
 */
export async function commentNow(client, id) {
  const { data } = await client.get('moderation/comments', { id })
  return data[0]
}
