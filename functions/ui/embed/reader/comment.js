/** One comment on the page, with its replies. */

import { avatar } from '../kit/avatar.js'
import { inFull } from '../kit/dates.js'
import { busily, button, drawing, h } from '../kit/dom.js'
import { linkImages, showHtml } from '../kit/html.js'
import { ahead } from './later.js'

const DOTS = 'M3 8h0M8 8h0M13 8h0'
const HEART = 'M8 14 3 9a3 3 0 0 1 5-5 3 3 0 0 1 5 5z'

export class CommentView {
  #cursor = ''
  depth = 0
  body = h('div')
  like = h('button')
  opener = h('button')

  constructor(thread, comment, parent = /** @type {CommentView | undefined} */ (undefined)) {
    const { id, user } = comment
    this.thread = thread
    this.comment = comment
    this.parent = parent
    if (parent) this.depth = parent.depth + 1
    this.content = h('div', { class: 'content' })
    this.slot = h('div')
    this.replies = h('div', { class: 'replies' })
    this.more = button('', { class: 'more', click: () => thread.attempt(() => busily(this.more, () => this.#loadReplies())) })
    const below = h('div', { class: 'below' }, this.replies, this.more)
    this.element = h('article', { id: `comment-${id}`, tabindex: -1, 'aria-labelledby': `author-${id}` }, avatar(user), this.content, below)
    thread.views.set(id, this)
    this.show(comment)
    comment.replies.forEach((reply) => this.addReply(reply))
    this.#showMore()
  }

  show(comment) {
    const { say, ui, language } = this.thread
    const { id, user, pinned, created_at, updated_at } = comment
    const { badges } = ui.features
    const marks = {
      author: badges && comment.is_author,
      moderator: badges && comment.is_moderator,
      guest: badges && comment.is_guest,
      pinned,
      pending_approval: !comment.is_approved,
    }
    const names = Object.keys(marks).filter((name) => marks[name])
    this.comment = comment
    this.element.setAttribute('part', `comment${this.parent ? ' reply' : ''}${pinned ? ' pinned' : ''}`)
    this.body = h('div', { class: 'body', part: 'body' })
    if (comment.is_deleted) return this.content.replaceChildren(h('p', { id: `author-${id}`, class: 'muted' }, say('deleted')))
    showHtml(this.body, comment.html, comment.body)
    linkImages(this.body)
    const time = h('time', { datetime: created_at, title: inFull(created_at, language) }, comment.relative_created_at)
    const href = new URL(`#comment-${id}`, location.href)
    this.content.replaceChildren(
      h(
        'header',
        {},
        h('b', { id: `author-${id}`, part: 'author', dir: 'auto' }, user.name),
        ...names.map((name) => h('span', { class: 'badge' }, say(name))),
        h('a', { class: 'muted', href, click: () => this.thread.reveal(id) }, time),
        updated_at > created_at && h('span', { class: 'muted', title: inFull(updated_at, language) }, say('edited')),
        this.#more(),
      ),
      this.body,
      this.#actions(),
      this.slot,
    )
    this.showMarks()
  }

  #actions() {
    const { say, ui } = this.thread
    const { nesting, read_only } = ui.features
    const isOpen = !read_only && !ui.auth.banned
    const isAnswerable = isOpen && nesting && this.comment.is_approved && this.depth < 10 && !this.thread.closed
    this.like = button('', { class: 'like', disabled: !isOpen, click: () => this.#like() })
    return h(
      'div',
      { class: 'actions', part: 'actions' },
      this.like,
      isAnswerable && button(say('reply'), { class: 'reply', ...ahead, click: () => this.thread.answer(this) }),
    )
  }

  /** The button of the menu, which the writer shows. */
  #more() {
    const click = (event) => {
      event.preventDefault()
      this.thread.later(({ menu }) => menu(this))
    }
    const labels = { 'aria-label': this.thread.say('more'), 'aria-haspopup': 'menu', 'aria-expanded': 'false' }
    return (this.opener = button(drawing(DOTS), { class: 'opener', ...labels, ...ahead, click }))
  }

  showMarks() {
    const { say } = this.thread
    const { liked, likes_count } = this.comment
    const count = likes_count ? ` ${likes_count}` : ''
    this.like.replaceChildren(drawing(HEART), count)
    this.like.ariaLabel = say('like') + count
    this.like.ariaPressed = `${liked}`
  }

  #like() {
    const { thread, comment, like } = this
    const { liked, likes_count } = comment
    if (!thread.ui.auth.authenticated && !thread.ui.guest.likes) return thread.signIn('sign_in_to_like')
    if (like.ariaBusy === 'true') return
    const show = (like) => {
      Object.assign(comment, like)
      this.showMarks()
    }
    show({ liked: !liked, likes_count: likes_count + (liked ? -1 : 1) })
    thread.attempt(
      () => busily(like, async () => show(await thread.write('POST', `comments/${comment.id}/like`))),
      () => show({ liked, likes_count }),
    )
  }

  focus() {
    this.element.focus({ preventScroll: true })
  }

  addReply(reply) {
    const { views } = this.thread
    const known = views.get(reply.id)
    if (known) return known
    const view = new CommentView(this.thread, reply, this)
    const later = [...this.replies.children].find(({ id }) => Number(id.slice(8)) > reply.id)
    this.replies.insertBefore(view.element, later ?? null)
    this.#showMore()
    return view
  }

  #showMore() {
    const shown = [...this.thread.views.values()].filter(({ parent, comment }) => parent === this && comment.is_approved)
    const left = this.comment.replies_count - shown.length
    this.more.hidden = left <= 0 || this.#cursor === null
    this.more.textContent = `${this.thread.say('view_replies')} (${left})`
  }

  async #loadReplies() {
    const { thread, comment } = this
    const { data, meta } = await thread.api.get(`comments/${comment.id}/replies`, { cursor: this.#cursor, per_page: 20 })
    this.#cursor = meta.next_cursor
    const added = data.filter(({ id }) => !thread.views.has(id)).map((reply) => this.addReply(reply))
    this.#showMore()
    added[0]?.focus()
  }
}
