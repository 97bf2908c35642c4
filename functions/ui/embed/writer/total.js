/** Updates the numbers of comments and replies. */

/** Changes the number of comments that the heading shows, where it is known. @param {any} thread @param {number} change */
export function addToTotal(thread, change) {
  if (thread.count != null) thread.showTotal(thread.count + change)
}

/** Changes the number of replies of a comment, where there is one. @param {any} view @param {number} change */
export function addToReplies(view, change) {
  if (!view) return
  view.comment.replies_count += change
  view.showMore()
}
