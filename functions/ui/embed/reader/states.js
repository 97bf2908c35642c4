/** What stands in place of comments or of the composer: the wait, a failure, a notice. */

import { button, h } from '../kit/dom.js'

const REFUSALS = { comment_banned: 'banned', unauthenticated: 'sign_in_to_comment', not_found: 'deleted' }

/** Why something failed, in the words of `say`. @param {(key: string) => string} say @param {any} error */
export function explanation(say, { code, status, message, errors = {} }) {
  const label = REFUSALS[code] ?? code
  const text = say(label)
  return text !== label ? text : status === 422 ? Object.values(errors).flat().join(' ') || message : say('error')
}

/** @param {import('../types.d.ts').Child[]} content */
export const notice = (...content) => h('p', { class: 'notice', part: 'notice' }, ...content)

export const skeleton = () => [1, 2, 3].map(() => h('div', { class: 'skeleton' }))

/**
 * Says that loading failed. It is tried again by a press, or once there is a connection.
 * @param {any} thread @param {any} error @param {() => void} again @param {AbortSignal} signal
 */
export function failure({ say, explain }, error, again, signal) {
  const element = notice(h('span', { role: 'alert' }, explain(error)), ' ', button(say('retry'), { class: 'outlined', click: again }))
  addEventListener('online', () => element.isConnected && again(), { signal, once: true })
  return element
}
