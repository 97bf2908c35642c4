/** Signs a visitor in, unless the host does: by a code, at the host's address, or with a hint. Signs the visitor out. */

import { anonymous } from '../kit/api.js'
import { codeForm, nameForm } from '../kit/codes.js'
import { json } from '../kit/json.js'
import { alone, keepSession, offersCodes, ownSession } from '../kit/session.js'
import { why } from './dialog.js'
import { dress } from './style.js'

let isWarned = false

/** The draft of a thread that is sent once somebody has signed in. @type {{ thread: any, draft: string | undefined } | null} */
let waiting = null

/** @param {any} thread @param {string} [draft] */
export const sendLater = (thread, draft) => (waiting = { thread, draft })

/** Whether a draft waited for somebody to sign in, who did. @param {any} thread @param {string} draft */
export function mayBeSent(thread, draft) {
  if (waiting?.thread !== thread || waiting?.draft !== draft) return false
  waiting = null
  return !!ownSession() && !!thread.ui.auth.user?.name
}

/** @param {any} thread @param {string} label the hint if there is no way to sign in @param {any} [view] the comment being replied to */
export function leadToSignIn(thread, label, view) {
  const { host, say, toast, ui } = thread
  if (offersCodes(ui)) return enter(thread, codeForm, view)
  const address = host.getAttribute('sign-in-url')
  if (address) return location.assign(address.replaceAll('{url}', encodeURIComponent(location.href)))
  toast.show(say(label))
  if (!isWarned) console.warn('comment-thread: somebody wants to sign in. Handle the event "comment-sign-in", or set the attribute "sign-in-url".')
  isWarned = true
}

/** Shows a form below the composer or a comment, and reloads the thread after it. What somebody wanted to send is sent then. */
function enter(thread, form, view) {
  const { api, say, root, notice } = thread
  const explain = (error) => why(thread, error)
  const place = view?.slot ?? notice
  const before = root.activeElement
  sendLater(thread, before?.closest('form')?.dataset.draft)
  const giveUp = () => {
    waiting = null
    place.replaceChildren()
    before?.focus()
  }
  const done = async () => {
    // A composer in a comment's slot becomes a reply.
    if (!view) place.replaceChildren()
    await showAnew(thread)
    if (waiting?.draft === 'new') thread.section.querySelector('textarea').focus()
  }
  dress(thread)
  place.replaceChildren(form({ api, say, explain, done, giveUp }))
  place.querySelector('input').focus()
}

/** Loads the thread for another visitor. The focus is where visitors sign in and out, and goes to a reply that was begun. */
async function showAnew(thread) {
  thread.ended = null
  await thread.load()
  thread.section.querySelector('.top')?.lastElementChild.focus()
}

/** Asks for a name, instead of the present one. */
export const chooseName = (thread) => enter(thread, (entrance) => nameForm(entrance, thread.ui.auth.user.name))

/** Everywhere is all that this account has. What is here ends without a connection too. Gives what has the focus then. @param {any} thread @param {boolean} everywhere */
export async function signOut(thread, everywhere) {
  await alone(async () => {
    const { refresh_token } = ownSession()
    const end = anonymous.request('POST', 'sign_in/end', json({ refresh_token, everywhere }))
    await (everywhere ? end : end.catch(() => {}))
    keepSession()
  })
  await showAnew(thread)
  return thread.root.activeElement
}
