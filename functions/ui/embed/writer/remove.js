/** Deletes a comment after a question, which takes the place of its actions. */

import { avatar } from '../kit/avatar.js'
import { busily, button, h } from '../kit/dom.js'
import { dress } from './style.js'
import { addToTotal } from './total.js'

export function remove(view) {
  const { thread, content } = view
  const { say } = thread
  const actions = content.querySelector('.actions')
  const giveUp = () => {
    question.replaceWith(actions)
    view.focus()
  }
  const keydown = ({ key }) => key === 'Escape' && giveUp()
  const cancel = button(say('cancel'), { class: 'outlined', click: giveUp })
  const confirm = button(say('delete'), { class: 'danger', click: () => thread.attempt(() => busily(question, () => erase(view)), giveUp) })
  const question = h('div', { class: 'actions question', role: 'group', 'aria-label': say('delete_confirm'), keydown }, say('delete_confirm'), cancel, confirm)
  dress(thread)
  actions.replaceWith(question)
  cancel.focus()
}

async function erase(view) {
  const { thread, comment } = view
  await thread.write('DELETE', `comments/${comment.id}`)
  addToTotal(thread, -comment.is_approved)
  const next = (isAnswered(view) ? blank(view) : leave(view)) ?? thread.section.querySelector('textarea')
  thread.showEmpty()
  next?.focus({ preventScroll: true })
  thread.toast.show(thread.say('comment_deleted'))
}

function isAnswered({ comment, replies }) {
  return comment.replies_count > 0 || replies.children.length > 0
}

/** The replies stay, below a placeholder. */
function blank(view) {
  const { element, comment } = view
  const user = { id: null, name: '', avatar: '' }
  element.querySelector('.avatar').replaceWith(avatar(user))
  view.show({ ...comment, is_deleted: true, user, pinned: false })
  return element
}

/** Takes a comment away, and the placeholders above it that have no other reply. Answers what is next to it. */
function leave({ thread, comment, parent, element }) {
  const next = element.nextElementSibling ?? element.previousElementSibling ?? parent?.element
  thread.views.delete(comment.id)
  element.remove()
  if (!parent) return next
  parent.comment.replies_count -= +comment.is_approved
  parent.showMore()
  return parent.comment.is_deleted && !isAnswered(parent) ? leave(parent) : next
}
