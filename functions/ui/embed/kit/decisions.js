/**
 * Shared by a moderator's decisions in the thread and in the queue.
 * @import { Reason } from '../types.d.ts'
 */

/** Milliseconds in which a decision can be undone. */
export const UNDO = 5_000

/** Why a comment is rejected. @type {Reason[]} */
export const REASONS = ['spam', 'off_topic', 'offensive', 'illegal', 'other']
