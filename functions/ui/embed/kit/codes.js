/**
 * The form for sign-in by an emailed code: the address, the code, and once a name, in one place.
 * @import { Entrance } from '../types.d.ts'
 */

import { busily, button, h, isOfIme, primary } from './dom.js'
import { json } from './json.js'
import { keepSession } from './session.js'

const PROBLEM = 'sign-in-problem'

/** A form that asks for one thing after the other. @param {Entrance} entrance */
function asking({ say, explain, giveUp }) {
  /** @type {HTMLInputElement} */
  let field
  let send
  /** @type {(() => void) | undefined} */
  let leave
  const problem = h('p', { class: 'error', role: 'alert', id: PROBLEM })

  async function attempt(act) {
    if (form.ariaBusy === 'true') return
    problem.textContent = ''
    field.ariaInvalid = 'false'
    try {
      await busily(form, act)
    } catch (error) {
      problem.textContent = explain(error)
      field.ariaInvalid = 'true'
      field.select()
    }
  }

  function submit(event) {
    event.preventDefault()
    attempt(() => send(field.value))
  }

  function keydown(event) {
    if (event.key !== 'Escape' || isOfIme(event) || !leave) return
    event.preventDefault()
    leave()
  }

  const form = h('form', { class: 'sign-in', novalidate: true, 'aria-label': say('sign_in'), submit, keydown })

  /** Asks for the next thing, which `act` takes. `back` leaves it. */
  function ask(label, attributes, action, act, back = giveUp, ...more) {
    leave = back
    field = h('input', { required: true, 'aria-describedby': PROBLEM, ...attributes })
    send = act
    problem.textContent = ''
    const cancel = back && button(say('cancel'), { class: 'outlined', click: back })
    form.replaceChildren(h('label', { class: 'field' }, label, field), problem, h('div', { class: 'buttons' }, ...more, h('div', { class: 'buttons' }, cancel, primary(action))))
    field.focus()
  }

  return { form, ask, attempt }
}

/** @param {Entrance} entrance @param {string | null} name the present one */
export function nameForm(entrance, name, { form, ask } = asking(entrance)) {
  const { api, say, done, giveUp } = entrance
  const change = async (name) => {
    await api.request('PUT', 'me/name', json({ name }))
    await done()
  }
  ask(say('sign_in_name'), { autocomplete: 'name', maxlength: 100, dir: 'auto', value: name }, say('save'), change, giveUp)
  return form
}

/** @param {Entrance} entrance */
export function codeForm(entrance) {
  const { api, say, done } = entrance
  const asked = asking(entrance)
  const { form, ask, attempt } = asked

  const askAddress = (value = '') => ask(say('sign_in_address'), { type: 'email', autocomplete: 'email', dir: 'ltr', value }, say('sign_in'), (email) => start(email))

  async function start(email, isAgain = false) {
    const { data } = await api.request('POST', 'sign_in', json({ email }))
    const again = button(say('sign_in_again'), { class: 'again', click: () => attempt(() => start(email, true)) })
    const sent = new Date().toLocaleTimeString(api.language, { timeStyle: 'short' })
    const label = h('span', {}, `${say('sign_in_code')} `, h('small', { dir: 'ltr' }, email), isAgain && h('small', { role: 'status' }, ` ${say('sent_at').replace('{time}', sent)}`))
    const attributes = { autocomplete: 'one-time-code', inputmode: 'numeric', dir: 'ltr' }
    ask(label, attributes, say('sign_in'), (code) => finish(data.flow, code, email), () => askAddress(email), again)
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
