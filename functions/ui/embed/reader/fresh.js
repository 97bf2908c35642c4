/** Shows new comments: how many since the last visit and, while the page is open, a button that loads them. */

import { API } from '../kit/address.js'
import { anonymous } from '../kit/api.js'
import { device } from '../kit/device.js'
import { button, h, pause } from '../kit/dom.js'

export class Fresh {
  element = button('', { class: 'primary fresh', hidden: true, click: () => this.#show() })
  since = h('span', { class: 'since' })
  /** The id of the newest comment that polling found. It may not be in the list. */
  newest = null
  #before
  #waiting = []
  /** The id of the newest comment shown in earlier visits, by thread. */
  #seen = {}

  constructor(thread) {
    this.thread = thread
  }

  get #key() {
    return `${API} ${this.thread.path} seen`
  }

  /** Shows how many of these comments and their replies other people wrote since the last visit. */
  welcome(comments) {
    const seen = (this.#seen[this.#key] ??= +device.get(this.#key))
    const n = comments.flatMap((comment) => [comment, ...comment.replies]).filter(({ id, can }) => id > seen && !can.update).length
    this.since.textContent = n ? this.thread.say('new_since', n) : ''
  }

  /** Stores the id of the newest comment that was shown. */
  remember() {
    const newest = Math.max(+device.get(this.#key) || 0, ...this.thread.views.keys())
    if (newest) device.set(this.#key, newest)
  }

  async watch(signal) {
    const { path, ui } = this.thread
    this.#before = undefined
    while (ui.features.realtime && !signal.aborted) {
      const asked = document.hidden ? 1 : anonymous.get(`${path}/changes`, {}, signal).then(({ data }) => this.#offer(data), () => 120)
      await pause((await asked) * 1000)
    }
  }

  #offer({ count, newest, next }) {
    const { element, thread } = this
    thread.showTotal(count)
    this.#before ??= newest
    const told = this.#waiting.length
    this.#waiting = newest.filter((id) => !this.#before?.includes(id) && !thread.views.has(id))
    const { length } = this.#waiting
    if (length) this.newest = newest[0]
    const news = `${length} ${thread.say(length > 1 ? 'new_comments' : 'new_comment')}`
    element.hidden = !length
    if (length && length !== told) thread.toast.announce(news)
    element.textContent = news
    return next
  }

  /** Loads the comments one by one, so that the newest is added last. After a failure, the button loads the rest. */
  #show() {
    const { thread, element } = this
    const ids = this.#waiting
    element.hidden = true
    thread.attempt(
      async () => {
        for (const id of ids.toReversed()) await thread.fetch(id)
        element.hidden = true
        thread.reveal(ids[0])
      },
      () => (element.hidden = false),
    )
  }
}
