/** Signs visitors in and out, unless the host does. Without a sign-in method of the service, opens the host's `sign-in-url` or shows a hint. */

import { anonymous } from '../kit/api.js'
import { codeForm, entranceIn, nameForm } from '../kit/codes.js'
import { json } from '../kit/json.js'
import { finishReturned, methodsOf, recall } from '../kit/redirect.js'
import { alone, keepSession, ownSession } from '../kit/session.js'
import { reply } from './below.js'
import { why } from './dialog.js'
import { dress } from './style.js'

let isWarned = false

/** The draft to send once the visitor has signed in, and its thread. @type {any} */
let waiting = null

/** @param {any} thread @param {string} [draft] */
export const sendLater = (thread, draft) => (waiting = { thread, draft, path: thread.path })

/**
 * Whether a draft was waiting for the sign-in, and the visitor has signed in and has a name. Clears the waiting draft.
 * @param {any} thread @param {string} draft
 */
export function mayBeSent(thread, draft) {
  if (waiting?.thread !== thread || waiting.draft !== draft || waiting.path !== thread.path) return false
  waiting = null
  return !!ownSession() && !!thread.ui.auth.user?.name
}

/** @param {any} thread @param {string} label the hint if there is no way to sign in @param {any} [view] the comment being replied to */
export function leadToSignIn(thread, label, view) {
  const { host, say, toast, ui } = thread
  if (methodsOf(ui).length) return enter(thread, codeForm, view)
  const address = host.getAttribute('sign-in-url')
  if (address) return location.assign(address.replaceAll('{url}', encodeURIComponent(location.href)))
  toast.show(say(label))
  if (!isWarned) console.warn('<comment-thread>: handle comment-sign-in or set sign-in-url')
  isWarned = true
}

/** Returns the names of the drafts on the page, which the member who signs in keeps. */
const draftsOf = ({ section }) => [...section.querySelectorAll('.composer')].map(({ dataset }) => dataset.draft)

/** Shows a form below the composer or a comment. Afterwards, reloads the thread and sends the draft that the visitor wanted to send. */
function enter(thread, form, view, draft = thread.root.activeElement?.closest('form')?.dataset.draft) {
  const { api, say, root, section, notice, path, ui } = thread
  const explain = (error) => why(thread, error)
  const place = view?.slot ?? notice
  const before = root.activeElement
  sendLater(thread, draft)
  const giveUp = () => {
    waiting = null
    element.remove()
    before?.focus()
  }
  const done = async () => {
    draftsOf(thread).forEach((draft) => thread.typed.add(draft))
    // A composer replaces the sign-in form in a comment's slot.
    if (!view) element.remove()
    await showAnew(thread)
    if (waiting?.draft === 'new') section.querySelector('textarea').focus()
  }
  const brings = () => {
    const open = view || [...thread.views.values()].find(({ slot }) => slot.firstChild)
    // A draft with images isn't sent, because they would be missing.
    return { path, draft: section.querySelector('.chip') ? '' : waiting?.draft, drafts: draftsOf(thread), reply: open?.comment.id, isBelow: !!view }
  }
  dress(thread)
  const element = form({ api, say, explain, done, giveUp, methods: methodsOf(ui), brings })
  place.replaceChildren(element)
  entranceIn(place)?.focus()
}

/** Reloads the thread after the visitor has changed. Focuses the button that signs in or opens the account, unless a reopened reply has the focus. */
async function showAnew(thread) {
  thread.ended = null
  await thread.load()
  const { root, section } = thread
  // When a dialog closes, it focuses the returned element.
  const target = section.contains(root.activeElement) ? root.activeElement : section.querySelector('.top')?.lastElementChild
  target?.focus()
  return target
}

/** The data that the tab has stored for the visitor, until the visitor's thread takes it. @type {ReturnType<typeof recall> | null | undefined} */
let kept

/** Signs in a visitor who returned from a provider, and restores the place that they left. @param {any} thread @param {{ flow: string, code: string }} returned */
export async function arrive(thread, returned) {
  if (!methodsOf(thread.ui).length) return
  if (kept === undefined) kept = recall(returned)
  if (!kept || (kept.path ?? thread.path) !== thread.path) return
  const own = kept
  const { draft, drafts = [], reply: id, isBelow } = own
  kept = null
  await thread.revealAddressed()
  const open = () => id && thread.fetch(id)
  try {
    const { user, suggested_name } = await finishReturned(own)
    drafts.forEach((draft) => thread.typed.add(draft))
    await showAnew(thread)
    const view = await open()
    if (!user.name) return enter(thread, (entrance) => nameForm(entrance, suggested_name), view, draft)
    sendLater(thread, draft)
    const text = thread.section.querySelector('textarea')
    if (view) reply(view)
    else if (text?.value) text.focus()
  } catch (error) {
    const view = await open()
    if (view && !isBelow) reply(view)
    enter(thread, codeForm, isBelow && view, draft)
    thread.section.querySelector('.sign-in .error').textContent = why(thread, error)
  }
}

export const chooseName = (thread) => enter(thread, (entrance) => nameForm(entrance, thread.ui.auth.user.name))

/**
 * Ends the session here, even without a connection. `everywhere` ends all sessions of the account, and needs a
 * connection. Returns the element to focus afterwards.
 * @param {any} thread @param {boolean} everywhere
 */
export async function signOut(thread, everywhere) {
  await alone(async () => {
    const { refresh_token } = ownSession()
    const end = anonymous.request('POST', 'sign_in/end', json({ refresh_token, everywhere }))
    await (everywhere ? end : end.catch(() => {}))
    keepSession()
  })
  return showAnew(thread)
}
