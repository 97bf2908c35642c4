/** Styles of threads. */

import { sheet, styles } from '../kit/sheet.js'
import composer from './composer.css'
import thread from './thread.css'

const threadStyles = sheet(composer + thread)

/** All styles that readers need. The first sheet is separate in each tree, because `showGround` sets it. */
export const readerStyles = () => [sheet(''), styles, threadStyles]
