/** Reports a comment to the moderators. */

import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { ask } from './dialog.js'

export function report(view) {
  const { thread, comment } = view
  const { say, ui } = thread
  if (comment.reported) return
  const label = say('report_details')
  const details = h('textarea', { name: 'additional_details', maxlength: ui.limits.report_details, 'aria-label': label, placeholder: label })
  const reasons = ui.report_reasons.map((value, place) =>
    h('label', {}, h('input', { type: 'radio', name: 'reason', value, checked: !place }), ` ${say(value)}`),
  )
  ask(thread, say('report_reason'), [...reasons, details], say('report'), async (chosen) => {
    await thread.write('POST', `comments/${comment.id}/report`, json(Object.fromEntries(chosen))).catch((error) => {
      if (error.code !== 'already_reported') throw error
    })
    comment.reported = true
    thread.toast.show(say('report_thanks'))
  })
}
