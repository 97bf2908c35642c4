/**
 * Offers users whose names contain the text after an `@`. Writers of loaded comments come first, if a word of the name
 * begins with the text. Guests are offered only these writers.
 * @import { Editor, User } from '../types.d.ts'
 */

import { avatar } from '../kit/avatar.js'
import { h, pause } from '../kit/dom.js'
import { handleOf, typedAt } from './handles.js'
import { showAt } from './popover.js'

const OFFERED = 8

/** @param {Editor} editor */
export function mentions({ thread, purpose, text, insert }) {
  const { api, say, ui, views } = thread
  const { draft } = purpose
  const id = `people-${draft}`
  const element = h('div', { id, class: 'people sheet', popover: 'manual', role: 'listbox', 'aria-label': say('mention'), mousedown: (event) => event.preventDefault() })
  const caret = h('span')
  // Copies the text and styles of the field, to measure the caret's position.
  const mirror = h('div', { class: 'mirror' })
  let search = new AbortController()
  /** The index of the selected person. It is kept when search results arrive. */
  let chosen = 0
  text.ariaAutoComplete = 'list'
  text.setAttribute('aria-controls', id)
  text.onblur = text.onclick = hide
  text.addEventListener('compositionend', suggest)

  function hide() {
    search.abort()
    element.hidePopover()
    text.removeAttribute('aria-activedescendant')
  }

  /** @param {any} event */
  async function suggest({ isComposing }) {
    const end = text.selectionStart
    const query = typedAt(text.value, end)
    hide()
    if (!query || isComposing) return
    chosen = 0
    search = new AbortController()
    const { signal } = search
    const people = writers(query)
    if (people.length) show(people, query, end)
    if (!ui.auth.authenticated) return
    await pause(150)
    const { data } = await api.get('users', { q: query.replaceAll('_', ' ').trim() }, signal).catch(() => ({ data: [] }))
    if (signal.aborted) return
    const others = data.filter((user) => handleOf(user.name) && !people.some(({ id }) => id === user.id))
    if (others.length) show([...people, ...others], query, end)
  }

  /** @param {string} query @returns {User[]} */
  function writers(query) {
    const users = [...views.values()].map(({ comment }) => comment.user)
    const known = new Map(users.filter((user) => user?.id && user.id !== ui.auth.user?.id).map((user) => [user.id, user]))
    // Removes the combining dot that `İ` keeps in lower case.
    const plain = (name) => `_${handleOf(name)}`.replaceAll('\u0307', '')
    const place = ({ name }) => plain(name).indexOf(plain(query))
    return [...known.values()].filter((user) => place(user) >= 0).sort((a, b) => place(a) - place(b))
  }

  /** @param {User[]} people */
  function show(people, query, end) {
    const start = end - query.length - 1
    // A final underscore would close emphasis that an earlier one has opened.
    const last = text.value.slice(0, start).includes('_') ? '\\_' : '_'
    element.replaceChildren(
      ...people.slice(0, OFFERED).map((user) => h('div', { id: `${draft}-${user.id}`, role: 'option', click: () => insert(`@${handleOf(user.name).replace(/_$/, last)} `, start, end) }, avatar(user), h('span', {}, user.name))),
    )
    mirror.replaceChildren(text.value.slice(0, start), caret, text.value.slice(start) || ' ')
    const { x, y } = caret.getBoundingClientRect()
    showAt(element, new DOMRect(x, y - text.scrollTop, 0, parseFloat(getComputedStyle(text).lineHeight)))
    select(chosen)
  }

  function select(place) {
    const options = [...element.children]
    chosen = (place + options.length) % options.length
    options.forEach((option, place) => (option.ariaSelected = `${place === chosen}`))
    text.setAttribute('aria-activedescendant', options[chosen].id)
  }

  /** Handles a key that moves or confirms the choice of a person. Returns whether it did. */
  function choose(key) {
    if (!element.matches(':popover-open')) return false
    if (key === 'ArrowDown') select(chosen + 1)
    else if (key === 'ArrowUp') select(chosen - 1)
    else if (key === 'Enter' || key === 'Tab') /** @type {HTMLElement} */ (element.children[chosen]).click()
    else if (key === 'Escape') hide()
    else return false
    return true
  }

  return { elements: [mirror, element], suggest, choose, hide }
}
