/**
 * The fields about the writer: a guest's name and email address, or a member's name, and the checkbox that subscribes to replies.
 * @import { Editor } from '../types.d.ts'
 */

import { avatar } from '../kit/avatar.js'
import { EMAIL } from '../kit/codes.js'
import { device } from '../kit/device.js'
import { h } from '../kit/dom.js'

/** The guest's address. It is kept until the page is left, and never stored on the device. */
let address = ''

/** @param {Editor} editor */
export function identity({ thread, purpose, element: form }) {
  const { say, ui } = thread
  const { features, guest, auth } = ui
  const isGuest = !auth.authenticated && auth.can_comment && !purpose.isEdit
  const name = h('input', { autocomplete: 'name', required: true, value: device.get('name'), input })
  const email = h('input', { value: address, ...EMAIL, input: () => (address = email.value) })
  const hint = h('small')
  const subscribe = h('input', { type: 'checkbox', change: showHint })
  const [before, after] = say('posting_as').split('{name}')

  function input() {
    device.set('name', name.value)
    showInitials(form)
  }

  /** @param {HTMLElement} place */
  function showInitials(place) {
    place.querySelectorAll('.composer > .avatar').forEach((disc) => disc.replaceWith(avatar({ name: name.value, avatar: '' })))
  }

  function showHint() {
    email.required = guest.require_email || subscribe.checked
    hint.textContent = ` · ${email.required ? '' : `${say('optional')}, `}${say('not_published')}`
  }

  function fields() {
    const chosen = { subscribe_to_replies: subscribe.checked || undefined }
    if (!isGuest) return chosen
    showInitials(thread.section)
    return { ...chosen, guest_name: name.value, guest_email: email.value || undefined }
  }

  showHint()
  const element = h(
    'div',
    { class: 'identity' },
    auth.user?.name && !purpose.isEdit && h('span', {}, before, h('b', { dir: 'auto' }, auth.user.name), after),
    features.subscriptions && !purpose.isEdit && h('label', {}, subscribe, say('subscribe')),
  )
  /** The service accepts a subscription without an address, but can't send emails for it. @returns {Record<string, string[]>} */
  const missing = () => (subscribe.checked && email.validity.valueMissing ? { guest_email: [email.validationMessage] } : {})
  /** The guest fields, by their names in the API. @type {Record<string, HTMLInputElement>} */
  const inputs = isGuest ? { guest_name: name, guest_email: email } : {}
  return { element, fields, inputs, missing, fieldsOfGuests: isGuest ? h('div', { class: 'names' }, h('label', {}, say('guest_name'), name), h('label', {}, say('guest_email'), hint, email)) : '' }
}
