/**
 * The texts of the page.
 * @import { Translate } from '../types.d.ts'
 */

import { FIRST_WORDS, formOf } from '../kit/words.js'

/** Texts until the first response, which contains all of them. */
export const FIRST_TEXTS = { ...FIRST_WORDS, error_offline: FIRST_WORDS.offline }

/** Returns the labels that begin with `moderation.`, without that prefix. @param {Record<string, string>} labels */
export const ownTexts = (labels) =>
  Object.fromEntries(Object.entries(labels).flatMap(([key, text]) => (key.startsWith('moderation.') ? [[key.slice(11), text]] : [])))

/**
 * Returns a function that looks up the text of a key, or returns an empty string if it is missing. A number `n` selects the plural form.
 * @param {Record<string, string>} texts
 * @returns {Translate}
 */
export function translator(texts) {
  return (key, values = {}) => {
    const text = texts[key] ?? ''
    const form = 'n' in values ? formOf(text, texts.language, values.n) : text
    return form.replace(/\{(\w+)\}/g, (_, name) => `${values[name]}`)
  }
}
