/** Returns the sign-in result that a provider's redirect has put into the page's URL, and removes it from there. Must run once per page, before anything else. */

export function takeReturned() {
  const [, page, flow, code] = /^(.*)#comment-sign-in=([^.]*)\.?(.*)/.exec(location.href) ?? []
  if (!page) return
  history.replaceState(history.state, '', page)
  return { flow, code }
}
