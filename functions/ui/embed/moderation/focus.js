/**
 * @import { App } from './app.js'
 */

/**
 * Focuses content once it has loaded, unless the moderator has moved the focus, typed or opened a dialog meanwhile.
 * @param {App} app
 * @param {Element} element the parent of the content
 * @param {() => Promise<unknown> | null} load
 * @param {() => void} focus
 */
export async function focusLate(app, element, load, focus) {
  const place = () => /** @type {HTMLInputElement | null} */ (app.root.activeElement)
  const before = place()
  const text = before?.value
  await load()
  const now = place()
  const isIdle = now ? now === before && now.value === text : document.activeElement === document.body
  if (isIdle && element.closest('dialog') === (app.top ?? null)) focus()
}
