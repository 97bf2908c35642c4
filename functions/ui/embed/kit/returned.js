/** What a visitor has brought back from a provider. A script calls this before anything else, once a page. */

/** Under which name the tab keeps what only it may finish a flow with. @param {string} flow */
export const nameOf = (flow) => `comment-thread ${flow}`

/**
 * Takes it out of the address, and puts back the fragment that the page had. A flow that this tab did not start has no verifier.
 * @returns {{ flow: string, code: string, verifier?: string, hash?: string, [more: string]: any } | undefined}
 */
export function takeReturned() {
  const [found, flow, code] = /^#comment-sign-in=([^.]*)\.?(.*)/.exec(location.hash) ?? []
  if (!found) return
  let own
  try {
    own = JSON.parse(sessionStorage[nameOf(flow)])
    delete sessionStorage[nameOf(flow)]
  } catch {}
  const address = new URL(location.href)
  address.hash = own?.hash ?? ''
  history.replaceState(history.state, '', address)
  return { ...own, flow, code }
}
