/**
 * Constants of moderators' decisions, shared by the thread and the queue.
 * @import { Reason } from '../types.d.ts'
 */

/** Milliseconds during which a decision can be undone. */
export const UNDO = 5_000

/** @type {Reason[]} */
export const REASONS = ['spam', 'off_topic', 'offensive', 'illegal', 'other']
