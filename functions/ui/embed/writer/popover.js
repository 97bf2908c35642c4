/** Positions popovers with a style sheet, because the widget sets no inline styles. */

import { sheet } from '../kit/sheet.js'

export const places = sheet('')

/** Shows a popover below a box, or above it if there is no room, and keeps it inside the window. @param {HTMLElement} popover @param {DOMRect} box */
export function showAt(popover, box, isAtEnd = false) {
  popover.showPopover()
  const { width, height } = popover.getBoundingClientRect()
  const { clientWidth, clientHeight } = document.documentElement
  const isRight = (getComputedStyle(popover).direction === 'rtl') !== isAtEnd
  const x = Math.max(8, Math.min(isRight ? box.right - width : box.x, clientWidth - width - 8))
  const below = box.bottom + 4
  const y = below + height > clientHeight && box.y > height ? box.y - height - 4 : below
  // Measured boxes include the page's zoom, but positions are set without it.
  const zoom = popover.currentCSSZoom ?? 1
  places.replaceSync(`.sheet { left: ${(x + scrollX) / zoom}px; top: ${(y + scrollY) / zoom}px }`)
}

/**
 * Toggles a popover when its button is pressed. The first item gets the focus, which returns to the button on closing.
 * @param {any} popover @param {any} opener
 */
export function togglePopover(popover, opener, isAtEnd = false) {
  // Prevents a press on the button from counting as a press outside the popover.
  opener.popoverTargetElement = popover
  if (popover.matches(':popover-open')) return popover.hidePopover()
  popover.onbeforetoggle = (event) => {
    if (/** @type {ToggleEvent} */ (event).newState === 'closed' && popover.matches(':focus-within')) opener.focus()
  }
  showAt(popover, opener.getBoundingClientRect(), isAtEnd)
  popover.querySelector('a, button')?.focus()
}

/** Returns a click listener that toggles the popover below the clicked button. @param {HTMLElement} popover */
export const toggler = (popover) => (event) => {
  event.preventDefault()
  togglePopover(popover, event.currentTarget)
}
