/** Explains why the visitor can't write. */

import { button, drawing, h } from '../kit/dom.js'
import { offersCodes } from '../kit/session.js'
import { notice } from './states.js'

const LOCK = 'M4 7h8v6H4zM6 7V5a2 2 0 0 1 4 0v2'

/** Returns the notice that replaces the composer or is shown above it. @param {any} thread */
export function obstacle({ say, ui, closed, ended, signIn }) {
  const { features, auth } = ui
  const label = features.read_only ? 'read_only' : auth.banned ? 'banned' : closed && 'thread_closed'
  if (label) return notice(drawing(LOCK), ` ${say(label)}`)
  const lead = (label, name) => button(say(label), { class: name, click: () => signIn() })
  if (ended) return notice(h('span', { role: 'alert' }, `${say('session_ended')} `), lead('sign_in', 'outlined'))
  if (!auth.can_comment && !offersCodes(ui)) return notice(lead('sign_in_to_comment', 'primary'))
}
