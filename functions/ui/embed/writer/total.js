/** Updates the numbers of comments and replies. */

/** @param {any} thread @param {number} change */
export function addToTotal(thread, change) {
  if (thread.count != null) thread.showTotal(thread.count + change)
}

/** @param {any} view @param {number} change */
export function addToReplies(view, change) {
  if (!view) return
  view.comment.replies_count += change
  view.showMore()
}
