/**
 * Signs moderators in, and explains to other users why they have no access.
 * @import { Auth, Decision, Entrance, Ui } from '../types.d.ts'
 * @import { App } from './app.js'
 */

import { anonymous, Client } from '../kit/api.js'
import { codeForm, nameForm } from '../kit/codes.js'
import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { finishReturned, methodsOf } from '../kit/redirect.js'
import { alone, keepSession, ownSession } from '../kit/session.js'
import { languageOf } from '../kit/words.js'
import { icon } from './icons.js'
import { Replies } from './replies.js'

/** Returns the token in pasted text, which may be a URL or begin with `Bearer`. @param {string} text */
const tokenIn = (text) => /token=([^&\s]+)/.exec(text)?.[1] ?? text.trim().replace(/^Bearer\s+/i, '')

/** Returns null if the session has ended, and otherwise rejects with the error. @param {unknown} error */
const unlessEnded = (error) => (ownSession() ? Promise.reject(error) : null)

export class SignIn {
  /** @type {HTMLDialogElement | null} */
  #expired = null
  #wrong = h('p')
  /** Identifies the current attempt, so that late responses are ignored. */
  #run = 0
  /** The account in the format of `SVC_MODERATORS`, until the moderator signs out. @type {string | undefined} */
  #account
  /** @type {ReturnType<typeof methodsOf>} */
  #methods = []
  /** The sign-in of a visitor who returned from a provider, until its result is shown. @type {Promise<{ account?: string, suggested_name?: string, error?: any }> | undefined} */
  #arrival

  /** @param {App} app @param {ReturnType<typeof import('../kit/redirect.js').recall> | undefined} returned */
  constructor(app, returned) {
    this.app = app
    this.#arrival = returned && finishReturned(returned).catch((error) => ({ error }))
  }

  /** Whether the page asks to sign in again. */
  get isAsking() {
    return !!this.#expired
  }

  stop() {
    this.#run++
  }

