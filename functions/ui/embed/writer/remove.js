/** Deletes a comment after a question, which takes the place of its actions. */

import { busily, button, h } from '../kit/dom.js'
import { dress } from './style.js'

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

async function erase({ thread, comment, parent, element }) {
  const { say, views } = thread
  await thread.write('DELETE', `comments/${comment.id}`)
  const next = element.nextElementSibling ?? element.previousElementSibling ?? parent?.element ?? thread.section.querySelector('textarea')
  for (const { id } of element.querySelectorAll('article')) views.delete(Number(id.slice(8)))
  views.delete(comment.id)
  element.remove()
  if (parent) parent.comment.replies_count -= +comment.is_approved
  thread.showEmpty()
  next?.focus({ preventScroll: true })
  thread.toast.show(say('comment_deleted'))
}
