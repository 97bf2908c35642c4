/** Formats a time relative to now, such as "5 minutes ago". */

const UNITS = { year: 31_557_600, month: 2_629_800, week: 604_800, day: 86_400, hour: 3_600, minute: 60 }

export function ago(time, language) {
  const seconds = (Date.now() - Date.parse(time)) / 1000
  const [unit, size] = Object.entries(UNITS).find(([, size]) => seconds >= size) ?? ['second', Infinity]
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  return format.format(-Math.floor(seconds / size), /** @type {any} */ (unit))
}
