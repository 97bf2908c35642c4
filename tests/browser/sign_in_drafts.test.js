import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askForCode, people, signInFor } from './sign_in.js'
import { newRecord, world } from './world.js'

const w = world(signInFor)
const { codeFor } = people(w)

/** @typedef {import('playwright-core').Page} Page */

const composer = (/** @type {Page} */ page) => page.getByPlaceholder('Write a comment…')
const button = (/** @type {Page} */ page, /** @type {string} */ name) => page.getByRole('button', { name, exact: true })

/** Enters the code for an address and chooses a name. @param {Page} page @param {Page | import('playwright-core').Locator} place of the form @param {string} email @param {string} name */
async function prove(page, place, email, name) {
  await place.getByLabel('Code from the email').fill(await codeFor(email))
  await page.keyboard.press('Enter')
  await place.getByLabel('Your public name').fill(name)
  await page.keyboard.press('Enter')
}

test('a visitor who replies to a comment signs in below it, and continues there', async (t) => {
  const record = newRecord()
  const { id } = await w.service.comment(record, 'First.')
  const { page } = await w.open(t, { record })
  await page.locator(`#comment-${id}`).getByRole('button', { name: 'Reply' }).click()
  const form = page.locator(`#comment-${id} form`)
  await form.getByLabel('Your e-mail address').fill('answer@example.org')
  await page.keyboard.press('Enter')
  await prove(page, form, 'answer@example.org', 'Answerer')
  await form.getByPlaceholder('Write a reply…').fill('Second.')
  await form.getByRole('button', { name: 'Reply' }).click()
  await page.locator('article article').getByText('Second.').waitFor()
})

test('a visitor who replies to a comment that the page has loaded later continues there, too', async (t) => {
  const record = newRecord()
  const { id: parent } = await w.service.comment(record, 'First.')
  const replies = []
  for (let n = 0; n < 5; n++) replies.push(await w.service.comment(record, `Reply ${n}.`, { parent }))
  const { id } = replies[4]
  const { page } = await w.open(t, { record })
  await page.getByRole('button', { name: '2 more replies' }).click()
  const reply = page.locator(`#comment-${id}`)
  await reply.getByRole('button', { name: 'Reply' }).click()
  await reply.getByLabel('Your e-mail address').fill('later@example.org')
  await page.keyboard.press('Enter')
  await prove(page, reply, 'later@example.org', 'Later')
  await reply.getByPlaceholder('Write a reply…').and(page.locator(':focus')).waitFor()
})

test('a draft from before the page was loaded stays with the member who signs in', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await composer(page).fill('From yesterday.')
  await page.reload()
  await askForCode(page, 'yesterday@example.org')
  await prove(page, page, 'yesterday@example.org', 'Yves')
  await button(page, 'Yves').and(page.locator(':focus')).waitFor()
  assert.equal(await composer(page).inputValue(), 'From yesterday.')
})
