/** Composers inside a comment: for a reply or an edit. */

import { json } from '../kit/json.js'
import { poster } from './post.js'

/** Opens a composer below a comment. Returns a function that closes the composer and returns the comment's view. */
function write(view, purpose) {
  const { thread, comment } = view
  const cancel = () => {
    // The thread may have been rendered again.
    const { slot, body } = (view = thread.views.get(comment.id) ?? view)
    if (!slot.contains(element)) return view
    slot.replaceChildren()
    body.hidden = false
    view.focus()
    return view
  }
  const { element, text } = thread.composer({ ...purpose, cancel })
  view.slot.replaceChildren(element)
  // Leaves the focus on an element of the host page.
  const isElsewhere = /** @type {any} */ (document.activeElement).tabIndex >= 0 && !thread.host.matches(':focus-within')
  if (!view.isTyping && !isElsewhere) text.focus()
  return cancel
}

/** Opens a composer for a reply, or starts the sign-in if one is needed. */
export function reply(view) {
  const { thread, comment } = view
  if (!thread.ui.auth.can_comment) return thread.signIn(undefined, view)
  const { say } = thread
  const post = poster(thread, (reply) => {
    const parent = close()
    if (!thread.views.has(reply.id)) parent.comment.replies_count += +reply.is_approved
    return parent.addReply(reply)
  })
  const close = write(view, {
    draft: `reply-${comment.id}`,
    placeholder: say('write_reply'),
    action: say('reply'),
    send: (fields, editor) => post({ ...fields, parent_id: comment.id }, editor),
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
      close().show(data)
      thread.toast.show(say('saved'))
    },
  })
  body.hidden = true
}

/** Reopens composers, sign-in forms and decisions after the thread was rendered again. After a sign-in, replaces the form with a reply. */
export async function reopen(views) {
  for (const { thread, comment, body, slot } of views) {
    const view = await thread.fetch(comment.id)
    const [open] = slot.children
    if (!view || !open) continue
    if (open.renew) open.renew()
    else if (body.hidden) view.comment.can.update && edit(view)
    else if (thread.ui.auth.can_comment) reply(view)
    else if (open.matches('.sign-in')) view.slot.replaceChildren(open)
  }
}
