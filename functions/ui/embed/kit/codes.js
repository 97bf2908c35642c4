/**
 * The sign-in form: a button for each provider, or an email address and then its code. The first sign-in also asks for a name.
 * @import { Entrance } from '../types.d.ts'
 */

import { busily, button, h, isOfIme, primary } from './dom.js'
import { json } from './json.js'
import { leaveFor } from './redirect.js'
import { keepSession } from './session.js'

const PROBLEM = 'sign-in-problem'

/** Attributes of a field for an email address. With the type `email`, Chromium would change domains outside ASCII. */
export const EMAIL = { inputmode: 'email', autocomplete: 'email' }

/** @param {HTMLElement} place @returns {HTMLElement | null} */
export const entranceIn = (place) => place.querySelector('.sign-in :is(button, input)')

/** Creates a form that asks for one thing at a time. @param {Entrance} entrance */
function asking({ say, explain, giveUp }) {
  /** @type {HTMLInputElement | undefined} */
  let field
  let send
  /** @type {(() => void) | undefined} */
  let leave
  const problem = h('p', { class: 'error', role: 'alert', id: PROBLEM })

  /** Runs `act`, and shows the error at a field if it fails. @param {() => Promise<any>} act @param {HTMLInputElement | null} [at] */
  async function attempt(act, at = field) {
    if (form.ariaBusy === 'true') return
    problem.textContent = ''
    if (field) field.ariaInvalid = 'false'
    try {
      await busily(form, act)
    } catch (error) {
      problem.textContent = explain(error)
      if (!at) return
      at.ariaInvalid = 'true'
      at.select()
    }
  }

  function submit(event) {
    event.preventDefault()
    attempt(() => send(field?.value))
  }

  function keydown(event) {
    if (event.key !== 'Escape' || isOfIme(event) || !leave) return
    event.preventDefault()
    leave()
  }

  const form = h('form', { class: 'sign-in', novalidate: true, 'aria-label': say('sign_in'), submit, keydown })

  /** Asks for the next value, which `act` processes. `back` leaves the step. Without a label, the step has no field. */
  function ask(label, attributes, action, act, { back = giveUp, again, before = [], after = [] } = /** @type {any} */ ({})) {
    leave = back
    field = label && h('input', { required: true, 'aria-describedby': PROBLEM, ...attributes })
    send = act
    problem.textContent = ''
    const cancel = back && button(say('cancel'), { class: 'outlined', click: back })
    const buttons = h('div', { class: 'buttons' }, again, h('div', { class: 'buttons' }, cancel, label && primary(action)))
    form.replaceChildren(...before, ...(label ? [h('label', { class: 'field' }, label, field)] : []), problem, buttons, ...after)
    entranceIn(form)?.focus()
  }

  return { form, ask, attempt }
}

/** @param {Entrance} entrance @param {string | null} name the current one */
export function nameForm(entrance, name, { form, ask } = asking(entrance)) {
  const { api, say, done, giveUp } = entrance
  const change = async (name) => {
    await api.request('PUT', 'me/name', json({ name }))
    await done()
  }
  ask(say('sign_in_name'), { autocomplete: 'name', maxlength: 100, dir: 'auto', value: name }, say('save'), change)
  return form
}

/** @param {Entrance} entrance */
export function codeForm(entrance) {
  const { api, say, done, methods = [{ id: 'email', name: '' }], brings } = entrance
  const asked = asking(entrance)
  const { form, ask, attempt } = asked
  const sayWith = (name) => say('sign_in_with').replace('{name}', name)
  const way = ({ id, name }) => button(sayWith(name), { class: 'outlined', click: () => attempt(() => leaveFor(api, id, brings?.()), null) })
  const email = methods.findIndex(({ id }) => id === 'email')

  function askAddress(value = '') {
    const after = methods.map(way)
    const before = after.splice(0, email < 0 ? after.length : email)
    const action = methods.length > 1 ? sayWith(methods[email]?.name) : say('sign_in')
    const attributes = { ...EMAIL, dir: 'ltr', value }
    ask(email >= 0 && say('sign_in_address'), attributes, action, (email) => start(email), { before, after: after.slice(1) })
  }

  async function start(email, isAgain = false) {
    const { data } = await api.request('POST', 'sign_in', json({ email }))
    const again = button(say('sign_in_again'), { class: 'again', click: () => attempt(() => start(email, true)) })
    const sent = new Date().toLocaleTimeString(api.language, { timeStyle: 'short' })
    const label = h('span', {}, `${say('sign_in_code')} `, h('small', { dir: 'ltr' }, email), isAgain && h('small', { role: 'status' }, ` ${say('sent_at').replace('{time}', sent)}`))
    const attributes = { autocomplete: 'one-time-code', inputmode: 'numeric', dir: 'ltr' }
    ask(label, attributes, say('sign_in'), (code) => finish(data.flow, code, email), { back: () => askAddress(email), again })
  }

  async function finish(flow, code, email) {
    const { data } = await api.request('POST', 'sign_in/finish', json({ flow, code }))
    const enter = () => done(email)
    keepSession(data)
    if (data.user.name) return enter()
    nameForm({ ...entrance, done: enter, giveUp: enter }, '', asked)
  }

  askAddress()
  return form
}
