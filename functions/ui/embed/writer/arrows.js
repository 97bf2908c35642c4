/** Arrow keys, Home and End move the focus among the buttons of a menu or grid; Tab reaches one of them. */

const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: Infinity, ArrowUp: -Infinity }

/** @param {HTMLElement} element @param {number} columns */
export function moveByArrows(element, columns = 1) {
  element.addEventListener('keydown', (event) => {
    const items = /** @type {HTMLElement[]} */ ([...element.querySelectorAll('a, button')])
    const here = items.indexOf(/** @type {any} */ (event.target))
    const step = STEPS[event.key]
    const far = Math.abs(step) > 1 ? Math.sign(step) * columns : step
    const place = event.key === 'Home' ? 0 : event.key === 'End' ? -1 : step && (here + far) % items.length
    if (place == null) return
    event.preventDefault()
    items.at(place)?.focus()
  })
}
