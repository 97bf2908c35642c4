/** Styles of dialogs and fields. */

import { sheet } from './sheet.js'

export const formStyles = sheet(`
dialog { inline-size: min(26em, 90%); padding: 1em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface); color: var(--text) }
input:not([type=radio], [type=checkbox]), dialog :is(select, textarea) { min-block-size: 36px; padding: .25em .75em; border: 1px solid var(--border) }
`)
