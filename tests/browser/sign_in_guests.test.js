import assert from 'node:assert/strict'
import { test } from 'node:test'
import { button, people, signInFor } from './sign_in.js'
import { chooseImage, composer, newRecord, world } from './world.js'

const w = world((site) => ({ ...signInFor(site), SVC_ALLOW_GUESTS: 'true' }))
const { prove } = people(w)

test('one email field shows at a time, and a comment that a guest sends meanwhile waits for the sign-in, with its image', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await composer(page).fill('Which name?')
  await page.getByLabel('Your name').waitFor()
  await chooseImage(page)
  await page.getByLabel('Describe the image').fill('A cat')
  await button(page, 'Sign in').click()
  const form = page.getByRole('form', { name: 'Sign in' })
  await form.getByLabel('Your e-mail address').waitFor()
  await page.getByLabel('Your name').waitFor({ state: 'hidden' })
  assert.equal(await page.getByLabel('Your e-mail address').filter({ visible: true }).count(), 1)
  await page.keyboard.press('Escape')
  await page.getByLabel('Your name').waitFor()
  await button(page, 'Sign in').first().click()
  await button(page, 'Post comment').click()
  await form.getByLabel('Your e-mail address').and(page.locator(':focus')).fill('which@example.org')
  await page.keyboard.press('Enter')
  await prove(page, 'which@example.org', 'Witch', form)
  const sent = page.locator('article').filter({ hasText: 'Witch' })
  await sent.getByText('Which name?').waitFor()
  await sent.getByRole('img', { name: 'A cat' }).waitFor()
})

