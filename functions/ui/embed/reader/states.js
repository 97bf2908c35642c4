/** Notices that replace comments or the composer: loading, a failure, a message. */

import { API } from '../kit/address.js'
import { button, h } from '../kit/dom.js'

const REFUSALS = { comment_banned: 'banned', unauthenticated: 'sign_in_to_comment', not_found: 'deleted' }

/** @param {(key: string) => string} say @param {any} error */
export function explanation(say, { code, status, message }) {
  const label = REFUSALS[code] ?? code
  const text = say(label)
  return text !== label ? text : (status < 500 && message) || say('error')
}

/** @param {import('../types.d.ts').Child[]} content */
export const notice = (...content) => h('div', { class: 'notice', part: 'notice' }, ...content)

/** Shows the host page's developer how to fix a mistake: in the console, and on localhost also in the element. @param {string} fix */
export function mistake(fix) {
  console.error(`<comment-thread>: ${fix}`)
  return /(^|\.)localhost$|^127[.\d]+$|^\[::1]$/.test(location.hostname) ? h('p', { class: 'mistake' }, fix) : ''
}

export const skeleton = () => [1, 2, 3].map(() => h('div', { class: 'skeleton' }))

/**
 * Shows that loading failed. A button retries, and so does a restored connection.
 * @param {any} thread @param {any} error @param {() => void} again @param {AbortSignal} signal
 */
export function failure({ say, explain, ui, path }, error, again, signal) {
  const fixes = { not_found: `no thread ${path}: check type, record and SVC_TYPES`, offline: navigator.onLine && `no answer from ${API}: check SVC_CORS_ORIGINS and connect-src` }
  const fix = !ui && fixes[error.code]
  const element = notice(h('span', { role: 'alert' }, explain(error)), ' ', button(say('retry'), { class: 'outlined', click: again }), fix && mistake(fix))
  addEventListener('online', () => element.isConnected && again(), { signal })
  return element
}
