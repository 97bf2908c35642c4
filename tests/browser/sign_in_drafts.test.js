import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askForCode, button, focused, people, signInFor } from './sign_in.js'
import { composer, newRecord, rebuilding, world } from './world.js'

const w = world(signInFor)
const { prove } = people(w)

test('a visitor who replies to a comment signs in below it, and continues there', async (t) => {
  const { page, id } = await w.open(t, { comment: 'First.' })
  await page.locator(`#comment-${id}`).getByRole('button', { name: 'Reply' }).click()
  const form = page.locator(`#comment-${id} form`)
  await form.getByLabel('Your e-mail address').fill('answer@example.org')
  await page.keyboard.press('Enter')
  await prove(page, 'answer@example.org', 'Answerer', form)
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
  await prove(page, 'later@example.org', 'Later', reply)
  await focused(reply.getByPlaceholder('Write a reply…'))
})

test('a draft from before the page was loaded stays with the member who signs in', async (t) => {
  const { page } = await w.open(t, { record: newRecord() })
  await composer(page).fill('From yesterday.')
  await page.reload()
  await askForCode(page, 'yesterday@example.org')
  await prove(page, 'yesterday@example.org', 'Yves')
  await focused(button(page, 'Yves'))
  assert.equal(await composer(page).inputValue(), 'From yesterday.')
})

for (const place of ['thread', 'comment']) {
  test(`an open sign-in form of a ${place} keeps its step and input when the thread is rendered again`, async (t) => {
    const record = newRecord()
    const { id } = await w.service.comment(record, 'First.')
    const { page, thread } = await w.open(t, { record, hash: `#comment-${id}` })
    const email = `${place}@example.org`
    const form = page.locator('form.sign-in')
    const render = (/** @type {string} */ sort) => rebuilding(page, () => thread.evaluate((element, sort) => element.setAttribute('sort', sort), sort))
    if (place === 'thread') await button(page, 'Sign in').first().click()
    else await page.locator(`#comment-${id}`).getByRole('button', { name: 'Reply' }).click()
    const address = form.getByLabel('Your e-mail address')
    await address.fill(email)
    await render('oldest')
    assert.equal(await address.inputValue(), email)
    await address.press('Enter')
    const code = form.getByLabel('Code from the email')
    await code.fill('1234')
    await render('newest')
    assert.equal(await code.inputValue(), '1234')
    if (place === 'thread') await focused(code)
    await prove(page, email, 'Ina', form)
    await button(page, 'Ina').waitFor()
    await form.waitFor({ state: 'detached' })
    if (place === 'comment') await page.getByPlaceholder('Write a reply…').waitFor()
  })
}

test('a sign-in form below a comment can be closed after the thread was rendered again', async (t) => {
  const { page, id, thread } = await w.open(t, { comment: 'First.' })
  await page.locator(`#comment-${id}`).getByRole('button', { name: 'Reply' }).click()
  const form = page.locator(`#comment-${id} form`)
  const sorted = page.waitForResponse(/sort=oldest/)
  await form.getByLabel('Your e-mail address').waitFor()
  await thread.evaluate((element) => element.setAttribute('sort', 'oldest'))
  await sorted
  await form.getByLabel('Your e-mail address').press('Escape')
  await form.waitFor({ state: 'detached' })
})
