/**
 * Sends decisions and replies.
 * @import { Batch, Choice, Decision } from '../types.d.ts'
 * @import { Client } from '../kit/api.js'
 * @import { Replies } from './replies.js'
 */

import { json } from '../kit/json.js'
import { batches, bulkBody, isFinal } from './outbox.js'
import { setClosed } from './threads.js'

/** Sends a choice's reply only once, because `sendNow` may run while the choice is being delivered. @param {Choice} choice @param {Client} client @param {Replies} replies */
export async function replyOnce(choice, client, replies) {
  const { item, reply = '' } = choice
  choice.reply = ''
  try {
    await replies.deliver(item, reply, client)
  } catch (error) {
    choice.reply = reply
    throw error
  }
}

/** Sends the replies to approved comments. @param {Batch} batch @param {{ id: number }[]} failed @param {Client} client @param {Replies} replies */
export function replyAll({ choices }, failed, client, replies) {
  const due = choices.filter(({ item, reply }) => reply && !failed.some(({ id }) => id === item.id))
  return Promise.all(due.map((choice) => replyOnce(choice, client, replies)))
}

/** @param {Client} client @param {Batch} batch @returns {Promise<{ id: number, code: string }[]>} the comments that failed */
export async function sendBatch(client, batch) {
  return (await client.request('POST', 'moderation/comments', { ...json(bulkBody(batch)), keepalive: true })).data.failed
}

/**
 * Sends all decisions in parallel.
 * @param {Decision[]} decisions @param {Client} client @param {Replies} replies
 * @returns {Promise<Decision[]>} the decisions to send again
 */
export async function sendNow(decisions, client, replies) {
  /** @type {Decision[]} */
  const unsent = []
  const attempt = (/** @type {Promise<unknown>} */ sent, /** @type {Decision} */ decision) =>
    sent.catch((error) => !isFinal(error) && unsent.push(decision))
  const toggled = decisions.map((decision) => decision.toggle && attempt(setClosed(client, decision.toggle.thread, decision.toggle.closed), decision))
  const sent = batches(decisions).map((batch) => {
    const again = (/** @type {Choice[]} */ choices) => ({ choices, at: 0, grounds: batch.grounds })
    const send = async () => {
      const failed = await sendBatch(client, batch)
      const left = batch.choices.filter(({ item }) => failed.some(({ id, code }) => id === item.id && code === 'unavailable'))
      if (left.length) unsent.push(again(left))
      await replyAll(batch, failed, client, replies)
    }
    return attempt(send(), again(batch.choices))
  })
  await Promise.all([...toggled, ...sent])
  return unsent
}
