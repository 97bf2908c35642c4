/**
 * Writes plurals.json: the plural forms of the languages in `locales/`, from Node's CLDR data.
 *
 * usage: node shared/domain/build/plurals.js
 */

import { readdirSync, writeFileSync } from 'node:fs'

const ORDER = ['zero', 'one', 'two', 'few', 'many', 'other']
/**
 * The forms of numbers below this one are stored. Any other number has the form of 100 plus its last two digits, or,
 * if it is a multiple of a million, the form of a million.
 */
const STORED = 200
const MILLION = 1_000_000

/** @param {string} tag */
function plurals(tag) {
  const rules = new Intl.PluralRules(tag)
  const categories = ORDER.filter((category) => rules.resolvedOptions().pluralCategories.includes(/** @type {any} */ (category)))
  const form = (/** @type {number} */ number) => categories.indexOf(rules.select(number))
  const stored = (/** @type {number} */ number) =>
    number < STORED ? number : number % MILLION ? STORED / 2 + (number % (STORED / 2)) : MILLION
  for (const start of [0, 10_000, 100_000, MILLION, 2 * MILLION, 10 * MILLION, 1_000 * MILLION])
    for (let number = Math.max(0, start - 1_000); number < start + 1_000; number++)
      if (form(number) !== form(stored(number))) throw Error(`${tag}: the form of ${number} cannot be stored`)
  return { categories, forms: [...Array(STORED).keys(), MILLION].map(form).join('') }
}

const file = (/** @type {string} */ name) => new URL(name, import.meta.url)
const tags = readdirSync(file('../../locales')).map((name) => name.replace('.json', '')).sort()
const lines = tags.map((tag) => `  ${JSON.stringify(tag)}: ${JSON.stringify(plurals(tag))}`)
writeFileSync(file('plurals.json'), `{\n${lines.join(',\n')}\n}\n`)
