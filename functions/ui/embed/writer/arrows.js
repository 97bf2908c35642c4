/** Arrow keys, Home and End move the focus among the items of a menu or grid. */

/** @param {HTMLElement} element @param {number} columns */
export function moveByArrows(element, columns = 1) {
  element.onkeydown = (event) => {
    const items = /** @type {HTMLElement[]} */ ([...element.querySelectorAll('a, button')])
    const here = items.indexOf(/** @type {any} */ (event.target))
    const forward = getComputedStyle(element).direction === 'rtl' ? -1 : 1
    const places = { Home: 0, End: -1, ArrowRight: here + forward, ArrowLeft: here - forward, ArrowDown: here + columns, ArrowUp: here - columns }
    const place = places[event.key]
    if (place == null) return
    event.preventDefault()
    items.at(place % items.length)?.focus()
  }
}
