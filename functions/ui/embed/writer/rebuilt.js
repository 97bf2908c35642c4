/**
 * Preserves composers when a thread is rendered again. A composer that is sending is reused. Any other passes its images and focus
 * to its replacement.
 * @import { Composer, Editor } from '../types.d.ts'
 */

import { API } from '../kit/address.js'

/** @param {Editor} editor */
export function remember(editor) {
  const { thread, kept } = editor
  const editors = (thread.editors ??= watch(thread))
  editors[kept] = editor
}

/** Makes new composers take over from earlier ones. Returns the thread's latest editors by the storage keys of their drafts. */
function watch(thread) {
  const { composer } = thread
  /** @type {Record<string, Editor>} */
  const editors = {}
  thread.composer = (purpose) => {
    const sending = Object.values(editors).find((editor) => editor?.text.readOnly && editor.kept.startsWith(`${API} ${thread.path} ${purpose.draft} `))
    const made = sending ?? composer(purpose)
    const { kept, left } = made
    // After a sign-in, the guest's text belongs to the member.
    const before = sending ?? (editors[kept] ??= editors[left])
    if (left !== kept) delete editors[left]
    if (before) takeOver(made, before)
    return made
  }
  return editors
}

/** @param {Composer} made @param {Editor} before */
function takeOver(made, before) {
  const { text, thread } = made
  const { chips, text: old } = before
  text.after(chips)
  // The composer isn't in the page yet.
  if (thread.root.activeElement === old) queueMicrotask(() => text.focus())
  text.setSelectionRange(old.selectionStart, old.selectionEnd)
}
