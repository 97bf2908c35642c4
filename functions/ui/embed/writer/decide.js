import { json } from '../kit/json.js'
import { addToReplies, addToTotal } from './total.js'

/** A moderator's decision about a comment, as the moderator has seen it. @param {any} view @param {'approve' | 'reject'} verdict */
export async function decide(view, verdict) {
  const { thread, comment } = view
  const { id, updated_at } = comment
  const { data } = await thread.write('POST', `comments/${id}/${verdict}`, json({ updated_at }))
  const change = data.is_approved - comment.is_approved
  view.show(verdict === 'reject' ? { review: { state: 'rejected' }, ...data } : data)
  addToTotal(thread, change)
  addToReplies(view.parent, change)
  view.focus()
  thread.toast.show(thread.say('saved'))
}
