/**
 * The picture of a person, else the first letter of the name.
 */

import { h } from './dom.js'

export function avatar({ name, avatar }) {
  const letter = h('span', { class: 'avatar', part: 'avatar', 'aria-hidden': 'true' }, [...name][0])
  if (!avatar) return letter
  const error = () => picture.replaceWith(letter)
  const picture = h('img', { class: 'avatar', part: 'avatar', src: avatar, alt: '', loading: 'lazy', referrerpolicy: 'no-referrer', error })
  return picture
}
