/**
 * Styles of threads.
 */

import { sheet } from '../kit/sheet.js'

export const threadStyles = sheet(`
section { overflow-x: clip; overflow-clip-margin: 4px }
h2, h3 { margin: 0; font-size: 1.125em }
.top, .bar, header, .actions, .guest, .toolbar { display: flex; flex-wrap: wrap; align-items: center; gap: 0 .5em }
.top { justify-content: space-between }
.top .muted { margin-inline-start: auto }
.waiting { min-block-size: 100vh }
.skeleton { block-size: 5em; margin-block-end: 1.5em; border-radius: var(--radius); background: var(--border); opacity: .3 }
.editor { position: relative; margin-block: .75em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface) }
.editor:focus-within { border-color: var(--accent) }
textarea, .preview { display: block; inline-size: 100%; min-block-size: 6em; padding: .75em }
textarea { max-block-size: 60vh; resize: vertical; field-sizing: content }
.editor textarea { outline: 0 }
.editor > :not(textarea, .preview) { margin: 0; padding: .25em .5em .5em }
.guest input { flex: 1 1 9em }
.error:empty { display: none }
.toolbar { flex: 1 1 14em; gap: 0; color: var(--muted) }
[aria-pressed=true] { color: var(--accent) }
.editor .people { position: absolute; z-index: 1; inset-block-start: 4em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface) }
.people div { display: flex; align-items: center; gap: .5em; padding: .25em .5em; cursor: pointer }
[aria-selected=true] { background: var(--tint) }
svg { inline-size: 1.125em; vertical-align: -.2em; fill: none; stroke: currentColor; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }
.notice, pre, table { padding: .75em; border-radius: var(--radius); background: var(--tint) }
.list { margin-block-start: 1.5em }
.empty, .foot { text-align: center }
article { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: 0 .75em; margin-block-end: 1em; border-radius: var(--radius) }
.target > .content { background: var(--tint) }
.below { grid-column: 2 }
.replies .replies .below { grid-column: 1 / 3 }
.replies article { margin-block: 1em 0; grid-template-columns: 28px minmax(0, 1fr) }
.replies .avatar, .people .avatar { inline-size: 28px; block-size: 28px }
header a { padding: .25em 0; font-size: .875em; text-decoration: none }
.plain { white-space: pre-wrap }
.body > * { margin-block: .25em .5em; unicode-bidi: plaintext; text-align: start }
h1, h4, h5, h6, .body :is(h2, h3) { font-size: 1em }
.body img { max-inline-size: 100%; block-size: 14em; object-fit: scale-down }
pre, table { display: block; overflow: auto }
ul, ol { padding-inline-start: min(40px, 10%) }
blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--border); color: var(--muted) }
.actions, .more { margin-inline-start: -.5em; font-size: .875em }
.actions { color: var(--muted) }
.like[aria-pressed=true] svg { fill: currentColor }
.more { color: var(--accent) }
.fresh, .error[role=status] { position: sticky; z-index: 1; inset-block: .5em; display: block; inline-size: fit-content; margin: 0 auto -36px }
.error[role=status] { padding: .5em; border: 1px solid; border-radius: var(--radius); background: var(--surface) }
header { scroll-margin: 8em }
dialog label { display: block }
.bar { justify-content: end }
dialog .bar { margin-block-start: 1em }
@media (hover: hover) {
  .content:not(:hover, :focus-within) .action { opacity: 0 }
}
`)
