/** Removes the data that a visitor brought back from a provider from the page's address, and returns it. To be called once per page, before anything else. */

export function takeReturned() {
  const [, page, flow, code] = /^(.*)#comment-sign-in=([^.]*)\.?(.*)/.exec(location.href) ?? []
  if (!page) return
  history.replaceState(history.state, '', page)
  return { flow, code }
}
