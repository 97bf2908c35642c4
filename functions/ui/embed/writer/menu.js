/** Menus, such as a comment's, which has all actions except like and reply. */

import { API } from '../kit/address.js'
import { button, drawing, h } from '../kit/dom.js'
import { moveByArrows } from './arrows.js'
import { edit } from './below.js'
import { copyLink } from './copy_link.js'
import { decide } from './decide.js'
import { pin } from './pin.js'
import { togglePopover } from './popover.js'
import { remove } from './remove.js'
import { report } from './report.js'
import { dress } from './style.js'

const SIGNS = {
  copy_link: 'M6 10l4-4M7 5l1-1a3 3 0 0 1 4 4l-1 1M5 7 4 8a3 3 0 0 0 4 4l1-1',
  edit: 'M3 13l1-3 7-7 2 2-7 7zM10 4l2 2',
  delete: 'M3 4h10M6 4V2h4v2M4 4l1 10h6l1-10M7 7v4M9 7v4',
  report: 'M4 14V2h8l-2 3 2 3H4',
  pin: 'M6 2h4l-1 5 3 2H4l3-2zM8 9v5',
  approve: 'M3 8l3 4 7-8',
  reject: 'M4 4l8 8M12 4l-8 8',
  moderation: 'M8 2l5 2v4q0 4-5 6-5-2-5-6V4z',
  change_name: 'M3 13l1-3 7-7 2 2-7 7zM10 4l2 2',
  notifications: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2',
  sign_out: 'M7 3H3v10h4M6 8h7M10 5l3 3-3 3',
}

/** Milliseconds in which guests can change their comments. */
const GUESTS_TIME = 15 * 60_000

/** Returns the actions on a comment, in groups. Each label maps to a URL, or to a function that takes the comment's view. */
function groups({ thread, comment }) {
  const { features, auth } = thread.ui
  const { can, pinned, reported, is_approved, review, created_at } = comment
  const isOpen = !features.read_only && !auth.banned
  const isChangeable = isOpen && (auth.authenticated || Date.now() - Date.parse(created_at) < GUESTS_TIME)
  const decides = isOpen && auth.moderator
  return [
    { copy_link: copyLink, edit: isChangeable && can.update && edit, delete: isChangeable && can.delete && remove },
    { [reported ? 'reported' : 'report']: isOpen && features.reporting && !can.update && report, [pinned ? 'unpin' : 'pin']: isOpen && can.pin && pin },
    {
      approve: decides && !is_approved && decide,
      reject: decides && review?.state !== 'rejected' && ((view) => decide(view, true)),
      moderation: auth.moderator && `${API}moderate#comment-${comment.id}`,
    },
  ]
}

export const menu = (view) => showMenu(view.thread, view.opener, groups(view), view)

/**
 * Shows a menu, or hides it. Returns the menu items.
 * @param {any} thread @param {any} opener @param {Record<string, any>[]} groups
 * @param {any} [subject] the argument of the functions in `groups`
 * @returns {HTMLElement[]}
 */
export function showMenu(thread, opener, groups, subject) {
  const { say, section } = thread
  if (opener.popoverTargetElement?.isConnected) {
    opener.popoverTargetElement.hidePopover()
    return []
  }

  function item([label, act]) {
    const isLink = typeof act === 'string'
    const click = () => {
      element.hidePopover()
      if (!isLink) thread.attempt(async () => act(subject))
    }
    const attributes = { role: 'menuitem', tabindex: -1, class: /delete|reject/.test(label) && 'danger', 'aria-disabled': label === 'reported', click }
    const entry = isLink ? h('a', { ...attributes, href: act, target: '_blank', rel: 'noopener' }) : button('', attributes)
    entry.append(drawing(SIGNS[label.replace(/^un|ed$|_everywhere/g, '')]), say(label))
    return entry
  }

  function toggle({ newState }) {
    const isOpen = newState === 'open'
    opener.ariaExpanded = `${isOpen}`
    if (!isOpen) element.remove()
  }

  function keydown({ key }) {
    if (key === 'Tab') element.hidePopover()
  }

  const entries = groups.map((group) => Object.entries(group).filter(([, act]) => act).map(item))
  const rows = entries.flatMap((group) => (group[0] ? [h('hr'), ...group] : [])).slice(1)
  const element = h('div', { class: 'menu sheet', part: 'menu', role: 'menu', popover: 'auto', 'aria-label': say('more'), toggle, keydown }, ...rows)
  dress(thread)
  moveByArrows(element)
  section.append(element)
  togglePopover(element, opener, true)
  return entries.flat()
}
