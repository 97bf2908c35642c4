/** Updates the numbers of comments and replies. */

/** Changes the number of comments in the heading, if it is known. @param {any} thread @param {number} change */
export function addToTotal(thread, change) {
  if (thread.count != null) thread.showTotal(thread.count + change)
}

/** Changes a comment's number of replies, if there is a comment. @param {any} view @param {number} change */
export function addToReplies(view, change) {
  if (!view) return
  view.comment.replies_count += change
  view.showMore()
}
