/** Takes the data that a visitor has brought back from a provider out of the address. A script calls this once per page, before anything else. */

export function takeReturned() {
  const [, page, flow, code] = /^(.*)#comment-sign-in=([^.]*)\.?(.*)/.exec(location.href) ?? []
  if (!page) return
  history.replaceState(history.state, '', page)
  return { flow, code }
}
