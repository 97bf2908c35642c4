/**
 * The field that searches a queue.
 * @import { App } from './app.js'
 */

import { h, isOfIme } from '../kit/dom.js'

/** Milliseconds to wait after the last key press. */
const REST = 300

/** A named filter such as `from:`, or a word. Quotation marks group words. */
const PART = /(?:(from|in|since):\s*)("[^"]*"?|\S*)|("[^"]*"?|\S+)/gi

/** Parses the typed text into filters of the API. Returns `null` while one of them is invalid. @param {string} text */
export function filtersOf(text) {
  /** @type {Record<string, string[]>} */
  const given = { q: [], from: [], in: [], since: [] }
  for (const [, name = 'q', value, word] of text.matchAll(PART)) given[name.toLowerCase()].push((value ?? word).replaceAll('"', '').trim())
  const values = Object.values(given).flat()
  const thread = given.in.at(-1)
  const day = given.since.at(-1)
  const since = day && /^\d{4}-\d\d-\d\d$/.test(day) ? new Date(`${day}T00:00`) : null
  if (values.includes('') || (thread && !/^[^/]+\/[^/]+$/.test(thread)) || (day && !Number.isFinite(since?.getTime()))) return null
  const joined = (/** @type {string[]} */ words) => words.join(' ') || undefined
  /** @type {Record<string, string | undefined>} */
  const filters = { q: joined(given.q), from: joined(given.from), thread, since: since?.toISOString() }
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value != null))
}

/**
 * Creates a field that calls `search` with its filters and whether to focus the results. The text is kept when another
 * queue is opened.
 * @param {App} app @param {(filters: Record<string, string>, enter: boolean) => void} search
 */
export function searchField(app, search) {
  const { t } = app
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const run = (enter = false) => {
    clearTimeout(timer)
    const filters = filtersOf(field.value)
    field.setAttribute('aria-invalid', `${!filters}`)
    app.searched = field.value
    if (filters) search(/** @type {Record<string, string>} */ (filters), enter)
  }
  const field = h('input', {
    type: 'search', maxlength: '200', autocomplete: 'off', spellcheck: 'false', dir: 'auto', 'aria-describedby': 'search-hint', placeholder: t('search_hint'),
    input: () => {
      clearTimeout(timer)
      timer = setTimeout(run, REST)
    },
    keydown: (/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && !isOfIme(event) && run(true),
  })
  field.value = app.searched
  return h('div', { class: 'search', role: 'search' },
    h('label', {}, h('span', { class: 'visually-hidden' }, t('search')), field),
    h('p', { id: 'search-hint', class: 'muted' }, t('search_hint')))
}
