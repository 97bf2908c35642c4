/** Styles of threads. */

import { sheet, styles } from '../kit/sheet.js'
import composer from './composer.css'
import thread from './thread.css'

const threadStyles = sheet(composer + thread)

/** Returns all styles that readers need. Each tree has its own first sheet, because `showGround` sets it. */
export const readerStyles = () => [sheet(''), styles, threadStyles]
