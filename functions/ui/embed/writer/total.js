/** Changes the number of comments that the heading shows, where it is known. @param {any} thread @param {number} change */
export function addToTotal({ total }, change) {
  if (total.textContent) total.textContent = `${Number(total.textContent) + change}`
}
