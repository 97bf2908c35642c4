/**
 * What the page says.
 * @import { Translate } from '../types.d.ts'
 */

import { FIRST_WORDS } from '../kit/words.js'

/** What is said before the first answer, which has the texts. */
export const FIRST_TEXTS = { ...FIRST_WORDS, error_offline: FIRST_WORDS.offline }

/** Categories of plurals in the order of CLDR. */
const CATEGORIES = ['zero', 'one', 'two', 'few', 'many', 'other']

/** The texts of this page among the labels. @param {Record<string, string>} labels */
export const ownTexts = (labels) =>
  Object.fromEntries(Object.entries(labels).flatMap(([key, text]) => (key.startsWith('moderation.') ? [[key.slice(11), text]] : [])))

/**
 * Says texts by key, and nothing for a key that has none. With a number `n` a text has a form for each category of its language.
 * @param {Record<string, string>} texts
 * @returns {Translate}
 */
export function translator(texts) {
  const rules = new Intl.PluralRules(texts.language)
  const known = rules.resolvedOptions().pluralCategories
  const categories = CATEGORIES.filter((category) => known.some((other) => other === category))
  return (key, values = {}) => {
    const forms = (texts[key] ?? '').split(' | ')
    const category = 'n' in values ? rules.select(Number(values.n)) : 'other'
    // The last form is that of `other`, also where the browser knows fewer categories.
    const form = forms[category === 'other' ? -1 : categories.indexOf(category)] ?? forms.at(-1) ?? ''
    return form.replace(/\{(\w+)\}/g, (_, name) => `${values[name]}`)
  }
}
