/** Marks the findings of checks in the text of a comment, across element boundaries. */

import { h } from '../kit/dom.js'

/** Elements that add no white space around their text. */
const INLINE = 'a, em, strong, del, code'

/** Marks every occurrence of these words. @param {HTMLElement} element @param {string[]} matches */
export function mark(element, matches) {
  for (const match of matches) {
    const words = match.trim().replace(/\s+/g, ' ')
    const { text, places } = read(element)
    const found = []
    for (let at = text.indexOf(words); words && at >= 0; at = text.indexOf(words, at + words.length)) {
      found.push(...places.slice(at, at + words.length))
    }
    wrap(found)
  }
}

/**
 * Returns an element's text, with one space for each run of white space and each block boundary, and the place of each character:
 * its node, and the offset in that node.
 * @param {HTMLElement} element
 */
function read(element) {
  let text = ''
  const places = /** @type {([Text, number] | null)[]} */ ([])
  const add = (/** @type {string} */ character, /** @type {[Text, number] | null} */ place) => {
    const isSpace = /\s/.test(character)
    if (isSpace && text.endsWith(' ')) return
    text += isSpace ? ' ' : character
    places.push(place)
  }
  const walk = (/** @type {Node} */ node) => {
    if (node instanceof Text) {
      for (let at = 0; at < node.data.length; at++) add(node.data[at], [node, at])
      return
    }
    const border = node instanceof Element && !node.matches(INLINE)
    if (border) add(' ', null)
    node.childNodes.forEach(walk)
    if (border) add(' ', null)
  }
  walk(element)
  return { text, places }
}

/** Wraps the characters at these places in marks, each in one text node. @param {([Text, number] | null)[]} places */
function wrap(places) {
  /** The node of each piece, and the offsets of its first and last characters. @type {[Text, number, number][]} */
  const pieces = []
  for (const place of places) {
    if (!place || place[0].parentElement?.closest('mark')) continue
    const [node, at] = place
    const last = pieces.at(-1)
    if (last?.[0] === node && last[2] + 1 >= at) last[2] = at
    else pieces.push([node, at, at])
  }
  // Works from the end, so that earlier offsets stay valid.
  for (const [node, first, last] of pieces.reverse()) {
    node.splitText(last + 1)
    const found = node.splitText(first)
    found.replaceWith(h('mark', {}, found.data))
  }
}
