/**
 * Who writes: the fields of guests, and the box that subscribes to replies.
 * @import { Editor } from '../types.d.ts'
 */

import { device } from '../kit/device.js'
import { h } from '../kit/dom.js'

/** @param {Editor} editor */
export function identity({ thread, purpose }) {
  const { say, ui } = thread
  const { features, guest } = ui
  const isGuest = !ui.auth.authenticated
  const field = (label, attributes) => h('input', { 'aria-label': say(label), placeholder: say(label), ...attributes })
  const name = field('guest_name', { autocomplete: 'name', required: true, value: device.get('name') })
  const email = field('guest_email', { type: 'email', autocomplete: 'email', required: guest.require_email })
  const subscribe = h('input', { type: 'checkbox', change: () => (email.required = guest.require_email || subscribe.checked) })
  const hasEmail = guest.require_email || guest.show_gravatar || features.subscriptions
  const elements = [
    ...(isGuest ? [h('div', { class: 'guest' }, name, hasEmail && email)] : []),
    ...(features.subscriptions && !purpose.value ? [h('label', { class: 'muted' }, subscribe, say('subscribe'))] : []),
  ]

  function fields() {
    const chosen = { subscribe_to_replies: subscribe.checked || undefined }
    if (!isGuest) return chosen
    device.set('name', name.value)
    return { ...chosen, guest_name: name.value, guest_email: email.value || undefined }
  }

  return { elements, fields }
}
