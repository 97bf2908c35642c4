/**
 * Keeps composers when a thread is rendered again: a composer that is sending stays, and others pass their images to the new one.
 * @import { Editor } from '../types.d.ts'
 */

/** Adds an editor to those of its thread. @param {Editor} editor */
export function remember(editor) {
  const { thread, purpose } = editor
  thread.editors ??= watch(thread)
  thread.editors[purpose.draft] = editor
}

/** The last editors of a thread by their drafts. */
function watch(thread) {
  const { composer } = thread
  /** @type {Record<string, Editor>} */
  const editors = {}
  thread.composer = (purpose) => {
    const made = composer(purpose)
    const before = editors[purpose.draft]
    // Images belong to the same visitor, or to the guest who has signed in meanwhile.
    if (before?.kept !== made.kept && before?.kept !== made.kept.replace(/\w+$/, 'guest')) return made
    if (before.text.readOnly) return before
    before.kept = made.kept
    made.text.after(before.chips)
    return made
  }
  return editors
}
