/** Composers inside a comment: for a reply or an edit. */

import { json } from '../kit/json.js'
import { post } from './post.js'

/** Opens a composer below a comment, the one that was put aside if it has images, and returns a function that closes it. */
function write(view, purpose) {
  const { thread, slot } = view
  const { draft } = purpose
  const cancel = () => {
    slot.replaceChildren()
    view.body.hidden = false
    view.focus()
  }
  if (!view[draft]?.element.querySelector('.chip')) view[draft] = thread.composer({ ...purpose, cancel })
  const { element, text } = view[draft]
  slot.replaceChildren(element)
  text.focus()
  text.setSelectionRange(text.value.length, text.value.length)
  return cancel
}

/** Opens a composer for a reply, or leads to the sign-in if that is needed. */
export function reply(view) {
  const { thread, comment } = view
  if (!thread.ui.auth.can_comment) return thread.signIn(undefined, view)
  const { say } = thread
  const close = write(view, {
    draft: `reply-${comment.id}`,
    placeholder: say('write_reply'),
    action: say('reply'),
    send: async (fields, key) => {
      const reply = await post(thread, { ...fields, parent_id: comment.id }, key)
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
      const { data } = await thread.write('PATCH', `comments/${comment.id}`, json({ body }))
      close()
      view.show(data)
      thread.toast.show(say('saved'))
    },
  })
  body.hidden = true
}

/** Reopens composers after the thread was rendered again, if the visitor may write there. */
export async function reopen(views) {
  for (const { thread, comment, body } of views) {
    const view = await thread.fetch(comment.id)
    if (body.hidden) view?.comment.can.update && edit(view)
    else if (view && thread.ui.auth.can_comment) reply(view)
  }
}
