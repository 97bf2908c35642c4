/**
 * Styles of threads.
 */

import { sheet, styles } from '../kit/sheet.js'
import { composerStyles } from './composer_style.js'

const threadStyles = sheet(`
:host(:lang(ar):not([dir])) { direction: rtl }
h2, p { margin: 0 }
.top h2 { display: inline; font-size: 1.25em; font-weight: 650 }
.top div { flex: 1; min-inline-size: 9em }
h2 span { font-weight: 400 }
.top, .bar, header, .actions, .foot { display: flex; flex-wrap: wrap; align-items: center; gap: 0 .5em }
.top :is(button, select), .foot .muted { color: var(--muted) }
.top button, .foot .muted { font-size: .8125em }
.top select { max-inline-size: 40%; field-sizing: content }
.since { display: inline-block; color: var(--accent) }
.foot .muted { margin-inline-start: auto; line-height: 28px }
section:has(.skeleton) { min-block-size: 100vh }
.skeleton { block-size: 5em; margin-block-end: 24px; border-radius: var(--radius); background: var(--hover) }
svg { inline-size: 1.125em; vertical-align: -.2em; fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }
.notice, pre, table { padding: .75em; border-radius: var(--radius); background: var(--hover) }
.notice { margin-block: 12px 24px }
.mistake { padding: .75em; border: 1px dashed }
.list { container-type: inline-size; margin-block: 24px }
article { position: relative; display: grid; grid-template-columns: 36px minmax(0, 1fr); column-gap: 12px; border-radius: var(--radius) }
article:focus { outline: 2px solid transparent }
article + article { margin-block-start: 24px }
article > .avatar { grid-area: 1 / 1; z-index: 1 }
.held > .avatar { --shown: .55 }
.held > img { opacity: .55 }
.content { grid-area: 1 / 2 }
.below { grid-area: 2 / 2 }
.replies article { grid-template-columns: 28px minmax(0, 1fr); column-gap: 10px; margin-block-start: 16px }
.replies .avatar { inline-size: 28px; block-size: 28px; font-size: 11px }
.replies .replies .below { grid-column: 1 / 3 }
.replies .replies .more { margin-inline-start: 30px }
.line { position: absolute; inset-block: 44px 0; inset-inline-start: 6px; inline-size: 24px; min-inline-size: 0 }
.line, .line:hover { background: none }
.line::before { content: ''; position: absolute; inset-block: 0; inset-inline-start: 11px; border-inline-start: 2px solid var(--line) }
.line:hover::before { border-color: var(--accent) }
.replies .line { inset-block-start: 36px; inset-inline-start: 2px }
.replies .replies .replies .line:not(:hover, :focus-visible) { opacity: 0 }
header { position: relative; min-block-size: 28px; padding-inline-end: 32px; scroll-margin: 8em; font-size: .8125em }
header b { font-size: 1.154em; font-weight: 620 }
header a { line-height: 28px; text-decoration: none }
.body, header { overflow: clip; overflow-clip-margin: .25em }
.author { background: color-mix(in srgb, var(--accent) 13%, transparent); color: var(--accent) }
.plain { white-space: pre-wrap }
.body > *, blockquote > *, li > :not(ul, ol) { margin-block: .25em .5em }
.body :is(p, li, h1, h2, h3, h4, h5, h6) { font-size: 1em; white-space: pre-line }
.body img { max-inline-size: 100%; max-block-size: 24em; block-size: auto; object-fit: contain; border-radius: 8px }
pre, table { display: block; overflow: auto; unicode-bidi: plaintext }
ul, ol { padding-inline-start: min(24px, 10%) }
blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--border); color: var(--muted) }
.actions, .more { margin-inline-start: -.5em; font-size: .8125em }
.actions { color: var(--muted) }
.actions span { padding: .25em .5em }
.like[aria-pressed=true] svg { color: var(--heart); fill: currentColor }
.more { margin-block-start: 8px; color: var(--accent); font-weight: 600 }
.fresh { position: sticky; z-index: 2; inset-block: .5em; display: block; inline-size: fit-content; margin: 0 auto -36px }
.bar { justify-content: end }
.opener { position: absolute; inset-block-start: 0; inset-inline-end: 0; color: var(--muted); font-size: 1.231em }
.opener path { stroke-width: 2 }
@container (width < 30em) {
  .replies .below { grid-column: 1 / 3 }
  .replies .more { margin-inline-start: 30px }
  .replies .replies .line:not(:hover, :focus-visible) { opacity: 0 }
}
@media (prefers-reduced-motion: no-preference) {
  .target { animation: come .15s }
  .target::before { content: ''; pointer-events: none; grid-area: 1 / 1 / 2 / 3; border-radius: var(--radius); background: var(--tint); box-shadow: 0 0 0 10px var(--tint); opacity: 0; animation: leave 2s }
  .like svg { transition: scale .2s }
  .like:active svg { scale: 1.2 }
}
@keyframes come { from { opacity: 0 } }
@keyframes leave { from { opacity: 1 } }
`)

/** All styles that readers need. The first sheet is that of `ground`, in each tree another one. */
export const readerStyles = () => [sheet(''), styles, composerStyles, threadStyles]
