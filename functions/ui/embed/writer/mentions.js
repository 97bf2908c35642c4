/**
 * Offers people whose names begin as what follows an `@`.
 * @import { Editor } from '../types.d.ts'
 */

import { avatar } from '../kit/avatar.js'
import { h, pause } from '../kit/dom.js'

const handleOf = (name) => name.replace(/_?[^A-Za-z0-9_]+/g, '_').toLowerCase()

/** @param {Editor} editor */
export function mentions({ thread, purpose, text, insert }) {
  const { api, say, ui } = thread
  const { draft } = purpose
  const id = `people-${draft}`
  const element = h('div', { id, class: 'people', role: 'listbox', 'aria-label': say('mention'), hidden: true })
  let search = new AbortController()
  text.setAttribute('aria-autocomplete', 'list')
  text.setAttribute('aria-controls', id)

  async function suggest() {
    const end = text.selectionStart
    const query = text.value.slice(0, end).match(/(?<![\w@])@([\p{L}\p{N}_]{1,50})$/u)?.[1]
    search.abort()
    element.hidden = true
    if (!query || !ui.auth.authenticated) return
    search = new AbortController()
    const { signal } = search
    await pause(150)
    if (signal.aborted) return
    const { data } = await api.get('users', { q: query.replaceAll('_', ' ') }, signal).catch(() => ({ data: [] }))
    if (signal.aborted || !data.length) return
    const pick = (user) => insert(`@${handleOf(user.name)} `, end - query.length - 1, end)
    const mousedown = (event) => event.preventDefault()
    element.replaceChildren(
      ...data.map((user) => h('div', { id: `${draft}-${user.id}`, role: 'option', click: () => pick(user), mousedown }, avatar(user), user.name)),
    )
    element.hidden = false
    select(0)
  }

  function select(place) {
    const options = [...element.children]
    const picked = options.at(place % options.length)
    for (const option of options) option.ariaSelected = `${option === picked}`
    text.setAttribute('aria-activedescendant', picked?.id ?? '')
  }

  /** Whether the key has chosen among those who are offered. */
  function choose(key) {
    if (element.hidden) return false
    const options = /** @type {HTMLElement[]} */ ([...element.children])
    const place = options.findIndex(({ ariaSelected }) => ariaSelected === 'true')
    if (key === 'ArrowDown') select(place + 1)
    else if (key === 'ArrowUp') select(place - 1)
    else if (key === 'Enter' || key === 'Tab') options[place].click()
    else if (key === 'Escape') element.hidden = true
    else return false
    return true
  }

  return { element, suggest, choose }
}
