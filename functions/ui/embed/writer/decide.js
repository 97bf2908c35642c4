/** A moderator's decisions in the thread, which can be undone for five seconds, as in the queue. */

import { ApiError } from '../kit/api.js'
import { REASONS, UNDO } from '../kit/decisions.js'
import { button, h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { dress } from './style.js'
import { addToReplies, addToTotal } from './total.js'

/** Sends a decision on the comment as the moderator saw it, unless the decision is undone. @param {any} view */
export function decide(view, isRejection = false) {
  const { thread, comment } = view
  const { say } = thread
  const { id, updated_at } = comment
  /** @type {string | undefined} */
  let reason
  const timer = setTimeout(send, UNDO)
  const who = thread.api.who()
  addEventListener('pagehide', send)

  function end() {
    clearTimeout(timer)
    removeEventListener('pagehide', send)
    if (bar.contains(thread.root.activeElement)) view.focus()
    bar.remove()
  }

  function undo() {
    end()
    show(comment)
  }

  /** Shows the new state of the comment, and moves the focus from the bar to the comment. */
  function show(shown) {
    // The thread may have been rendered again.
    view = thread.views.get(id) ?? view
    const here = thread.root.activeElement
    const change = shown.is_approved - view.comment.is_approved
    view.show(shown)
    addToTotal(thread, change)
    addToReplies(view.parent, change)
    if (here !== thread.root.activeElement) view.focus()
  }

  function send() {
    end()
    const isSame = view.comment === decided
    thread.attempt(
      async () => {
        if ((await thread.api.who()) !== (await who)) throw new ApiError()
        const { data } = await thread.write('POST', `comments/${id}/${isRejection ? 'reject' : 'approve'}`, { ...json({ updated_at, reason }), keepalive: true })
        thread.toast.show(say('saved'))
        if (isSame) show(isRejection ? { review: { state: 'rejected', reason }, ...data } : data)
      },
      // Reloads the comment, because the writer may have edited it.
      async () => {
        const { data } = await thread.api.get(`comments/${id}`).catch(() => ({ data: comment }))
        show(data)
      },
    )
  }

  function choose(chosen) {
    reason = reason === chosen ? undefined : chosen
    choices.forEach((choice, place) => (choice.ariaPressed = `${REASONS[place] === reason}`))
  }

  const choices = (isRejection ? REASONS : []).map((name) => button(say(name), { 'aria-pressed': 'false', click: () => choose(name) }))
  /** @type {any} */
  const bar = h('div', { class: 'decision' }, button(say('undo'), { class: 'outlined', click: undo }), ...choices)
  const decided = { ...comment, is_approved: !isRejection, review: isRejection ? { state: 'rejected' } : null }
  bar.renew = () => {
    show(decided)
    view.slot.replaceChildren(bar)
  }
  dress(thread)
  bar.renew()
  view.focus()
}
