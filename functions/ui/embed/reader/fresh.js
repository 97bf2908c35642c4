/** Watches a thread for new comments, and offers them by a button. */

import { button, pause } from '../kit/dom.js'

export class Fresh {
  element = button('', { class: 'primary fresh', hidden: true, click: () => this.#show() })
  #before
  #waiting = []

  constructor(thread) {
    this.thread = thread
  }

  async watch(signal) {
    const { api, path, ui } = this.thread
    this.#before = undefined
    while (ui.features.realtime && !signal.aborted) {
      let wait = 1
      if (!document.hidden) {
        wait = await api.request('GET', `${path}/changes`, { signal, anonymous: true }).then(
          ({ data }) => this.#offer(data),
          () => 120,
        )
      }
      await pause(wait * 1000)
    }
  }

  #offer({ newest, next }) {
    const { element, thread } = this
    this.#before ??= newest
    this.#waiting = newest.filter((id) => !this.#before?.includes(id) && !thread.views.has(id))
    const { length } = this.#waiting
    const news = `${length} ${thread.say(length > 1 ? 'new_comments' : 'new_comment')}`
    element.hidden = !length
    if (length && element.textContent !== news) thread.toast.announce(news)
    element.textContent = news
    return next
  }

  async #show() {
    const ids = this.#waiting
    const before = this.#before
    this.#before = before?.concat(ids)
    this.element.hidden = true
    await Promise.allSettled(ids.toReversed().map((id) => this.thread.fetch(id)))
    this.#before = before
    await this.thread.reveal(ids[0])
  }
}
