/**
 * Shows a person's picture, or their initials, or an empty circle if the name has no letters or digits.
 */

import { h } from './dom.js'

/** Returns the first letters of the first and last words. */
function initials(name) {
  const [first = '', ...others] = name.match(/(?<![\p{L}\p{N}]\p{M}*)[\p{L}\p{N}]/gu) ?? []
  return (first + (others.at(-1) ?? '')).toUpperCase()
}

export function avatar({ name, avatar }) {
  const hue = [...name].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 12
  const letters = h('span', { class: `avatar hue-${hue}`, part: 'avatar', 'aria-hidden': true }, initials(name))
  // Replaces Gravatar's generic picture with the initials: drops a URL without a hash, and requests `d=404`, so that a
  // missing picture fails to load. The link only normalizes the URL.
  const src = avatar && h('a', { href: avatar }).href.replace(/^.*gravatar\.com\/avatar\/?(\?.*)?$/, '').replace(/(gravatar\.com\/.*[?&]d(efault)?=)m[mp]\b/i, '$1404')
  if (!src) return letters
  const error = () => picture.replaceWith(letters)
  const picture = h('img', { class: 'avatar', part: 'avatar', src, alt: '', loading: 'lazy', referrerpolicy: 'no-referrer', error })
  return picture
}
