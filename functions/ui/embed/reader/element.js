/**
 * The element `<comment-thread>`.
 * @import { Auth } from '../types.d.ts'
 */

import { languageOf } from '../kit/words.js'
import { Thread, returned } from './thread.js'
import './count.js'

class CommentThread extends HTMLElement {
  static observedAttributes = ['type', 'record', 'sort', 'lang', 'theme']

  #thread = new Thread(this, this.attachShadow({ mode: 'open' }))
  #isScheduled = false
  #isNear = false
  #near = new IntersectionObserver((entries) => !this.#isNear && entries.at(-1)?.isIntersecting && this.#approach(), { rootMargin: '600px' })
  #languages = new MutationObserver(() => this.attributeChangedCallback('lang'))
  #reveal = () => this.#thread.revealAddressed()
  /** @type {Record<string, string> | undefined} */
  labels = this['labels']

  constructor() {
    super()
    if (!Object.hasOwn(this, 'auth')) return
    const { auth } = this
    delete (/** @type {any} */ (this).auth)
    this.auth = auth
  }

  /** @type {Auth} */
  get auth() {
    return this.#thread.api.auth
  }
  set auth(auth) {
    this.#thread.become(auth ?? null)
  }

  connectedCallback() {
    this.#near.observe(this)
    this.#languages.observe(document, { subtree: true, attributeFilter: ['lang'] })
    addEventListener('hashchange', this.#reveal)
    if (this.#isNear || this.getAttribute('loading') === 'eager' || location.hash.startsWith('#comment-') || returned) this.#approach()
  }

  disconnectedCallback() {
    this.#near.disconnect()
    this.#languages.disconnect()
    removeEventListener('hashchange', this.#reveal)
    this.#thread.stop()
  }

  /** @param {string} name @param {string | null} [before] @param {string | null} [value] */
  attributeChangedCallback(name, before, value) {
    if (/type|record/.test(name) && before && before !== value) this.#thread.leave()
    if (name === 'theme') this.#thread.showTheme()
    else if (name !== 'lang' || languageOf(this) !== this.#thread.language) this.#schedule()
  }

  #approach() {
    this.#isNear = true
    this.#schedule()
  }

  #schedule() {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      if (this.isConnected && this.#isNear) this.#thread.load()
    })
  }
}

customElements.get('comment-thread') ?? customElements.define('comment-thread', CommentThread)
