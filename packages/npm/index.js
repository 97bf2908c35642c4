/** Adds the widget to the page, once. On a server it does nothing. */
export function load(api) {
  if (typeof document === 'undefined') return
  const script = document.createElement('script')
  script.type = 'module'
  script.src = `${api.replace(/\/+$/, '')}/embed.js`
  if (![...document.scripts].some(({ src }) => src === script.src)) document.head.append(script)
}