  /** Signs in, and shows the first tab or the reason for a refusal. @param {Promise<Decision[]>} [flushed] the previous moderator's decisions that couldn't be sent */
  async start(flushed) {
    const run = ++this.#run
    const before = this.app.me?.id
    this.app.leave()
    this.app.me = null
    this.app.client.language = languageOf(this.app.host)
    this.app.screen(h('p', { class: 'muted centred' }, this.app.t('loading')))
    try {
      // Waits for the previous moderator's decisions, so that the lists reflect them.
      const unsent = (await flushed) ?? []
      const arrival = await this.#arrival
      const token = ownSession() ?? (await this.app.client.token())
      await this.app.client.token(true).catch(unlessEnded)
      const ui = await this.#askWho()
      if (run !== this.#run) return
      this.#arrival = undefined
      this.#account ??= arrival?.account
      this.#methods = methodsOf(ui)
      this.app.speak(ui.labels)
      this.app.webhookEvents = ui.webhook_events ?? []
      this.app.me = ui.auth.user
      if (this.app.replies.owner !== this.app.me?.id) this.app.replies = new Replies(this.app, this.app.me?.id)
      this.app.showTheme(ui.theme)
      const { error } = arrival ?? {}
      if (!ui.auth.authenticated) this.#showSignIn(error ? this.#explain(error) : token ? this.app.t('bad_token') : undefined)
      else if (ui.auth.banned) this.#showRefusal('banned')
      else if (arrival && !error && !this.app.me?.name) this.#showName(arrival.suggested_name)
      else if (!ui.auth.moderator) this.#showRefusal('refused')
      else {
        // A moderator whose token was renewed keeps decisions that the service refused with the old one.
        if (unsent.length && this.app.me?.id === before) this.app.decisions.resume(unsent)
        this.app.show(ui.features.read_only)
      }
    } catch (error) {
      if (run === this.#run) this.app.screen(this.app.problem(error, () => this.start()))
    }
  }

  /** Loads the configuration, which has the signed-in user and the texts. @returns {Promise<Ui>} */
  async #askWho() {
    const token = await this.app.client.token()
    const { data } = await this.app.client.get('ui', { for: 'moderation' })
    // Endpoints without authentication ignore an invalid token.
    if (data.auth.authenticated || !(await this.app.client.renew(token, true).catch(unlessEnded))) return data
    return (await this.app.client.get('ui', { for: 'moderation' })).data
  }

  /** @param {Auth | undefined} auth set by the page; undefined uses the session of the service's own sign-in */
  async use(auth) {
    // Pending decisions are sent as the moderator who made them.
    const flushed = this.#expired ? undefined : this.app.decisions.flush()
    const { language } = this.app.client
    this.app.client = Object.assign(new Client(), { language, auth })
    if (!this.#expired) return this.start(flushed)
    try {
      const { authenticated, moderator, banned, user } = (await this.#askWho()).auth
      if (!authenticated) return this.#showWrong(this.app.t('bad_token'))
      // Starts over unless the same moderator has signed in.
      if (!moderator || banned || user?.id !== this.app.me?.id) {
        this.app.decisions.drop()
        return this.start()
      }
      this.#expired.close('signed-in')
      this.app.decisions.hurry()
    } catch (error) {
      this.#showWrong(this.app.explain(error))
    }
  }

  /**
   * Ends the session here, even without a connection, unless decisions can't be sent. `everywhere` ends all sessions of the
   * account, and needs a connection.
   */
  async signOut(everywhere = false) {
    const { decisions, frame } = this.app
    if (frame.hasAttribute('aria-busy')) return
    frame.setAttribute('aria-busy', 'true')
    try {
      const unsent = await decisions.flush()
      if (unsent.length) return decisions.resume(unsent)
      await alone(async () => {
        const session = ownSession()
        if (!session) return
        const end = anonymous.request('POST', 'sign_in/end', json({ refresh_token: session.refresh_token, everywhere }))
        await (everywhere ? end : end.catch(() => {}))
        keepSession()
      })
    } finally {
      frame.removeAttribute('aria-busy')
    }
    this.#account = undefined
    this.use(undefined)
  }

  /** Shows the account actions: change the name, sign out everywhere. */
  async showAccount() {
    const { app } = this
    const { labels, t } = app
    const dialog = h('dialog', { 'aria-label': labels.sign_in_name })
    const done = async () => {
      dialog.close()
      await this.start()
    }
    const leave = () => this.signOut(true).then(() => dialog.close(), (error) => app.tell(app.explain(error)))
    dialog.append(
      nameForm(this.#entrance(done, () => dialog.close()), app.me?.name ?? ''),
      h('div', {}, h('button', { type: 'button', class: 'outlined', click: leave }, labels.sign_out_everywhere)))
    app.open(dialog)
    dialog.querySelector('input')?.focus()
  }

  /** @param {Entrance['done']} done @param {Entrance['giveUp']} [giveUp] @returns {Entrance} */
  #entrance(done, giveUp) {
    const say = (/** @type {string} */ key) => this.app.labels[key]
    return { api: this.app.client, say, explain: this.#explain, methods: this.#methods, done, giveUp }
  }

  #explain = (/** @type {any} */ error) => this.app.labels[error.code] ?? this.app.explain(error)

  /** @param {string} [error] */
  #showSignIn(error) {
    const { t } = this.app
    this.#showPanel(h('p', { class: 'muted' }, t('sign_in_more')), this.#signInForm(error))
  }

  /** Asks a user who returned from a provider for a name. @param {string | null} [suggested] */
  #showName(suggested) {
    const go = () => this.start()
    this.#showPanel(nameForm(this.#entrance(go, go), suggested ?? ''))
  }

  /** @param {...HTMLElement} content */
  #showPanel(...content) {
    this.app.screen(h('div', { class: 'panel card-like' }, h('h1', {}, this.app.t('title')), ...content))
    /** @type {HTMLElement | null} */
    const first = this.app.frame.querySelector('form :is(input, button)')
    first?.focus()
  }

  /** Creates the sign-in form of the standalone page. On other pages, creates a button that asks the host to sign the moderator in. @param {string} [error] */
  #signInForm(error) {
    const { t } = this.app
    const wrong = (this.#wrong = h('p', { role: 'alert', class: 'error', hidden: !error }, error))
    if (!this.app.standalone) {
      const ask = () => this.app.host.dispatchEvent(new CustomEvent('comment-sign-in', { bubbles: true, composed: true, cancelable: true }))
      return h('div', { class: 'sign-in' }, wrong, h('button', { type: 'button', class: 'primary', click: ask }, t('sign_in')))
    }
    const field = h('input', { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', required: true, 'aria-describedby': 'token-hint' })
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault()
      this.use(tokenIn(field.value))
    }
    const form = h('form', { class: 'sign-in', submit },
      h('label', { class: 'field' }, t('token'), field),
      h('p', { class: 'muted small', id: 'token-hint' }, t('token_hint')),
      !this.#methods.length && wrong,
      h('div', {}, h('button', { class: 'primary' }, t('sign_in'))))
    if (!this.#methods.length) return form
    const done = (/** @type {string | undefined} */ address) => {
      this.#account = address && `email:${address}`
      return this.use(undefined)
    }
    return h('div', { class: 'sign-in' }, wrong, codeForm(this.#entrance(done)), h('details', {}, h('summary', {}, t('token')), form))
  }

  /** @param {string} text */
  #showWrong(text) {
    this.#wrong.textContent = text
    this.#wrong.hidden = false
  }

  /** @param {'banned' | 'refused'} why */
  #showRefusal(why) {
    const { t } = this.app
    this.app.screen(h('div', { class: 'panel card-like', role: 'alert' },
      h('span', { class: 'mark bad' }, icon('reject')),
      h('h1', {}, t(why)),
      h('p', { class: 'muted' }, t(`${why}_more`, { name: this.app.me?.name ?? this.#account?.replace('email:', '') ?? `${this.app.me?.id}` })),
      why === 'refused' && this.#whomToName(),
      this.app.standalone && h('button', { type: 'button', class: 'outlined', click: () => this.signOut() }, t('sign_out'))))
  }

  /** Shows the account and the user id. To grant access, the owner adds one of them to the settings. */
  #whomToName() {
    const names = [this.#account, `${this.app.me?.id}`]
    return h('div', { class: 'small' }, h('p', {}, this.app.t('refused_name')), ...names.map((name) => name && h('p', {}, h('code', { dir: 'ltr' }, name))))
  }

  /** Asks a user whose sign-in has expired to sign in again. The page and waiting decisions are kept. Only a sign-in closes the dialog. */
  askAgain() {
    if (this.#expired || !this.app.me) return
    const { t } = this.app
    const dialog = (this.#expired = h('dialog', { 'aria-labelledby': 'expired-title', closedby: 'none' },
      h('h2', { id: 'expired-title' }, t('expired')), h('p', { class: 'muted' }, t('expired_more')), this.#signInForm()))
    const open = async () => {
      // Browsers that don't support `closedby` close the dialog on a second Escape.
      if ((await this.app.open(dialog)) !== 'signed-in' && this.app.me) open()
      else this.#expired = null
    }
    open()
  }
}
