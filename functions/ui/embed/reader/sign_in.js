/** Leads somebody to where one signs in: by the host's own way, by its address, or by a word. */

let isWarned = false

/** @param {any} thread @param {string} label what is said where the host offers nothing */
export function signIn({ emit, host, say, toast }, label) {
  if (!emit('comment-sign-in')) return
  const address = host.getAttribute('sign-in-url')
  if (address) return location.assign(address.replaceAll('{url}', encodeURIComponent(location.href)))
  toast.show(say(label))
  if (!isWarned) console.warn('comment-thread: somebody wants to sign in. Handle the event "comment-sign-in", or set the attribute "sign-in-url".')
  isWarned = true
}
