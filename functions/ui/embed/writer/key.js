import { API } from '../kit/address.js'
import { device } from '../kit/device.js'

const URL_SIGNS = { '+': '-', '/': '_', '=': '' }

/** 32 random bytes in base64url. */
export const newKey = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))).replace(/[+/=]/g, (sign) => URL_SIGNS[sign])

/** Gives a guest who begins to write a key, with which this device can change their comments. Another thread or tab may have made it. */
export function keepGuestKey({ api, ui }) {
  if (ui.auth.authenticated) return
  api.guestKey = device.get(`${API} key`) || api.guestKey || newKey()
  device.set(`${API} key`, api.guestKey)
}
