/** Leads somebody to sign in whom the host has not led: to its address, or by a word. */

let isWarned = false

/** @param {any} thread @param {string} label what is said where the host offers nothing */
export function leadToSignIn({ host, say, toast }, label) {
  const address = host.getAttribute('sign-in-url')
  if (address) return location.assign(address.replaceAll('{url}', encodeURIComponent(location.href)))
  toast.show(say(label))
  if (!isWarned) console.warn('comment-thread: somebody wants to sign in. Handle the event "comment-sign-in", or set the attribute "sign-in-url".')
  isWarned = true
}
