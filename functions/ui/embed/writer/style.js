/** Styles of what only writers see. */

import { formStyles } from '../kit/forms.js'
import { sheet } from '../kit/sheet.js'
import { places } from './popover.js'
import css from './writer.css'

const writerStyles = sheet(css)

/** Gives a thread what writers need. */
export function dress({ root }) {
  const { adoptedStyleSheets: sheets } = root
  if (!sheets.includes(places)) sheets.push(formStyles, writerStyles, places)
}
