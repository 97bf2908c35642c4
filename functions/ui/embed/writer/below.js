/** Composers inside a comment: for a reply, or for another text. */

import { composer } from '../reader/composer.js'

/** Opens a composer below a comment, and answers what closes it. */
function write(view, purpose) {
  const { thread, slot, body } = view
  const cancel = () => {
    slot.replaceChildren()
    body.hidden = false
    view.focus()
  }
  const { element, focus } = composer(thread, { ...purpose, cancel })
  slot.replaceChildren(element)
  focus()
  return cancel
}

export function reply(view) {
  const { thread, comment } = view
  const { say } = thread
  const close = write(view, {
    draft: `reply-${comment.id}`,
    placeholder: say('write_reply'),
    action: say('reply'),
    send: async (fields, key) => {
      const reply = await thread.post({ ...fields, parent_id: comment.id }, key)
      view.comment.replies_count += +reply.is_approved
      close()
      thread.focusOn(view.addReply(reply))
    },
  })
}

export function edit(view) {
  const { thread, comment, body } = view
  const { say } = thread
  const close = write(view, {
    draft: `edit-${comment.id}`,
    isEdit: true,
    value: comment.body,
    placeholder: say('edit'),
    action: say('save'),
    send: async ({ body }) => {
      const { data } = await thread.write('PATCH', `comments/${comment.id}`, { body: { body } })
      close()
      view.show(data)
      thread.toast.show(say('saved'))
    },
  })
  body.hidden = true
}
