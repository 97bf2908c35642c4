/** The account menu of a member who signed in with the service itself. */

import { h } from '../kit/dom.js'
import { ask } from './dialog.js'
import { chooseMails } from './mails.js'
import { showMenu } from './menu.js'
import { chooseName, signOut } from './sign_in.js'

/** @param {any} thread @param {HTMLElement} opener */
export function account(thread, opener) {
  const { say, api, ui } = thread
  const { name_from: from } = ui.auth.user
  const everywhere = () => ask(thread, say('sign_out_everywhere'), [], say('sign_out'), () => signOut(thread, true))
  const [name] = showMenu(thread, opener, [
    { change_name: from ? () => {} : () => chooseName(thread), notifications: ui.features.subscriptions && (() => chooseMails(thread)) },
    { sign_out: () => signOut(thread, false), sign_out_everywhere: everywhere },
  ])
  if (!from) return
  name.ariaDisabled = 'true'
  name.append(h('small', {}, new Date(from).toLocaleString(api.language, { dateStyle: 'medium', timeStyle: 'short' })))
}
