/**
 * Makes a composer an editor: tools, fields of guests, mentions, images, a preview, keys, and sending.
 * @import { Composer, Editor } from '../types.d.ts'
 */

import { busily, button, isOfIme } from '../kit/dom.js'
import { ownSession } from '../kit/session.js'
import { emojis } from './emoji.js'
import { identity } from './guest.js'
import { images } from './images.js'
import { keepGuestKey, newKey } from './key.js'
import { mentions } from './mentions.js'
import { postFirst } from './post.js'
import { previewer } from './preview.js'
import { chooseName } from './sign_in.js'
import { dress } from './style.js'
import { mark, shortcutOf, toolbar } from './toolbar.js'

/** @param {Composer} composer */
export function enhance(composer) {
  const { thread, purpose, element, box, text, problem, bar, send, keep } = composer
  const { say, ui } = thread
  let isSending = false
  let last = { content: '', key: '' }
  /** @type {Editor} */
  const editor = { ...composer, fallible, insert }
  const people = mentions(editor)
  const preview = previewer(editor)
  const emoji = emojis(editor)
  const pictures = images(editor)
  const writer = identity(editor)

  async function fallible(act) {
    tell('')
    await busily(element, act).catch(fail)
  }

  async function fail(error) {
    if (error.code === 'offline') tell(say('kept'), true)
    else await thread.fail(error, tell)
  }

  function tell(sentence, isKept = false) {
    problem.textContent = sentence
    problem.classList.toggle('kept', isKept)
  }

  /** The connection is gone, or back. Nothing is sent by itself. */
  function connection({ type }) {
    if (!element.isConnected) return removeEventListener(type, connection)
    if (type === 'offline' && text.value) tell(say('kept'), true)
    else if (type === 'online' && problem.classList.contains('kept')) {
      tell('')
      thread.toast.show(say('back_online'))
    }
  }

  function insert(string, start = text.selectionStart, end = text.selectionEnd) {
    text.setRangeText(string, start, end, 'end')
    text.focus()
    text.dispatchEvent(new Event('input'))
  }

  function turn(isPosting) {
    isSending = isPosting
    element.classList.toggle('posting', isPosting)
    text.readOnly = isPosting
    send.textContent = isPosting ? say('posting') : purpose.action
  }

  function submit() {
    if (isSending || !ui.auth.can_comment) return
    if (ownSession() && !ui.auth.user?.name) return chooseName(thread)
    turn(true)
    fallible(() => deliver().finally(() => turn(false)))
  }

  async function deliver() {
    const written = text.value
    const fields = { body: await pictures.append(written), ...writer.fields() }
    const content = JSON.stringify(fields)
    if (content !== last.content) last = { content, key: newKey() }
    keepGuestKey(thread)
    await (purpose.send ?? postFirst(thread))(fields, last.key)
    last.content = ''
    if (text.value === written) text.value = ''
    pictures.clear()
    preview.close()
    keep(text.value)
    if (!text.value && !purpose.cancel) fold()
  }

  function keydown(event) {
    const { key } = event
    const isCommand = event.ctrlKey || event.metaKey
    const shortcut = ui.features.markdown_toolbar && shortcutOf(key)
    if (isOfIme(event)) return
    if (people.choose(key)) event.preventDefault()
    else if (isCommand && shortcut) {
      event.preventDefault()
      mark(editor, shortcut)
    }
  }

  /** Makes the composer a line again. */
  const fold = () => element.classList.remove('open')

  /** Escape, where nothing inside the form has taken it. */
  function escape(event) {
    if (event.key === 'Escape' && !isOfIme(event) && !event.defaultPrevented && !event.target.closest('[popover]')) giveUp()
  }

  /** Closes a reply or an edit, and an empty composer of the thread. */
  function giveUp() {
    if (purpose.cancel) return purpose.cancel()
    text.blur()
    if (!text.value) fold()
  }

  /** Firefox cannot size a field by its text. */
  function grow() {
    if (CSS.supports('field-sizing', 'content')) return
    text.rows = 1
    text.rows = Math.ceil((text.scrollHeight - 16) / parseFloat(getComputedStyle(text).lineHeight))
  }

  dress(thread)
  text.addEventListener('input', people.suggest)
  text.addEventListener('input', grow)
  text.addEventListener('keydown', keydown)
  element.addEventListener('keydown', escape)
  text.addEventListener('paste', (event) => pictures.take(event, event.clipboardData))
  text.addEventListener('drop', (event) => pictures.take(event, event.dataTransfer))
  element.addEventListener('submit', submit)
  for (const type of ['offline', 'online']) addEventListener(type, connection)
  text.after(preview.element, pictures.element, toolbar(editor, { emoji, pictures, preview }), emoji.element, ...people.elements)
  box.after(...writer.fieldsOfGuests)
  bar.prepend(writer.element, button(say('cancel'), { class: 'cancel', click: giveUp }))
  grow()
  people.suggest()
}
