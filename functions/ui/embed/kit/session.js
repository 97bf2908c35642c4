/**
 * The session of the service's own sign-in, which is stored on the device. It applies to pages that don't set `auth`.
 */

import { API } from './address.js'
import { device } from './device.js'

const KEY = `${API} session`

/** Whether the page authenticates the visitor. */
let isHosted = false

/** @param {boolean} decides */
export const hostDecides = (decides) => (isHosted = decides)

/** Returns the session, or null if the page authenticates the visitor. */
export const ownSession = () => (isHosted ? null : JSON.parse(device.get(KEY) || 'null'))

/** Stores a session from the API. Without an argument, removes the stored session. @param {any} [session] */
export function keepSession(session) {
  device.set(KEY, session ? JSON.stringify({ ...session, until: Date.now() + session.expires_in * 1000 }) : '')
}

/** Runs `act` under a lock that all tabs share, if the browser supports locks. @template T @param {() => Promise<T>} act @returns {Promise<T>} */
export function alone(act) {
  let run
  const once = () => (run ??= act())
  return navigator.locks?.request(KEY, once).catch(once) ?? once()
}

/** Whether this page offers the service's own sign-in. */
export const offersCodes = (ui) => ui.sign_in && !isHosted
