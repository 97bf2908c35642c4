/** One comment on the page, with its replies. */

import { API } from '../kit/address.js'
import { avatar } from '../kit/avatar.js'
import { inFull } from '../kit/dates.js'
import { device } from '../kit/device.js'
import { busily, button, drawing, h } from '../kit/dom.js'
import { linkImages, showHtml } from '../kit/html.js'
import { ahead, menuButton } from './later.js'

const DOTS = 'M3 8h0M8 8h0M13 8h0'
const HEART = 'M8 14 3 9a3 3 0 0 1 5-5 3 3 0 0 1 5 5z'
const CLOCK = 'M8 5v3l2 1M8 2a6 6 0 1 0 .1 0'

/** Replies from this level on show a link to their parent, because the indent no longer does. */
const FLAT = 3

export class CommentView {
  #cursor = ''
  depth = 0
  content = h('div', { class: 'content' })
  slot = h('div')
  replies = h('div', { class: 'replies' })

  /** @param {any} thread @param {any} comment @param {CommentView} [parent] */
  constructor(thread, comment, parent) {
    const { id } = comment
    this.thread = thread
    this.parent = parent
    if (parent) this.depth = parent.depth + 1
    this.more = button('', { class: 'more', click: () => thread.attempt(() => busily(this.more, () => this.#showReplies())) })
    this.line = button('', { class: 'line', 'aria-label': thread.say('collapse'), 'aria-expanded': true, click: () => this.expand(!!this.replies.hidden) })
    this.element = h('article', { id: `comment-${id}`, tabindex: -1, 'aria-labelledby': `author-${id}` }, h('span'), this.content, this.line, h('div', { class: 'below' }, this.replies, this.more))
    thread.views.set(id, this)
    this.show(comment)
    comment.replies.forEach((reply) => this.addReply(reply))
    this.showMore()
  }

  /** Shows the comment, or only its text if that fails, so that other comments still appear. */
  show(comment) {
    this.comment = comment
    const { activeElement } = this.thread.root
    try {
      this.#show()
      if (this.slot.contains(activeElement)) activeElement.focus()
    } catch (error) {
      console.error(error)
      this.content.replaceChildren(h('p', { id: `author-${comment.id}` }, comment.body))
    }
  }

  #show() {
    const { comment } = this
    const { say } = this.thread
    const { id, pinned } = comment
    this.element.firstElementChild?.replaceWith(avatar(comment.user))
    this.element.classList.toggle('held', !comment.is_approved)
    this.element.setAttribute('part', `comment${this.parent ? ' reply' : ''}${pinned ? ' pinned' : ''}`)
    this.body = h('div', { class: 'body', part: 'body', dir: 'auto' })
    if (comment.is_deleted) return this.content.replaceChildren(h('p', { id: `author-${id}`, class: 'muted' }, say('deleted')))
    showHtml(this.body, comment.html, comment.body)
    linkImages(this.body)
    this.content.replaceChildren(this.#header(), this.body, this.#actions(), this.slot)
    this.showMarks()
  }

  #header() {
    const { thread, comment, parent, depth } = this
    const { say, ui, language } = thread
    const { id, user, created_at, updated_at } = comment
    const { badges } = ui.features
    const names = ['author', 'moderator', 'guest', 'pinned'].filter((name) => comment[name] ?? (badges && comment[`is_${name}`]))
    const link = (id, name, content) => h('a', { class: name, href: new URL(`#comment-${id}`, location.href), click: () => thread.reveal(id) }, content)
    // The writer module shows the menu.
    this.opener = menuButton(drawing(DOTS), { class: 'opener', 'aria-label': say('more') }, () => thread.later('menu', this))
    return h(
      'header',
      {},
      h('b', { id: `author-${id}`, part: 'author', dir: 'auto' }, user.name),
      depth >= FLAT && parent?.comment.user.name && link(parent.comment.id, 'parent', `↳ ${parent.comment.user.name}`),
      ...names.map((name) => h('span', { class: `badge ${name}` }, say(name))),
      link(id, 'muted', h('time', { datetime: created_at, title: inFull(created_at, language) }, comment.relative_created_at)),
      updated_at > created_at && h('span', { class: 'muted', title: inFull(updated_at, language) }, say('edited')),
      this.opener,
    )
  }

  #actions() {
    const { thread, comment } = this
    const { say, ui } = thread
    const { nesting, read_only } = ui.features
    const isOpen = !read_only && !ui.auth.banned
    const isAnswerable = isOpen && nesting && this.depth < 10 && !thread.closed
    this.like = isOpen && button('', { class: 'like', click: () => this.#like() })
    const likes = comment.likes_count > 0 && h('span', { class: 'like', title: say('likes') }, drawing(HEART), ` ${comment.likes_count}`)
    const answer = isAnswerable && button(say('reply'), { ...ahead, click: () => thread.later('reply', this) })
    return h('div', { class: 'actions', part: 'actions' }, ...(comment.is_approved ? [this.like || likes, answer, this.#news()] : this.#note()))
  }

  /** Notifies a guest once that a pending comment was approved. */
  #news() {
    const { thread, comment } = this
    const waiting = `${API} ${comment.id} waiting`
    if (!device.get(waiting)) return
    device.set(waiting, '')
    return h('span', { class: 'since' }, thread.say('now_public'))
  }

  /** Explains why other visitors don't see the comment. */
  #note() {
    const { say, ui } = this.thread
    const { state, reason, note } = this.comment.review ?? {}
    const { moderator } = ui.auth
    const label = state === 'rejected' ? (moderator ? 'rejected_for_moderators' : state) : moderator ? 'pending_approval' : 'only_you'
    const quotation = note && h('blockquote', {}, h('b', {}, say('from_moderators')), h('p', { dir: 'auto' }, note))
    return [h('span', {}, drawing(CLOCK), ` ${say(label)} ${reason ? say(reason) : ''}`), quotation]
  }

  showMarks() {
    const { like, thread, comment } = this
    if (!like) return
    const count = comment.likes_count ? ` ${comment.likes_count}` : ''
    like.replaceChildren(drawing(HEART), count)
    like.ariaLabel = thread.say('like') + count
    like.ariaPressed = `${comment.liked}`
  }

  #like() {
    /** @type {any} */
    const { thread, comment, like } = this
    const { liked, likes_count } = comment
    if (!thread.ui.auth.authenticated && !thread.ui.guest.likes) return thread.signIn('sign_in_to_like')
    if (like.ariaBusy === 'true') return
    const show = (marks) => {
      Object.assign(comment, marks)
      this.showMarks()
    }
    show({ liked: !liked, likes_count: likes_count + (liked ? -1 : 1) })
    thread.attempt(
      () => busily(like, async () => show(await thread.write('POST', `comments/${comment.id}/like`))),
      () => show({ liked, likes_count }),
    )
  }

  /** Whether a field has the focus, which a late response must not move. */
  get isTyping() {
    return this.thread.section.querySelector(':read-write:focus,select:focus')
  }

  focus() {
    if (!this.isTyping) this.element.focus({ preventScroll: true })
  }

  addReply(reply) {
    const { thread } = this
    const known = thread.views.get(reply.id)
    if (known) return known
    const view = new CommentView(thread, reply, this)
    const later = [...this.replies.children].find(({ id }) => +id.slice(8) > reply.id)
    this.replies.insertBefore(view.element, /** @type {any} */ (later))
    this.showMore()
    return view
  }

  /** Shows or hides the replies. Showing them also expands every collapsed comment above. */
  expand(isOpen = true) {
    this.replies.hidden = !isOpen
    this.line.ariaExpanded = `${isOpen}`
    this.showMore()
    if (isOpen) this.parent?.expand()
  }

  /** Shows how many replies are hidden: those that weren't loaded, and those in a collapsed branch. */
  showMore() {
    const { thread, comment, replies, more, line } = this
    const hidden = replies.hidden ? replies.querySelectorAll('article').length : 0
    let left = comment.replies_count + hidden
    thread.views.forEach(({ parent, comment }) => {
      if (parent === this && comment.is_approved) left--
    })
    more.hidden = left <= 0 || (!hidden && this.#cursor === null)
    more.textContent = thread.say('more_replies', left)
    line.hidden = !replies.firstChild
  }

  /** Loads the next replies with everything below them, or expands a collapsed branch. */
  async #showReplies() {
    const { thread, comment, replies } = this
    if (replies.hidden) return this.expand()
    const { data, meta } = await thread.api.get(`comments/${comment.id}/replies`, { deep: 1, cursor: this.#cursor, per_page: 50 })
    this.#cursor = meta.next_cursor
    const added = data.filter(({ id }) => !thread.views.has(id)).map((reply) => thread.views.get(reply.parent_id).addReply(reply))
    this.showMore()
    added[0]?.focus()
  }
}
