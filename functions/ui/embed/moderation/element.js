/**
 * The moderators' page: `<comment-moderation>`.
 *
 * A host page sets the property `auth`, as for `<comment-thread>`. With the attribute `standalone`, the element is a whole page:
 * the moderator signs in with `#token=JWT`, a method of the service, or a pasted token. The token stays in memory. `#comment-ID`,
 * or `&comment=ID` after the token, shows that comment.
 * @import { Auth } from '../types.d.ts'
 */

import { UNDO } from '../kit/decisions.js'
import { formStyles } from '../kit/forms.js'
import { recall } from '../kit/redirect.js'
import { takeReturned } from '../kit/returned.js'
import { sheet, styles } from '../kit/sheet.js'
import { App } from './app.js'
import css from './moderation.css'
import pageCss from './page.css'

/** The sign-in result in the URL, if the element is standalone. On a host page, the result may be for the widget. */
const taken = document.querySelector('comment-moderation[standalone]') && takeReturned()
let returned = taken ? recall(taken) : null

const moderationStyles = sheet(`${css}.countdown{animation-duration:${UNDO}ms}`)

/** Styles of the page around a standalone element. */
const page = sheet(pageCss)

/** Returns the token and the comment in the page's URL, and removes the token from it. */
function readAddress() {
  const address = new URL(location.href)
  const [, token = null] = /^#token=([^&]+)/.exec(address.hash) ?? []
  const [, comment = 0] = /^#(?:token=[^&]+&comment=|comment-)(\d+)$/.exec(address.hash) ?? []
  address.hash = ''
  if (token) history.replaceState(history.state, '', address)
  return { token, comment: Number(comment) }
}

class CommentModeration extends HTMLElement {
  static observedAttributes = ['lang', 'theme']
  #root = this.attachShadow({ mode: 'open' })
  /** @type {App | null} */
  #app = null
  /** @type {Auth | undefined} */
  #auth
  #key = (/** @type {KeyboardEvent} */ event) => this.#app?.keys.take(event)
  #leave = () => this.#app?.decisions.flush()
  #hash = () => {
    const { token, comment } = readAddress()
    if (token) this.auth = token
    if (comment) this.#app?.showComment(comment)
  }

  constructor() {
    super()
    this.#root.adoptedStyleSheets = [styles, formStyles, moderationStyles]
    // The value that the host set before this module was loaded.
    const early = Object.getOwnPropertyDescriptor(this, 'auth')
    if (early) {
      Reflect.deleteProperty(this, 'auth')
      this.#auth = early.value ?? null
    }
  }

  /** A token, or a function that returns one. Setting it again signs in again. @returns {Auth} */
  get auth() {
    return this.#auth ?? null
  }
  set auth(auth) {
    this.#auth = auth ?? null
    this.#app?.entry.use(this.#auth)
  }

  connectedCallback() {
    const standalone = this.hasAttribute('standalone')
    let wanted = 0
    if (standalone) {
      const { token, comment } = readAddress()
      wanted = comment
      document.adoptedStyleSheets.push(page)
      document.documentElement.lang = navigator.language
      this.#auth ??= token ?? undefined
      addEventListener('hashchange', this.#hash)
    }
    const keys = standalone ? document : this
    keys.addEventListener('keydown', /** @type {EventListener} */ (this.#key))
    addEventListener('pagehide', this.#leave)
    this.#app = new App(this, this.#root, (standalone && returned) || undefined)
    returned = null
    if (wanted) this.#app.showComment(wanted)
    this.#app.entry.use(this.#auth)
  }

  disconnectedCallback() {
    this.#app?.stop()
    this.#app = null
    this.#root.replaceChildren()
    removeEventListener('pagehide', this.#leave)
    removeEventListener('hashchange', this.#hash)
    document.removeEventListener('keydown', this.#key)
    this.removeEventListener('keydown', this.#key)
  }

  /** @param {string} name */
  attributeChangedCallback(name) {
    if (name === 'lang') this.#app?.entry.start()
    else this.#app?.showTheme('auto')
  }
}

customElements.define('comment-moderation', CommentModeration)
