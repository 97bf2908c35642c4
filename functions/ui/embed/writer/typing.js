/** Typing aids of the editor, as steps that the browser can undo. */

/** A list item: its indent, its bullet or its number with a delimiter, spaces, and the checkbox of a task. */
const ITEM = /^(\s*)([-*+]|(\d{1,9})([.)]))( +)(\[[ xX]\] +)?/

/** @param {string} text */
export const withoutBlankEnds = (text) => text.trimEnd().replace(/^\s*\n/, '')

/**
 * Replaces part of a field as if typed, so that the browser can undo the change as a separate step.
 * @param {HTMLTextAreaElement} text @param {string} string @param {number} start @param {number} end
 */
export function type(text, string, start, end) {
  text.focus()
  select(text, start, end)
  // Only `execCommand` keeps the field's undo history in all browsers. It doesn't change a read-only field.
  document.execCommand(string ? 'insertText' : 'delete', false, string)
  select(text, text.selectionEnd, text.selectionEnd)
}

/** Selects text, which ends the browser's current undo step. */
function select(text, start, end) {
  text.select()
  text.setSelectionRange(start, end)
}

/** Continues the list that the caret is in, or ends it after an empty item. Returns whether the caret is in a list. @param {HTMLTextAreaElement} text */
export function continueList(text) {
  const { value, selectionStart: caret, selectionEnd } = text
  const begin = value.lastIndexOf('\n', caret - 1) + 1
  const [whole, indent, mark, number, sign, spaces, box] = ITEM.exec(value.slice(begin, caret)) ?? []
  if (!whole || caret !== selectionEnd) return false
  const isEmpty = caret === begin + whole.length && !/./.test(value.charAt(caret))
  const next = number ? +number + 1 + sign : mark
  if (isEmpty) type(text, '', begin, caret)
  else type(text, `\n${indent}${next}${spaces}${box ? '[ ] ' : ''}`, caret, caret)
  return true
}

/** Returns the Markdown of a link if a URL is pasted over words. @param {HTMLTextAreaElement} text @param {DataTransfer} source */
export function pastedLink({ value, selectionStart, selectionEnd }, source) {
  const address = source.getData('text').trim()
  const words = value.slice(selectionStart, selectionEnd)
  const isAddress = (text) => /^https?:\/\/[^\s<>]*$/i.test(text)
  if (!isAddress(address) || !words.trim() || /\n/.test(words) || isAddress(words.trim())) return
  // Unmatched brackets and a trailing backslash would break the link.
  const literal = words.replace(/\\.|`[^`]+`|\[[^[\]]*\]|[[\]\\]/g, (part) => (part[1] ? part : `\\${part}`))
  return `[${literal}](${/[()]/.test(address) ? `<${address}>` : address})`
}
