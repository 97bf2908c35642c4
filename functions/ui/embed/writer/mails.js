/** The dialog where members choose which emails they receive. */

import { h } from '../kit/dom.js'
import { json } from '../kit/json.js'
import { ask } from './dialog.js'

const NOTICES = ['replies', 'mentions', 'own_records']

export async function chooseMails(thread) {
  const { say, api } = thread
  const path = 'me/notifications'
  const stateOf = ({ state = 'off', email }) => `${say(`mail_${state}`)} ${email ?? ''}`
  const { data } = await api.get(path)
  const box = (name) => h('label', {}, h('input', { type: 'checkbox', name, checked: data[name] }), ` ${say(`notify_${name}`)}`)
  const fields = [...NOTICES.map(box), data.email && box('forget'), h('p', { class: 'muted' }, stateOf(data))]
  ask(thread, say('notifications'), fields, say('save'), async (chosen) => {
    const body = Object.fromEntries(NOTICES.map((name) => [name, chosen.has(name)]))
    const answer = await (chosen.has('forget') ? thread.write('DELETE', path) : thread.write('PUT', path, json(body)))
    thread.toast.show(stateOf(answer?.data ?? {}))
  })
}
