/**
 * Shows the errors of a form beside its fields.
 * @typedef {Record<string, (HTMLInputElement | HTMLTextAreaElement) & { correct?: () => void }>} Fields
 *   the fields of a form, in order, by their names in the API; `correct` removes a field's error
 */

import { h } from '../kit/dom.js'

/** Numbers the notes, so that their ids are unique. */
let count = 0

/** @param {Fields} fields */
export const clearMistakes = (fields) => Object.values(fields).forEach((field) => field.correct?.())

/**
 * Shows each error below its field until the field changes. Focuses the first of these fields. Returns whether any error has a field.
 * @param {Fields} fields @param {Record<string, string[]>} errors
 */
export function showMistakes(fields, errors) {
  const wrong = Object.keys(fields).filter((name) => errors?.[name])
  for (const name of wrong) {
    const field = fields[name]
    const id = `wrong-${count++}`
    const note = h('p', { id, class: 'error', role: 'alert' }, errors[name].join(' '))
    field.correct = () => {
      note.remove()
      field.ariaInvalid = null
      field.removeAttribute('aria-describedby')
    }
    field.after(note)
    field.ariaInvalid = 'true'
    field.setAttribute('aria-describedby', id)
    field.addEventListener('input', field.correct, { once: true })
  }
  fields[wrong[0]]?.focus()
  return wrong.length > 0
}
