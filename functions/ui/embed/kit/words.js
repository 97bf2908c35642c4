/**
 * The language of an element, and what is said before the first answer.
 */

export function languageOf(element) {
  try {
    return `${new Intl.Locale(element.closest('[lang]').lang)}`
  } catch {
    return navigator.language
  }
}

export const FIRST_WORDS = { retry: 'Try again', error: 'Something went wrong', offline: 'No connection' }
