/**
 * The language of an element, what is said before the first answer, and forms of labels.
 */

export function languageOf(element) {
  try {
    return `${new Intl.Locale(element.closest('[lang]').lang)}`
  } catch {
    return navigator.language
  }
}

export const FIRST_WORDS = { retry: 'Try again', error: 'Something went wrong', offline: 'No connection' }

/** Categories of plurals in the order of CLDR. */
const CATEGORIES = ['zero', 'one', 'two', 'few', 'many', 'other']

/** The form of a text for a number: it has one for each category of its language. @param {string} text @param {string} language */
export function formOf(text, language, n) {
  const forms = text.split(' | ')
  const rules = new Intl.PluralRules(language)
  const known = /** @type {string[]} */ (rules.resolvedOptions().pluralCategories)
  const place = CATEGORIES.filter((name) => known.includes(name)).indexOf(rules.select(n))
  return forms[place] ?? `${forms.at(-1)}`
}
