import { API } from '../kit/address.js'
import { newKey } from '../kit/base64url.js'
import { device } from '../kit/device.js'

/** Gives a guest who begins to write a key, which lets this device change the guest's comments. Reuses the key of another thread or tab. */
export function keepGuestKey({ api, ui }) {
  if (ui.auth.authenticated) return
  api.guestKey = device.get(`${API} key`) || api.guestKey || newKey()
  device.set(`${API} key`, api.guestKey)
}
