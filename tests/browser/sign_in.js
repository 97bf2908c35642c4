/** Code shared by the sign-in tests: codes from emails, and sessions. */

import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('playwright-core').Locator} Locator */

/** Returns the settings of a service whose readers sign in with codes, on a site's pages. @param {import('./world.js').Site} site */
export const signInFor = (site) => ({
  SVC_SIGN_IN: 'true',
  SVC_MAIL_FROM: 'comments@example.org',
  SVC_PUBLIC_URL: 'https://api.example.org',
  SVC_CORS_ORIGINS: `${site.url},${elsewhere(site)}`,
  SVC_SITE_NAME: 'A blog',
})

/** Returns the site's address under another host name, which browsers treat as another site. @param {import('./world.js').Site} site */
export const elsewhere = ({ url }) => `${url}`.replace('127.0.0.1', 'localhost')

/** Sign-ins are limited per network, so each test has a separate network. */
let networks = 10

/** @param {ReturnType<typeof import('./world.js').world>} w */
export function people(w) {
  /** @type {Set<string | undefined>} */
  const used = new Set([undefined])

  /** Waits for the next code sent to an address. @param {string} email @returns {Promise<string>} */
  async function codeFor(email) {
    for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 20))) {
      const page = await (await fetch(new URL('/_mail', w.service.api))).text()
      const codes = page.split('<article>').filter((mail) => mail.includes(`<p>${email}</p>`)).map((mail) => mail.match(/\b\d{8}\b/)?.[0])
      const code = codes.find((code) => !used.has(code))
      if (!code) continue
      used.add(code)
      return code
    }
    throw new Error(`no code for ${email}`)
  }

  /** @param {string} localAddress @param {string} method @param {string} path @param {object} body @param {string} [token] @returns {Promise<any>} */
  async function call(localAddress, method, path, body, token) {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const asked = request(`${w.service.api}/${path}`, { method, localAddress, headers })
    asked.end(JSON.stringify(body))
    const [response] = await once(asked, 'response')
    const answer = await text(response)
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${answer}`)
    return answer && JSON.parse(answer).data
  }

  /** Signs in outside the page, and returns the session. @param {string} email @param {string | null} [name] @returns {Promise<any>} */
  async function session(email, name = 'Ada') {
    const network = `127.0.2.${(networks += 1)}`
    const { flow } = await call(network, 'POST', 'sign_in', { email })
    const session = await call(network, 'POST', 'sign_in/finish', { flow, code: await codeFor(email) })
    if (name) session.user = await call(network, 'PUT', 'me/name', { name }, session.access_token)
    return session
  }

  /** Returns the key under which a page stores its session. */
  const key = () => `comment-thread ${w.service.api}/ session`

  /** Returns a script that stores this session for a page, once. @param {any} session @param {number} [seconds] until its token expires */
  const keeping = (session, seconds = 600) => {
    const kept = JSON.stringify({ ...session, until: Date.now() + seconds * 1000 })
    return `try { localStorage.given ??= (localStorage[${JSON.stringify(key())}] = ${JSON.stringify(kept)}, 1) } catch {}`
  }

  /** Returns the session that a page has stored. @param {Page} page */
  const kept = async (page) => JSON.parse((await page.evaluate((key) => localStorage[key], key())) || 'null')

  /** Makes the token of a page's stored session expire. @param {Page} page @param {any} session */
  const expire = (page, session) =>
    page.evaluate(([key, kept]) => void (localStorage[key] = kept), [key(), JSON.stringify({ ...session, until: 1 })])

  /** Enters the code for an address and chooses a name. @param {Page} page @param {string} email @param {string} name @param {Page | Locator} [place] of the form */
  async function prove(page, email, name, place = page) {
    await place.getByLabel('Code from the email').fill(await codeFor(email))
    await page.keyboard.press('Enter')
    await chooseName(page, name, place)
  }

  return { codeFor, session, keeping, kept, key, expire, prove }
}

/** @param {Page} page @param {string} name @param {Page | Locator} [place] of the form */
export async function chooseName(page, name, place = page) {
  await place.getByLabel('Your public name').fill(name)
  await page.keyboard.press('Enter')
}

/** Blocks third-party storage for a page, which is a setting of some browsers. @param {Page} page */
export async function blockThirdParties(page) {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.setCookieControls', { enableThirdPartyCookieRestriction: true })
}

/** Waits until this element has the focus. @param {Locator} element */
export const focused = (element) => element.and(element.page().locator(':focus')).waitFor()

/** @param {Page} page @param {string} name */
export const button = (page, name) => page.getByRole('button', { name, exact: true })

/** @param {Page} page */
export const withGitHub = (page) => button(page, 'Sign in with GitHub')

/** Consents or cancels at GitHub. @param {Page} page @param {'Authorize' | 'Cancel'} [answer] */
export const decide = (page, answer = 'Authorize') => page.getByRole('link', { name: answer }).click()

/** @param {Page} page */
export async function signInWithGitHub(page) {
  await withGitHub(page).click()
  await decide(page)
}

/** @param {Page} page */
export const failure = (page) => page.getByRole('alert').getByText("Signing in didn't work. Please try again.")

/** @param {Page} page @param {string} email */
export async function askForCode(page, email) {
  await page.getByRole('button', { name: 'Sign in', exact: true }).first().click()
  await page.getByRole('form', { name: 'Sign in' }).getByLabel('Your e-mail address').fill(email)
  await page.keyboard.press('Enter')
  await page.getByLabel('Code from the email').waitFor()
}
