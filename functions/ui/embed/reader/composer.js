/**
 * The form for a new comment, a reply or an edit. It is a single line until it has the focus or a draft. It accepts text and stores
 * the draft from the start. The writer module adds everything else on focus, and does not replace the text field.
 * @import { Composer, Purpose } from '../types.d.ts'
 */

import { API } from '../kit/address.js'
import { avatar } from '../kit/avatar.js'
import { device } from '../kit/device.js'
import { h, isOfIme, primary } from '../kit/dom.js'
import { ahead, writer } from './later.js'

/** Returns the visitor's name and avatar, as on comments. A guest's name is the one last entered on this device. */
export const visitor = ({ user }) => ({ avatar: '', ...user, name: (user ? user.name : device.get('name')) ?? '' })

/**
 * Returns the storage keys of the visitor's draft, and of the draft written before the sign-in, as a guest or in a
 * session that ended. After a session ends, drafts still belong to its member.
 */
function draftsOf({ path, ui, ended }, draft) {
  const before = ended?.id ?? 'guest'
  return [ui.auth.user?.id ?? before, before].map((who) => `${API} ${path} ${draft} ${who}`)
}

export const hasDraft = (thread, draft) => device.get(draftsOf(thread, draft)[0])

/** @param {Purpose} purpose @returns {Composer} */
export function composer(thread, purpose) {
  const { draft, value = '', placeholder, action, cancel } = purpose
  const { say, ui } = thread
  const [kept, left] = draftsOf(thread, draft)
  const folded = `${kept} folded`
  /** Resolves to the function that sends, once the writer module has turned the composer into an editor. @type {Promise<(() => void) | void> | undefined} */
  let editor

  function keep(body) {
    device.set(kept, body)
    thread.typed.add(draft)
  }

  function input() {
    problem.textContent = ''
    keep(text.value === value ? '' : text.value)
  }

  function enhance() {
    element.classList.add('open')
    device.set(folded, '')
    return (editor ??= writer()
      .then(({ enhance }) => enhance(form))
      .catch(() => {
        editor = undefined
        problem.textContent = say('error')
      }))
  }

  async function submit(event) {
    event.preventDefault()
    if (!ui.auth.can_comment) thread.signIn()
    else (await enhance())?.()
  }

  const keydown = (event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !isOfIme(event) && element.requestSubmit()

  const text = h('textarea', { 'aria-label': placeholder, placeholder, rows: 1, required: true, dir: 'auto', input })
  const problem = h('p', { class: 'error', role: 'alert' })
  const send = primary(action)
  const bar = h('div', { class: 'bar' }, send)
  const box = h('div', { class: 'editor', part: 'editor' }, text)
  const events = { ...ahead, focusin: enhance, dragenter: enhance, keydown, submit }
  const element = h('form', { class: 'composer', 'data-draft': draft, novalidate: true, ...events }, !purpose.isEdit && avatar(visitor(ui.auth)), h('div', {}, box, problem, bar))
  // Inserts the text typed before the sign-in above the member's own draft.
  if (kept !== left && thread.typed.delete(draft) && device.get(left)) {
    keep([device.get(left), device.get(kept)].filter(Boolean).join('\n\n'))
    device.set(left, '')
  }
  text.value = device.get(kept) || value
  if (cancel || (text.value && !device.get(folded))) element.classList.add('open')
  const form = { thread, purpose, element, text, box, problem, bar, send, keep, kept, left, folded }
  return form
}
