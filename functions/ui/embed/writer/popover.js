/** Where popovers stand. A sheet holds the place of the one that is open, since elements have no styles of their own here. */

import { sheet } from '../kit/sheet.js'

export const places = sheet('')

/** Shows a popover below a box, or above it where there is no room, inside the window. @param {HTMLElement} popover @param {DOMRect} box */
export function showAt(popover, box) {
  popover.showPopover()
  const { width, height } = popover.getBoundingClientRect()
  const { clientWidth, clientHeight } = document.documentElement
  const isAtEnd = getComputedStyle(popover).direction === 'rtl' || box.left + width > clientWidth
  const x = Math.max(8, Math.min(isAtEnd ? box.right - width : box.left, clientWidth - width - 8))
  const below = box.bottom + 4
  const y = below + height > clientHeight && box.top > height ? box.top - height - 4 : below
  places.replaceSync(`.sheet { left: ${x + scrollX}px; top: ${y + scrollY}px }`)
}

/** What a press on its button does. The first item has the focus. @param {HTMLElement} popover */
export function togglePopover(popover, event) {
  const { currentTarget: opener } = event
  event.preventDefault()
  // A press on it does not count as one outside.
  opener.popoverTargetElement = popover
  if (popover.matches(':popover-open')) return popover.hidePopover()
  showAt(popover, opener.getBoundingClientRect())
  const first = /** @type {HTMLElement | null} */ (popover.querySelector('a, button'))
  first?.focus()
}
