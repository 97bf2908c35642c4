/**
 * Styles of threads.
 */

import { sheet } from '../kit/sheet.js'

export const threadStyles = sheet(`
h2, h3 { margin: 0; font-size: 1.125em }
.top, .bar, header, .actions { display: flex; flex-wrap: wrap; align-items: center; gap: 0 .5em }
.top { justify-content: space-between }
.top .muted { margin-inline-start: auto }
.waiting { min-block-size: 100vh }
.skeleton { block-size: 5em; margin-block-end: 1.5em; border-radius: var(--radius); background: var(--border); opacity: .3 }
[aria-pressed=true] { color: var(--accent) }
svg { inline-size: 1.125em; vertical-align: -.2em; fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }
.notice, pre, table { padding: .75em; border-radius: var(--radius); background: var(--tint) }
.list { margin-block-start: 1.5em }
.empty, .foot { text-align: center }
article:focus { outline: 2px solid transparent }
article { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: 0 .75em; margin-block-end: 1em; border-radius: var(--radius) }
article > .avatar { grid-area: 1 / 1 }
.content { grid-area: 1 / 2 }
.below { grid-column: 2 }
.replies .replies .below { grid-column: 1 / 3 }
.replies article { margin-block: 1em 0; grid-template-columns: 28px minmax(0, 1fr) }
.replies .avatar { inline-size: 28px; block-size: 28px }
.body, header { overflow-x: clip }
header a { padding: .25em 0; font-size: .875em; text-decoration: none }
.plain { white-space: pre-wrap }
.body > * { margin-block: .25em .5em; unicode-bidi: plaintext; text-align: start }
h1, h4, h5, h6, .body :is(h2, h3) { font-size: 1em }
.body :is(p, li, h1, h2, h3, h4, h5, h6) { white-space: pre-line }
.body img { max-inline-size: 100%; max-block-size: 24em }
pre, table { display: block; overflow: auto }
ul, ol { padding-inline-start: min(40px, 10%) }
blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--border); color: var(--muted) }
.actions, .more { margin-inline-start: -.5em; font-size: .875em }
.actions { color: var(--muted) }
.like[aria-pressed=true] svg { color: var(--danger); fill: currentColor }
.more { color: var(--accent) }
.fresh { position: sticky; z-index: 1; inset-block: .5em; display: block; inline-size: fit-content; margin: 0 auto -36px }
header { scroll-margin: 8em }
dialog label { display: block }
.bar { justify-content: end }
dialog .bar { margin-block-start: 1em }
.opener { margin-inline-start: auto; color: var(--muted) }
.opener path { stroke-width: 2 }
@media (prefers-reduced-motion: no-preference) {
  .target { animation: come .15s }
  .target::before { content: ''; pointer-events: none; grid-area: 1 / 1 / 2 / 3; border-radius: var(--radius); background: var(--tint); box-shadow: 0 0 0 10px var(--tint); opacity: 0; animation: leave 2s }
}
@keyframes come { from { opacity: 0 } }
@keyframes leave { from { opacity: 1 } }
`)
