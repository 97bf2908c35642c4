/** Sign-in with a provider: the page redirects to the provider, gets a code back, and exchanges it with the verifier for a session. */

import { anonymous, ApiError } from './api.js'
import { base64url, newKey } from './base64url.js'
import { json } from './json.js'
import { keepSession, offersCodes } from './session.js'

/** @param {string} flow */
const nameOf = (flow) => `comment-thread ${flow}`

/** Whether this page can redirect to a provider and finish the sign-in afterwards. Providers' pages can't be framed. */
function canLeave() {
  try {
    return sessionStorage && crypto.subtle && top === self
  } catch {}
}

/** Returns the sign-in methods that work on this page. @param {any} ui @returns {{ id: string, name: string }[]} */
export const methodsOf = (ui) => (offersCodes(ui) ? ui.sign_in_methods.filter(({ id }) => id === 'email' || canLeave()) : [])

/** Redirects to a provider, and stores `more` until `recall` returns it. @param {import('./api.js').Client} api @param {string} provider @param {object} [more] */
export async function leaveFor(api, provider, more) {
  const verifier = newKey()
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const [return_to] = location.href.split('#')
  const { data } = await api.request('POST', 'sign_in', json({ provider, challenge: base64url(new Uint8Array(hash)), return_to }))
  sessionStorage[nameOf(data.flow)] = JSON.stringify({ ...more, verifier, hash: location.hash })
  location.assign(data.url)
}

/**
 * Returns `returned` with the data that this tab has stored for the flow. Deletes the stored copy, and restores the
 * page's fragment. A flow that was started in another tab gets no verifier.
 * @param {{ flow: string, code: string }} returned @returns {{ flow: string, code: string, verifier?: string, [more: string]: any }}
 */
export function recall(returned) {
  const { flow } = returned
  try {
    const { hash, ...kept } = JSON.parse(sessionStorage[nameOf(flow)])
    delete sessionStorage[nameOf(flow)]
    history.replaceState(history.state, '', new URL(hash, location.href))
    return { ...kept, ...returned }
  } catch {
    return returned
  }
}

/**
 * Begins the session of a visitor who returned. Fails with `not_signed_in` if the flow failed, has expired, or was started in another tab.
 * @param {ReturnType<typeof recall>} returned
 */
export async function finishReturned({ flow, code, verifier }) {
  const failed = () => new ApiError(422, { code: 'not_signed_in' })
  if (!verifier || code === 'failed') throw failed()
  const { data } = await anonymous.request('POST', 'sign_in/finish', json({ flow, code, verifier })).catch((error) => {
    throw error.code === 'sign_in_failed' ? failed() : error
  })
  const { account, suggested_name, ...session } = data
  keepSession(session)
  return data
}
