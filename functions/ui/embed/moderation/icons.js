/** Icons and key hints. */

import { drawing, h } from '../kit/dom.js'

const ICONS = {
  approve: 'M3 8.5 6.5 12 13 4.5',
  reject: 'M4 4l8 8M12 4l-8 8',
  flag: 'M4 14V2.5h8l-2 3 2 3H4',
  open: 'M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3 7.5 8.5',
  reply: 'M6.5 4 3 7.5 6.5 11M3 7.5h6a4 4 0 0 1 4 4V13',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5',
  clock: 'M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z',
  ban: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0ZM3.8 3.8l8.4 8.4',
  all: 'M3 4h10M3 8h10M3 12h6',
  image: 'M2.5 3.5h11v9h-11ZM2.5 11 6 7.5l5 5M10.5 6.5h.01',
  lock: 'M4 7h8v6H4zM6 7V5a2 2 0 0 1 4 0v2',
  warning: 'M8 6v3.5M8 11.5v.01M8 2 1.5 13.5h13Z',
}

/** @param {keyof typeof ICONS} name */
export function icon(name) {
  const svg = drawing(ICONS[name])
  svg.setAttribute('aria-hidden', 'true')
  svg.classList.add('icon')
  return svg
}

/** Shows a key as a hint, hidden from screen readers, whose users can read the help instead. @param {string} letter */
export const key = (letter) => h('kbd', { 'aria-hidden': 'true' }, letter)

/** Creates an icon and a key hint. The current card shows the key instead of the icon. @param {keyof typeof ICONS} name @param {string} letter */
export const sign = (name, letter) => h('span', { class: 'sign', 'aria-hidden': 'true' }, icon(name), h('kbd', {}, letter))
