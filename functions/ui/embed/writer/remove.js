/** Deletes a comment after a question. */

import { ask } from './dialog.js'

export function remove(view) {
  const { thread, comment, parent, element } = view
  const { say, views } = thread
  ask(thread, say('delete_confirm'), [], say('delete'), async () => {
    await thread.write('DELETE', `comments/${comment.id}`)
    const next = element.nextElementSibling ?? element.previousElementSibling ?? parent?.element ?? thread.section.querySelector('textarea')
    for (const { id } of element.querySelectorAll('article')) views.delete(Number(id.slice(8)))
    views.delete(comment.id)
    element.remove()
    if (parent) parent.comment.replies_count -= +comment.is_approved
    thread.showEmpty()
    thread.toast.show(say('comment_deleted'))
    return next
  })
}
