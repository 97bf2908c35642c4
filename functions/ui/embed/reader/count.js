/**
 * `<comment-count>`: the number of comments of a thread.
 */

import { anonymous } from '../kit/api.js'

/** @type {Set<CommentCount>} */
const uncounted = new Set()

function count() {
  const elements = [...uncounted].filter(({ thread }) => /^[\w.~-]+\/(?!\.{1,2}$)[\w.~:-]{1,128}$/.test(thread))
  uncounted.clear()
  if (elements.length) countIn(elements)
}

/** Requests counts. Splits a batch in half if it's too large or was refused, because one unknown type fails the whole request. @param {CommentCount[]} elements */
async function countIn(elements) {
  const threads = [...new Set(elements.map(({ thread }) => thread))]
  const half = elements.length >> 1
  const split = () => half && [elements.slice(0, half), elements.slice(half)].forEach(countIn)
  if (threads.length > 50 || `${threads}`.length > 5_900) return split()
  try {
    const { data } = await anonymous.get(`counts?threads=${threads}`)
    for (const element of elements) if (element.thread in data) element.textContent = data[element.thread]
  } catch ({ status }) {
    if (status === 422) split()
  }
}

export class CommentCount extends HTMLElement {
  static observedAttributes = ['type', 'record']

  get thread() {
    return `${this.getAttribute('type')}/${this.getAttribute('record')}`
  }

  attributeChangedCallback() {
    if (!uncounted.size) setTimeout(count, 20)
    uncounted.add(this)
  }
}

customElements.get('comment-count') ?? customElements.define('comment-count', CommentCount)
