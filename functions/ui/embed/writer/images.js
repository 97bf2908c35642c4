/**
 * Uploads of images that are chosen, pasted or dropped.
 * @import { Editor } from '../types.d.ts'
 */

import { ApiError } from '../kit/api.js'
import { h } from '../kit/dom.js'
import { newKey } from './key.js'

/** @param {Editor} editor */
export function images({ thread, text, insert, fallible }) {
  const { api, say, ui } = thread
  const file = h('input', { type: 'file', accept: 'image/*', change: (event) => take(event, file) })

  function take(event, source) {
    const images = [...source.files].filter(({ type }) => type.startsWith('image/'))
    if (!images.length || !ui.features.media) return
    event.preventDefault()
    images.forEach((image) => fallible(() => upload(image)))
  }

  async function upload(image) {
    if (image.size > ui.limits.media_bytes) throw new ApiError(0, { code: 'payload_too_large' })
    const place = `![${say('uploading')} ${image.name.replace(/[[\]]/g, '')}]()`
    insert(place)
    let uploaded = ''
    try {
      const body = new FormData()
      body.append('file', image)
      uploaded = `![${say('image_description')}](${(await api.request('POST', 'media', { body, key: newKey() })).url})`
    } finally {
      const start = text.value.indexOf(place)
      const isHere = text.selectionStart === start + place.length
      if (start >= 0) text.setRangeText(uploaded, start, start + place.length, 'preserve')
      if (isHere) text.setSelectionRange(start + 2, start + Math.max(2, uploaded.indexOf(']')))
      text.dispatchEvent(new Event('input'))
    }
  }

  return { take, choose: () => file.click() }
}
