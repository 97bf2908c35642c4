import { API } from '../kit/address.js'
import { newKey } from '../kit/base64url.js'
import { device } from '../kit/device.js'

/** Gives a guest who begins to write a key, with which this device can change their comments. Another thread or tab may have made it. */
export function keepGuestKey({ api, ui }) {
  if (ui.auth.authenticated) return
  api.guestKey = device.get(`${API} key`) || api.guestKey || newKey()
  device.set(`${API} key`, api.guestKey)
}
