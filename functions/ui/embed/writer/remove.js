/** Deletes a comment after a confirmation, which replaces the comment's actions. */

import { busily, button, h } from '../kit/dom.js'
import { dress } from './style.js'
import { addToReplies, addToTotal } from './total.js'

export function remove(view) {
  const { thread, content } = view
  const { say } = thread
  const actions = content.querySelector('.actions')
  /** Whether a press has started the deletion, so that further ones are ignored. */
  const isBusy = () => question.ariaBusy === 'true'
  const giveUp = () => {
    if (isBusy()) return
    question.replaceWith(actions)
    view.focus()
  }
  const erase = async () => {
    const { comment } = view
    await thread.write('DELETE', `comments/${comment.id}`)
    addToTotal(thread, -comment.is_approved)
    const next = (isAnswered(view) ? blank(view) : leave(view)) ?? thread.section.querySelector('textarea')
    if (!view.isTyping) next?.focus({ preventScroll: true })
    thread.toast.show(say('comment_deleted'))
  }
  const keydown = ({ key }) => key === 'Escape' && giveUp()
  const cancel = button(say('cancel'), { class: 'outlined', click: giveUp })
  const send = () => isBusy() || thread.attempt(() => busily(question, erase), giveUp)
  const question = h('div', { class: 'actions question', role: 'group', 'aria-label': say('delete_confirm'), keydown }, say('delete_confirm'), cancel, button(say('delete'), { class: 'danger', click: send }))
  dress(thread)
  actions.replaceWith(question)
  cancel.focus()
}

/** Whether the comment still has a reply, and so needs a placeholder. Rejected replies are deleted with the comment. */
function isAnswered(view) {
  const isLive = ({ parent, comment }) => parent === view && comment.review?.state !== 'rejected'
  return view.comment.replies_count > 0 || [...view.thread.views.values()].some(isLive)
}

/** Turns the comment into a placeholder, below which its replies stay. */
function blank(view) {
  const { element, comment } = view
  view.show({ ...comment, is_deleted: true, user: { name: '', avatar: '' }, pinned: false })
  return element
}

/** Removes a comment with its replies, and the placeholders above it that have no other reply. Returns the element that is next to it. */
function leave({ thread, comment, parent, element }) {
  const next = element.nextElementSibling ?? element.previousElementSibling ?? parent?.element
  thread.views.forEach((view, id) => element.contains(view.element) && thread.views.delete(id))
  element.remove()
  if (!parent) return next
  addToReplies(parent, -comment.is_approved)
  return parent.comment.is_deleted && !isAnswered(parent) ? leave(parent) : next
}
