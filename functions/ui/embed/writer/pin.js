/** Pins a comment to the top of its thread, or unpins it. */
export async function pin(view) {
  const { thread, comment } = view
  const { data } = await thread.write(comment.pinned ? 'DELETE' : 'POST', `comments/${comment.id}/pin`)
  thread.views.forEach((other) => other.comment.pinned && other.show({ ...other.comment, pinned: false }))
  view.show(data)
  view.focus()
}
