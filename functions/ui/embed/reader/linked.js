/** A comment outside the list whose address was followed. */

import { button, h } from '../kit/dom.js'
import { CommentView } from './comment.js'

/** Shows it above the list, below a heading, until it is put into the list or another one takes its place. @param {any} thread @param {any} comment */
export function link(thread, comment) {
  const { say, list, linked } = thread
  const view = new CommentView(thread, comment)
  const leave = () => {
    list.append(linked.querySelector('article') ?? '')
    linked.replaceChildren()
  }
  const back = () => {
    leave()
    list.focus()
  }
  leave()
  linked.append(h('div', { class: 'top' }, h('h3', {}, say('linked_comment')), button(say('show_thread'), { click: back })), view.element)
  return view
}
