/** Styles that only writers need. */

import { formStyles } from '../kit/forms.js'
import { sheet } from '../kit/sheet.js'
import { places } from './popover.js'
import css from './writer.css'

const writerStyles = sheet(css)

/** Adds the styles that writers need to a thread. */
export function dress({ root }) {
  const { adoptedStyleSheets: sheets } = root
  if (!sheets.includes(places)) sheets.push(formStyles, writerStyles, places)
}
