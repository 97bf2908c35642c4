/**
 * @import { Build } from '../types.d.ts'
 */

/** @type {Build} */
export const h = (name, attributes = {}, ...children) => {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value)
    else if (value != null && value !== false) element.setAttribute(key, value)
  }
  element.append(.../** @type {Node[]} */ (children.filter(Boolean)))
  return element
}

export const button = (content, attributes) => h('button', { type: 'button', part: 'button', ...attributes }, content)

export const primary = (label) => button(label, { class: 'primary', type: 'submit' })

/** A 16 × 16 drawing in the text color. @param {string} path */
export function drawing(path) {
  const [svg, line] = ['svg', 'path'].map((name) => document.createElementNS('http://www.w3.org/2000/svg', name))
  svg.setAttribute('viewBox', '0 0 16 16')
  line.setAttribute('d', path)
  svg.append(line)
  return svg
}

export async function busily(element, act) {
  element.ariaBusy = 'true'
  try {
    await act()
  } finally {
    element.ariaBusy = 'false'
  }
}

/** Whether a key belongs to an input method's composition. In Safari, the key that commits a composition comes after its end, with key code 229. */
export const isOfIme = ({ isComposing, keyCode }) => isComposing || keyCode === 229

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
