/** The head of a thread: its heading, the sort order, and the account menu. */

import { avatar } from '../kit/avatar.js'
import { button, h } from '../kit/dom.js'
import { offersCodes, ownSession } from '../kit/session.js'
import { visitor } from './composer.js'
import { ahead, menuButton } from './later.js'

export const SORTS = ['newest', 'oldest', 'most_liked', 'most_replied']

/** Creates the button with the signed-in visitor's name, which opens the account menu. @param {any} thread */
function me(thread) {
  const { say, ui } = thread
  const opener = menuButton(avatar(visitor(ui.auth)), { class: 'me' }, () => thread.later('account', thread, opener))
  opener.append(ui.auth.user.name ?? say('sign_in_name'))
  return opener
}

/** @param {any} thread */
export function headOf(thread) {
  const { say, ui, total, fresh, ended } = thread
  const { features, auth } = ui
  const sorts = SORTS.map((value) => h('option', { value, selected: value === (thread.sort || ui.default_sort) }, say(value)))
  const select = h('select', { 'aria-label': say('sort'), change: () => thread.sortBy(select.value) }, ...sorts)
  return h(
    'div',
    { class: 'top' },
    h('div', {}, h('h2', {}, `${say('comments')} `, total), ' ', fresh.since),
    features.sorting && select,
    ownSession()
      ? auth.user && me(thread)
      : features.subscriptions && auth.authenticated && button(say('notifications'), { ...ahead, click: () => thread.later('chooseMails', thread) }),
    offersCodes(ui) && !auth.authenticated && !ended && button(say('sign_in'), { ...ahead, click: () => thread.signIn() }),
  )
}
