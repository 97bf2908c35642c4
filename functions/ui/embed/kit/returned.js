/** The data that a visitor has brought back from a provider. A script calls this before anything else, once a page, and takes it out of the address. */

export function takeReturned() {
  const [, page, flow, code] = /^(.*)#comment-sign-in=([^.]*)\.?(.*)/.exec(location.href) ?? []
  if (!page) return
  history.replaceState(history.state, '', page)
  return { flow, code }
}
