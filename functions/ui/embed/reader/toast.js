/** What is said at the foot of the screen for a moment, and to screen readers. */

import { h } from '../kit/dom.js'

export class Toast {
  element = h('p', { class: 'toast', part: 'toast', role: 'status', popover: 'manual' })
  #timer = /** @type {any} */ (0)

  /** Says this to screen readers alone. */
  announce(text) {
    this.#hide()
    this.element.textContent = text
  }

  show(text, isProblem = false) {
    this.announce(text)
    this.element.classList.toggle('error', isProblem)
    if (this.element.isConnected) this.element.showPopover()
    this.#wait()
  }

  /** It stays for five seconds, and while the pointer is on it. */
  #wait() {
    this.#timer = setTimeout(() => (this.element.matches(':hover, :focus-within') ? this.#wait() : this.announce('')), 5000)
  }

  #hide() {
    clearTimeout(this.#timer)
    if (this.element.matches(':popover-open')) this.element.hidePopover()
  }
}
