import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choose, MAIL, newRecord, token, violations, world } from './world.js'

const w = world({ SVC_ALLOW_GUESTS: 'true', SVC_GUEST_REQUIRE_EMAIL: 'false', SVC_GUEST_SHOW_GRAVATAR: 'false', ...MAIL })

const member = (/** @type {number} */ id) => token(id, 'Ada', { email: `ada${id}@example.org` })

/** Returns the service's local URL for a link in an email. @param {string} mail @param {RegExp} purpose */
const linkIn = (mail, purpose) => `${w.service.api}/mail/${mail.match(new RegExp(`api.example.org/svc/api/v1/mail/(${purpose.source}[^\\s&"]+)`))?.[1]}`

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`a guest subscribes with an address and confirms it, in ${colorScheme} colors`, async (t) => {
    const address = `zoe-${colorScheme}@example.org`
    const { page, context, errors } = await w.open(t, { record: newRecord(), context: { colorScheme, reducedMotion: 'reduce' } })
    const email = page.getByLabel('Your e-mail address')
    await page.getByPlaceholder('Write a comment…').fill('Hello.')
    await page.getByLabel('Your name').fill('Zoë')
    assert.equal(await email.evaluate((/** @type {HTMLInputElement} */ input) => input.required), false)
    await page.getByLabel('Notify me of replies').check()
    await page.getByRole('button', { name: 'Post comment' }).click()
    await page.locator('input[inputmode=email][aria-invalid=true]').waitFor()
    assert.deepEqual(await violations(page, 'comment-thread'), [])
    await email.fill(address)
    await page.getByRole('button', { name: 'Post comment' }).click()
    await page.getByRole('status').getByText('Check your inbox to confirm your address').waitFor()
    const mail = await w.service.mailTo(address)
    const confirm = await context.newPage()
    await confirm.goto(linkIn(mail, /c/))
    await confirm.getByRole('button', { name: 'Confirm address' }).click()
    await confirm.getByText('Your address is confirmed.').waitFor()
    await confirm.goto(linkIn(mail, /s/))
    await confirm.getByRole('button', { name: 'Unsubscribe from everything' }).click()
    await confirm.getByText("You've unsubscribed from everything.").waitFor()
    assert.deepEqual(errors, [])
  })

  test(`a member chooses emails in a dialog and has the address deleted, in ${colorScheme} colors`, async (t) => {
    const who = member(colorScheme === 'light' ? 20 : 21)
    const { page, errors } = await w.open(t, { record: newRecord(), who, context: { colorScheme, reducedMotion: 'reduce' } })
    const open = page.getByRole('button', { name: 'Notifications' })
    const dialog = page.getByRole('dialog')
    const save = dialog.getByRole('button', { name: 'Save' })
    await open.click()
    await dialog.getByText("You're not subscribed to email notifications.").waitFor()
    assert.equal(await dialog.getByRole('checkbox').count(), 3)
    await dialog.getByLabel('Replies to my comments').check()
    assert.deepEqual(await violations(page, 'comment-thread'), [])
    await save.click()
    await page.getByRole('status').getByText(/We send notifications to: a•••@example\.org/).waitFor()
    assert.ok(await open.evaluate((button) => button.matches(':focus')), 'the focus returns')
    await open.click()
    await dialog.getByText('We send notifications to').waitFor()
    const chosen = await dialog.getByRole('checkbox').evaluateAll((boxes) => boxes.map((box) => /** @type {HTMLInputElement} */ (box).checked))
    assert.deepEqual(chosen, [true, false, false, false])
    await dialog.getByLabel('Delete my address and unsubscribe').check()
    await save.click()
    await page.getByRole('status').getByText("You're not subscribed to email notifications.").waitFor()
    const { data } = await w.service.call('GET', 'me/notifications', who)
    assert.deepEqual(data, { email: null, state: 'off', replies: false, mentions: false, own_records: false })
    assert.deepEqual(errors, [])
  })
}

test('a member without an address gets a message, and the dialog stays open', async (t) => {
  const { page } = await w.open(t, { record: newRecord(), who: token(22, 'Eve') })
  await page.getByRole('button', { name: 'Notifications' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').getByText('No email address is known').waitFor()
  assert.ok(await page.getByRole('dialog').isVisible())
})

test('an edit has no box to subscribe, and guests have no switches', async (t) => {
  const who = member(23)
  const { page, record, id } = await w.open(t, { comment: 'Hello.', by: who, who })
  await page.getByPlaceholder('Write a comment…').focus()
  await page.getByLabel('Notify me of replies').waitFor()
  await choose(page, id, 'Edit')
  await page.locator('article').getByRole('button', { name: 'Bold' }).waitFor()
  assert.equal(await page.getByLabel('Notify me of replies').count(), 1)
  const guest = await w.open(t, { record })
  assert.equal(await guest.page.getByRole('button', { name: 'Notifications' }).count(), 0)
})

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`axe finds nothing in the pages of links, in ${colorScheme} colors`, async (t) => {
    const address = `pages-${colorScheme}@example.org`
    const fields = { body: 'Hello.', guest_name: 'Zoë', guest_email: address, subscribe_to_replies: true }
    await w.service.call('POST', `posts/${newRecord()}/comments`, null, fields)
    const mail = await w.service.mailTo(address)
    // The pages' policy allows no scripts, not even axe.
    const context = await w.browser.newContext({ colorScheme, bypassCSP: true, viewport: { width: 320, height: 640 } })
    t.after(() => context.close())
    const page = await context.newPage()
    for (const [link, action, done] of /** @type {const} */ ([
      [linkIn(mail, /c/), 'Confirm address', 'Your address is confirmed.'],
      [linkIn(mail, /s/), 'Unsubscribe from everything', "You've unsubscribed from everything."],
      [`${w.service.api}/mail/x`],
    ])) {
      await page.goto(link)
      assert.deepEqual(await violations(page, 'html'), [])
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing scrolls sideways')
      if (!action) continue
      await page.getByRole('button', { name: action }).click()
      await page.getByText(done).waitFor()
      assert.deepEqual(await violations(page, 'html'), [])
    }
  })
}
