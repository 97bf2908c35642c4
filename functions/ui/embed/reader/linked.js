/** Shows a linked comment that is not in the list. */

import { button, h } from '../kit/dom.js'

/**
 * Shows the comment at the top, below a heading. A button, or the next linked comment, moves it to the end of the list. It stays
 * there until its page of the list is loaded.
 * @param {any} thread @param {any} comment
 */
export function link(thread, comment) {
  const { say, list } = thread
  const view = thread.prepend(comment)
  const back = () => {
    head.remove()
    place.className = 'list'
    list.append(place)
    list.focus()
    place.scrollIntoView()
  }
  const head = h('div', { class: 'top' }, h('h3', {}, say('linked_comment')), button(say('show_thread'), { click: back }))
  const place = h('div', { class: 'list linked' }, head, view.element)
  list.querySelector('.linked button')?.click()
  list.prepend(place)
  return view
}
