/** Styles of dialogs and fields. */

import css from './forms.css'
import { sheet } from './sheet.js'

export const formStyles = sheet(css)
