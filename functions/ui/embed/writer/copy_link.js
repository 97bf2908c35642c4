/** Copies the address of a comment. If that fails, as without https, a dialog shows the address. */

import { h } from '../kit/dom.js'
import { ask } from './dialog.js'

export async function copyLink({ thread, comment }) {
  const { say, toast } = thread
  const { href } = new URL(`#comment-${comment.id}`, location.href)
  try {
    await navigator.clipboard.writeText(href)
    toast.show(say('link_copied'))
  } catch {
    const field = h('input', { readonly: true, value: href, 'aria-label': say('copy_link'), focus: () => field.select() })
    ask(thread, say('copy_link'), [field])
  }
}
