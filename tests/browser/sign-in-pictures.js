/** Saves screenshots of signing in with a code in `target/pictures`, for review. Run by `npm run pictures`. */

import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { moderatorsPage } from './moderators_page.js'
import { people, signInFor } from './sign_in.js'
import { newRecord, token, world } from './world.js'

const TARGET = new URL('../../target/pictures/', import.meta.url).pathname
mkdirSync(TARGET, { recursive: true })

/** @typedef {import('playwright-core').Page} Page */

const members = world(signInFor)
const guests = world((site) => ({ ...signInFor(site), SVC_ALLOW_GUESTS: 'true' }))
const moderated = world({ SVC_MODERATORS: 'email:owner@example.org' }, ['--sign-in'])
const [member, moderator] = [people(members), people(moderated)]
const headers = { 'access-control-allow-origin': '*' }
const user = { id: 4503599627370497, name: null, avatar: '' }
const refusal = { message: '', code: 'sign_in_failed', errors: {} }
const LONG = 'a.rather.long.name.of.somebody@mail.example.org'

/** Mocks the sign-in endpoints, and refuses the first code. @param {Page} page */
async function answered(page) {
  let tries = 0
  await page.route(/^https:/, (route) => route.abort())
  await page.route(/\/sign_in$/, (route) => route.fulfill({ status: 201, headers, json: { data: { flow: 'x', expires_in: 600 } } }))
  await page.route(/sign_in\/finish$/, (route) =>
    tries++ ? route.fulfill({ headers, json: { data: { access_token: 'x', refresh_token: 'x', expires_in: 600, user } } }) : route.fulfill({ status: 422, headers, json: refusal }),
  )
}

/** @param {typeof members} w */
async function conversation(w) {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'I keep coming back to the second figure. Is the dip in the data?', { who: token(32, 'Emil Noether') })
  await w.service.comment(record, 'In the data: two of the stations were flooded that spring.', { who: token(31, 'Mary Anning'), parent: id })
  return record
}

/** Takes screenshots of each step of signing in. @param {Page} page @param {string} name of the form @param {(state: string) => Promise<any>} take */
async function walk(page, name, take) {
  const form = page.getByRole('form', { name }).first()
  await form.waitFor()
  await take('address')
  await form.locator('input').fill(LONG)
  await page.keyboard.press('Enter')
  await page.locator('[autocomplete=one-time-code]').waitFor()
  await take('code')
  await page.keyboard.type('1234 5678')
  await page.keyboard.press('Enter')
  await form.getByRole('alert').getByText(/./).waitFor()
  await take('wrong')
  await page.keyboard.press('Enter')
  await form.locator('[autocomplete=name]').waitFor()
  await take('name')
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const [size, viewport] of Object.entries({ wide: { width: 800, height: 900 }, narrow: { width: 320, height: 800 } })) {
    const look = `${colorScheme}-${size}`
    const context = { colorScheme, viewport }
    const taking = (/** @type {Page} */ page, /** @type {string} */ of) => async (/** @type {string} */ state) => {
      await page.waitForTimeout(200)
      await page.screenshot({ path: `${TARGET}sign-in-${of}${state}-${look}.png`, fullPage: true })
    }

    for (const [of, lang, dir, name] of [['', 'en', 'ltr', 'Sign in'], ['rtl-', 'ar', 'rtl', 'تسجيل الدخول']]) {
      test(`the form, ${look}, ${lang}`, async (t) => {
        const { page } = await members.open(t, { record: await conversation(members), lang, dir, context, prepare: answered })
        const take = taking(page, of)
        await take('stranger')
        await page.locator('textarea').first().fill('Who would have thought?')
        await page.getByRole('button', { name, exact: true }).first().click()
        await walk(page, name, take)
      })
    }

    test(`the session, ${look}`, async (t) => {
      const record = await conversation(members)
      const unnamed = await member.session(`unnamed-${look}@example.org`, null)
      const named = await member.session(`named-${look}@example.org`, 'Ada Lovelace')
      for (const [state, one, seconds] of /** @type {const} */ ([['unnamed', unnamed, 600], ['named', named, 600], ['ended', { ...named, refresh_token: 'x' }, -1]])) {
        const { page } = await members.open(t, { record, context, init: member.keeping(one, seconds) })
        if (state !== 'ended') {
          await page.getByPlaceholder('Write a comment…').fill('Who would have thought?')
          await page.locator('.me').click()
          await page.getByRole('menuitem', { name: 'Sign out', exact: true }).waitFor()
        }
        await taking(page, '')(state)
      }
    })

    test(`guests may write, ${look}`, async (t) => {
      const { page } = await guests.open(t, { record: await conversation(guests), context })
      await page.getByPlaceholder('Write a comment…').fill('Who would have thought?')
      await page.getByRole('button', { name: 'Sign in', exact: true }).first().click()
      await page.getByRole('form', { name: 'Sign in' }).waitFor()
      await taking(page, '')('guest')
    })

    test(`a reply, ${look}`, async (t) => {
      const { page } = await members.open(t, { record: await conversation(members), context })
      await page.getByRole('button', { name: 'Reply' }).last().click()
      await page.getByRole('form', { name: 'Sign in' }).waitFor()
      await taking(page, '')('reply')
    })

    test(`the moderators’ page, ${look}`, async (t) => {
      const { open } = moderatorsPage(moderated)
      const { page } = await open(t, { context, prepare: answered })
      await walk(page, 'Sign in', taking(page, 'moderate-'))
      const stranger = await moderator.session(`stranger-${look}@example.org`, 'Sam')
      const { page: refused } = await open(t, { context, prepare: (page) => page.addInitScript(moderator.keeping(stranger)) })
      await refused.locator('code').waitFor()
      await taking(refused, 'moderate-')('refused')
      const owner = await moderator.session('owner@example.org', null)
      await moderated.service.comment(newRecord(), 'A comment.')
      const { page: inside } = await open(t, { context, prepare: (page) => page.addInitScript(moderator.keeping(owner)) })
      await inside.locator('article').first().waitFor()
      await taking(inside, 'moderate-')('inside')
      await inside.locator('.me').click()
      await taking(inside, 'moderate-')('account')
    })
  }
}
