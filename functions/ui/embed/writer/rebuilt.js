/**
 * Composers of a thread that is rendered again: one that is being sent stays, and the others hand over their images and their focus.
 * @import { Composer, Editor } from '../types.d.ts'
 */

/** Adds an editor to those of its thread. @param {Editor} editor */
export function remember(editor) {
  const { thread, kept } = editor
  thread.editors ??= watch(thread)
  thread.editors[kept] = editor
}

/** Returns the latest editors of a thread by the names of their drafts. */
function watch(thread) {
  const { composer } = thread
  /** @type {Record<string, Editor>} */
  const editors = {}
  thread.composer = (purpose) => {
    const made = composer(purpose)
    const { kept } = made
    const left = kept.replace(/\w+$/, 'guest')
    // What a guest has begun belongs to the member who signs in.
    const before = (editors[kept] ??= editors[left])
    if (left !== kept) delete editors[left]
    if (before?.text.readOnly) return before
    if (before) takeOver(made, before)
    return made
  }
  return editors
}

/** @param {Composer} made @param {Editor} before */
function takeOver(made, before) {
  const { element, text, thread } = made
  const { chips, text: old } = before
  text.after(chips)
  made.sent = before.sent
  if (chips.firstChild) element.classList.add('open')
  if (thread.root.activeElement !== old) return
  const { selectionStart, selectionEnd } = old
  // The composer isn't in the page yet.
  queueMicrotask(() => {
    text.focus()
    text.setSelectionRange(selectionStart, selectionEnd)
  })
}
