/**
 * The effect of a decision on a comment.
 * @import { Action, Grounds, Item, OwnUser, Rejection, State, Verdict } from '../types.d.ts'
 */

/** @param {Item} item */
export const standing = (item) => (item.held_for ? 'waiting' : item.is_approved ? 'visible' : 'rejected')

/**
 * Returns the action for a verdict. Approving a public comment dismisses its reports.
 * @param {Item} item
 * @param {Verdict} verdict
 * @returns {Action}
 */
export const actionOf = (item, verdict) => (verdict === 'approve' && standing(item) === 'visible' ? 'dismiss' : verdict)

/** Whether an action would change a comment. @param {Item} item @param {Action} action */
export function applies(item, action) {
  if (action === 'dismiss') return item.reports_count > 0
  return standing(item) !== (action === 'approve' ? 'visible' : 'rejected')
}

/** Returns the rejection that a moderator makes now. @param {OwnUser | null} me @param {Grounds} grounds @returns {Rejection} */
export const rejectionBy = (me, grounds) => ({ ...grounds, moderator: { id: me?.id ?? null, name: me?.name ?? '' }, created_at: new Date().toISOString() })

/** Returns the comment as it is after the decision. @param {Item} item @param {Action} action @param {Rejection} rejection if the action is one @returns {Item} */
export const decided = (item, action, rejection) => ({
  ...item,
  is_approved: action === 'dismiss' ? item.is_approved : action === 'approve',
  held_for: action === 'dismiss' ? item.held_for : null,
  verdicts: action === 'approve' ? [] : item.verdicts,
  rejection: action === 'reject' ? rejection : action === 'approve' ? null : item.rejection,
  reports_count: 0,
  reports: [],
})

/** Whether a queue includes the comment. @param {Item} item @param {State} state */
export function belongs(item, state) {
  if (state === 'all') return true
  if (state === 'reported') return item.reports_count > 0
  return standing(item) === (state === 'pending' ? 'waiting' : 'rejected')
}
