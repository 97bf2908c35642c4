/**
 * Adds images that are chosen, pasted or dropped. If they come with text, only the text is inserted. Each image is shown as a chip
 * with its upload progress, and then with a field for its description. Sending inserts the images as Markdown paragraphs where the
 * caret was.
 * @import { Editor } from '../types.d.ts'
 */

import { ApiError } from '../kit/api.js'
import { newKey } from '../kit/base64url.js'
import { button, drawing, h } from '../kit/dom.js'
import { inertBody } from '../kit/html.js'
import { withoutBlankEnds } from './typing.js'
import { sendWith } from './upload.js'

const CROSS = 'M4 4l8 8M12 4l-8 8'

/** Draws a thumbnail on a canvas, because an image element needs a URL, which a page's policy may forbid. @param {File} file */
function thumbnail(file) {
  const canvas = h('canvas', { width: 88, height: 88 })
  createImageBitmap(file).then(
    (bitmap) => {
      const { width, height } = bitmap
      const size = Math.min(width, height)
      canvas.getContext('2d')?.drawImage(bitmap, (width - size) / 2, (height - size) / 2, size, size, 0, 0, 88, 88)
    },
    () => {},
  )
  return canvas
}

/** A visible character. U+FFFC, the placeholder for an image, doesn't count. */
const VISIBLE = /[^\s\p{Cf}\ufffc]/u
/** The folders of an absolute path. */
const FOLDERS = /^(\w:|(?=[/\\])).*[/\\]/

/**
 * Whether pasted or dropped data has words besides images, as from word processors and spreadsheets. HTML that only shows an image
 * doesn't count, and neither does text that is only the image's URL, a file's URL, or the name or path of one of these files.
 * Inserts words that exist only as HTML, because the browser wouldn't. Common blocks and cells become lines.
 * @param {DataTransfer} source @param {File[]} files @param {(words: string) => void} insert
 */
function hasWords(source, files, insert) {
  const html = source.getData('text/html')
  const body = inertBody(html.replace(/\s+/g, ' '))
  body?.querySelectorAll('script, title, style').forEach((hidden) => hidden.remove())
  body?.querySelectorAll('p, h2, h3, div, h1, tr, td, br, pre, li, th').forEach((line) => line.replaceWith('\n', line, '\n'))
  const isAddress = (line) => (html ? /^\w+:\S+$/ : /^(file|data|blob):\S+$/).test(line)
  const isWords = (line) => VISIBLE.test(line) && !isAddress(line) && !files.some(({ name }) => line.replace(FOLDERS, '') === name)
  const plain = source.getData('text')
  const words = body && VISIBLE.test(body.textContent)
  if (!plain && words) insert(body.textContent.split('\n').map((line) => line.trim()).filter(Boolean).join('\n'))
  return words || plain.split(/[\r\n]/).some((line) => isWords(line.trim()))
}

/** @param {Editor} editor */
export function images({ thread, text, chips: element, fallible, insert }) {
  const { say, ui } = thread
  const file = h('input', { type: 'file', accept: 'image/*', multiple: true, change: choose })
  /** @returns {any[]} */
  const chips = () => [...element.children]
  /** The images of the comment that is being sent. Images added meanwhile stay for the next comment. */
  let sending = chips()
  let before = text.value
  text.addEventListener('input', follow)

  /** Moves each image with the text around it. If that text is replaced, the image goes to the end of the line. */
  function follow() {
    const { value, selectionEnd } = text
    for (const chip of chips()) {
      if (value.startsWith(before.slice(0, chip.place))) continue
      const after = before.slice(chip.place)
      chip.place = value.endsWith(after) ? value.length - after.length : selectionEnd
      chip.isLoose ||= chip.place === selectionEnd
    }
    before = value
  }

  function take(event, source) {
    const images = [...source.files].filter(({ type }) => type.startsWith('image/'))
    if (hasWords(source, images, insert) || !images.length || !ui.features.media) return
    event.preventDefault()
    upload(images)
  }

  function choose() {
    upload(file.files)
    file.value = ''
  }

  function upload(images) {
    for (const image of images) fallible(() => add(image))
  }

  /** Returns the error for an image above the size limit. */
  function tooLarge() {
    const limit = (ui.limits.media_bytes / 2 ** 20).toLocaleString(thread.language, { style: 'unit', unit: 'megabyte' })
    return new ApiError(413, { message: say('payload_too_large').replace('{limit}', limit) })
  }

  async function add(image) {
    if (image.size > ui.limits.media_bytes) throw tooLarge()
    const gone = new AbortController()
    const progress = h('progress', { value: 0, 'aria-label': say('uploading') })
    const remove = () => {
      gone.abort()
      // A rebuilt composer has a different text field.
      chip.closest('form')?.querySelector('textarea')?.focus()
      chip.remove()
    }
    /**
     * `place` is the position of the image in the text. `arrive` waits for the upload, and resolves to a function that
     * returns the Markdown.
     * @type {HTMLElement & { place?: number, arrive?: () => Promise<() => string> }}
     */
    const chip = h('div', { class: 'chip' }, thumbnail(image), h('div', {}, h('span', {}, image.name), progress), button(drawing(CROSS), { 'aria-label': `${say('delete')}: ${image.name}`, click: remove }))
    const body = new FormData()
    body.append('file', image)
    const send = sendWith((share) => (progress.value = share))
    const headers = { 'Idempotency-Key': newKey() }
    const start = () => thread.write('POST', 'media', { body, headers, signal: gone.signal, timeout: 600_000, send }).then(({ url }) => {
      const label = say('image_description')
      const description = h('input', { 'aria-label': label, placeholder: label, maxlength: 300, keydown: (event) => event.key === 'Enter' && event.preventDefault() })
      progress.replaceWith(description)
      return () => `![${description.value.replace(/[\\[\]]/g, '\\$&')}](${url})`
    }, (error) => {
      // After a temporary failure, the image stays as a chip, and sending the comment uploads it again.
      sent = undefined
      if (gone.signal.aborted) return
      if (!/^(0|401|429|5..)$/.test(error.status)) chip.remove()
      throw error.status === 413 ? tooLarge() : error
    })
    /** @type {Promise<any> | undefined} */
    let sent = start()
    chip.place = text.selectionEnd
    chip.arrive = () => (sent ??= start())
    element.append(chip)
    await sent
  }

  /** Returns the text with the images, once all of them are uploaded. */
  async function insertInto(body) {
    const images = (sending = chips())
    // Moves an image out of a word, a mention or an address, and to the end of a line in which it follows Markdown.
    for (const chip of images) {
      const rest = chip.isLoose ? /.*/y : /(?<=^(.*[*_`~[|]|\s*[>#+\d-]).*).*|(?<=\S)\S+|/muy
      rest.lastIndex = chip.place
      rest.test(body)
      chip.place = rest.lastIndex
    }
    const arrived = await Promise.all(images.sort((a, b) => a.place - b.place).map((chip) => chip.arrive()))
    let from = 0
    const parts = arrived.flatMap((markdownOf, at) => [body.slice(from, (from = images[at].place)), images[at].parentNode ? markdownOf() : ''])
    return [...parts, body.slice(from)].map(withoutBlankEnds).filter(Boolean).join('\n\n')
  }

  return { take, insertInto, clear: () => sending.forEach((chip) => chip.remove()), choose: () => file.click() }
}
