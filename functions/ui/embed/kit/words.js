/**
 * The language of an element, texts before the first response, and plural forms of labels.
 */

export function languageOf(element) {
  try {
    return `${new Intl.Locale(element.closest('[lang]').lang)}`
  } catch {
    return navigator.language
  }
}

export const FIRST_WORDS = { retry: 'Try again', error: 'Something went wrong', offline: 'No connection' }

/** Plural categories in CLDR order. @type {any[]} */
const CATEGORIES = 'zero one two few many other'.split(' ')

/**
 * Selects the plural form of a text. A text with one form per plural category of its language follows that language's
 * rules. All other texts follow English rules.
 * @param {string} text @param {string} language
 */
export function formOf(text, language, n) {
  const forms = text.split(' | ')
  const rules = new Intl.PluralRules(language)
  const known = CATEGORIES.filter((name) => rules.resolvedOptions().pluralCategories.includes(name))
  return (known.length === forms.length ? forms[known.indexOf(rules.select(n))] : forms[+(n !== 1)]) ?? text
}
