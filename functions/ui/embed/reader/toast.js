/** A short message at the foot of the screen, which screen readers announce. */

import { h } from '../kit/dom.js'
import { showGround } from './ground.js'

export class Toast {
  element = h('p', {
    class: 'toast',
    part: 'toast',
    role: 'status',
    popover: 'manual',
    animationend: () => this.announce(''),
    // Runs when the page's text color has changed.
    transitionend: () => showGround(this.element.getRootNode()),
  })

  theme = ''

  /** Announces a text to screen readers only. */
  announce(text) {
    this.element.hidePopover()
    this.element.textContent = text
  }

  /** Shows a text until its animation ends, which pauses while the pointer is over the text. */
  show(text, isProblem = false) {
    this.announce(text)
    this.element.className = `toast ${this.theme} ${isProblem ? 'error' : ''}`
    if (this.element.isConnected) this.element.showPopover()
  }
}
