/**
 * Turns a composer into an editor: tools, guest fields, mentions, images, a preview, keys, and sending.
 * @import { Composer, Editor } from '../types.d.ts'
 */

import { ApiError } from '../kit/api.js'
import { entranceIn } from '../kit/codes.js'
import { device } from '../kit/device.js'
import { busily, button, h, isOfIme, pause } from '../kit/dom.js'
import { ownSession } from '../kit/session.js'
import { emojis } from './emoji.js'
import { identity } from './guest.js'
import { images } from './images.js'
import { mentions } from './mentions.js'
import { clearMistakes, showMistakes } from './mistakes.js'
import { postFirst } from './post.js'
import { previewer } from './preview.js'
import { remember } from './rebuilt.js'
import { chooseName, mayBeSent, sendLater } from './sign_in.js'
import { dress } from './style.js'
import { mark, shortcutOf, toolbar } from './toolbar.js'
import { continueList, pastedLink, type } from './typing.js'

/** Adds the editor, and returns the function that sends. Waits until the pointer is released, because the editor moves the pressed button. @param {Composer} composer */
export async function enhance(composer) {
  const { thread, purpose, element, box, text, problem, bar, send, folded } = composer
  const { say, ui, api } = thread
  while (element.matches(':active')) await pause(20)
  const counter = h('span', { class: 'muted left' })
  /** @type {any} */
  const chips = element.querySelector('.chips') ?? h('div', { class: 'chips' })
  /** @type {Editor} */
  const editor = { ...composer, chips, fallible, insert }
  const people = mentions(editor)
  const preview = previewer(editor)
  const emoji = emojis(editor)
  const pictures = images(editor)
  const writer = identity(editor)
  const fields = { body: text, ...writer.inputs }

  async function fallible(act) {
    tell('')
    await busily(element, act).catch(fail)
  }

  async function fail(error) {
    if (error.code === 'offline') return tell(say('kept'), true)
    if (!showMistakes(fields, error.errors)) await thread.fail(error, tell)
  }

  function tell(sentence, isKept = false) {
    problem.textContent = sentence
    problem.classList.toggle('kept', isKept)
    if (sentence && !problem.checkVisibility()) thread.toast.show(sentence, true)
  }

  /** Handles a lost or restored connection. Nothing is sent automatically. */
  function connection({ type }) {
    if (type === 'online' && problem.matches('.kept')) {
      tell('')
      thread.toast.show(say('back_online'))
    } else if (!element.isConnected) removeEventListener(type, connection)
    else if (type === 'offline' && text.value) tell(say('kept'), true)
  }

  function insert(string, start = text.selectionStart, end = text.selectionEnd) {
    preview.close()
    type(text, string, start, end)
  }

  function turn(isPosting) {
    element.classList.toggle('posting', isPosting)
    text.readOnly = isPosting
    send.textContent = isPosting ? say('posting') : purpose.action
  }

  async function submit() {
    if (text.readOnly) return
    const session = ownSession()
    const entrance = entranceIn(thread.section)
    if (entrance && !session) {
      sendLater(thread, purpose.draft)
      return entrance.focus()
    }
    // The visitor has signed in on another tab or in another thread.
    if (session && session.user.id !== ui.auth.user?.id) return fallible(() => api.token(true).then(() => thread.load()))
    if (session && !ui.auth.user?.name) return chooseName(thread)
    clearMistakes(fields)
    if (showMistakes(fields, writer.missing())) return
    turn(true)
    await fallible(() => deliver().finally(() => turn(false)))
    // Shows a new composer if the visitor has changed.
    if (element.isConnected && thread.ui.auth.user?.id !== ui.auth.user?.id) thread.load()
  }

  async function deliver() {
    const written = text.value
    const post = purpose.send ?? postFirst(thread)
    const who = thread.api.who()
    const body = await pictures.insertInto(written)
    // The page may have signed in another user meanwhile.
    if ((await thread.api.who()) !== (await who)) throw new ApiError()
    const fields = { body, ...writer.fields() }
    thread.keepGuestKey()
    await post(fields, editor)
    text.value = ''
    pictures.clear()
    preview.close()
    count()
    // Another tab may have stored a different draft.
    if (device.get(composer.kept) === written) composer.keep('')
    if (!text.value && !chips.firstChild && !purpose.cancel) fold()
  }

  function keydown(event) {
    const { key } = event
    const isCommand = event.ctrlKey || event.metaKey
    const shortcut = isCommand && ui.features.markdown_toolbar && shortcutOf(key)
    if (isOfIme(event)) return
    if (shortcut) {
      event.preventDefault()
      mark(editor, shortcut)
    } else if (!isCommand && !event.shiftKey && !event.altKey && (people.choose(key) || (key === 'Enter' && continueList(text)))) event.preventDefault()
    // The key may move the caret. Typing shows the list again.
    else people.hide()
  }

  function paste(event) {
    const link = pastedLink(text, event.clipboardData)
    if (!link) return pictures.take(event, event.clipboardData)
    event.preventDefault()
    insert(link)
  }

  const fold = () => element.classList.remove('open')

  /** Handles Escape, unless an element inside the form has handled it. */
  function escape(event) {
    if (event.key === 'Escape' && !isOfIme(event) && !event.defaultPrevented && !event.target.closest('[popover]')) giveUp()
  }

  /** Closes a reply or an edit, or collapses the thread's composer until it is focused again. The draft is kept. */
  function giveUp() {
    preview.close()
    if (purpose.cancel) return purpose.cancel()
    text.blur()
    fold()
    device.set(folded, text.value && '1')
  }

  /** Shows the number of characters left, once it is at most a tenth of the limit. */
  function count() {
    const left = ui.limits.body - [...text.value].length
    counter.textContent = left > ui.limits.body / 10 ? '' : say('characters_left', left)
  }

  dress(thread)
  remember(editor)
  text.oninput = (event) => {
    count()
    people.suggest(event)
  }
  text.onkeydown = keydown
  element.onkeydown = escape
  text.onpaste = paste
  text.ondrop = (event) => pictures.take(event, event.dataTransfer)
  addEventListener('offline', connection)
  addEventListener('online', connection)
  text.after(preview.element, chips, toolbar(editor, { emoji, pictures, preview }), emoji.element, ...people.elements)
  box.after(writer.fieldsOfGuests)
  bar.prepend(writer.element, counter, button(say('cancel'), { class: 'cancel', click: giveUp }))
  count()
  people.suggest({})
  if (mayBeSent(thread, purpose.draft)) submit()
  return submit
}
