/** Styles of what only writers see. */

import { formStyles } from '../kit/forms.js'
import { sheet } from '../kit/sheet.js'
import { places } from './popover.js'

const writerStyles = sheet(`
dialog h3 { margin: 0; font-size: 1.125em }
dialog label { display: block }
dialog .bar { margin-block-start: 1em }
.preview { min-block-size: 92px; max-block-size: 60vh; padding: 8px 12px; overflow: auto }
.toolbar { display: flex; flex-wrap: wrap; padding: 3px; border-block-start: 1px solid var(--border); color: var(--muted) }
.toolbar button { min-inline-size: 32px; min-block-size: 32px; padding: 0 6px; font-size: .875em }
.toolbar .eye { margin-inline-start: auto }
.eye svg { display: none }
.identity { flex: 1 1 12em; display: flex; flex-wrap: wrap; gap: 0 1em; align-items: center; color: var(--muted); font-size: .875em }
.identity:empty { display: none }
.identity label { display: flex; gap: .5em; align-items: center; min-block-size: 28px }
.names { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13em, 100%), 1fr)); gap: .5em 1em; margin-block-start: .75em }
.names label { font-size: .875em; font-weight: 600 }
.names small { color: var(--muted); font-size: 1em; font-weight: 400 }
.names input { inline-size: 100%; font-weight: 400 }
.identity button { min-inline-size: 0; padding: 0; color: inherit; text-decoration: underline; text-decoration-color: var(--border); text-underline-offset: 3px }
.sign-in { display: grid; gap: .5em; max-inline-size: 28em; margin-block: 12px 24px; padding: 1em; border: 1px solid var(--border); border-radius: var(--radius) }
.field { display: grid; gap: .25em; font-size: .875em; font-weight: 600 }
.sign-in input { inline-size: 100%; font-weight: 400 }
.sign-in small { color: var(--muted); font-size: 1em; font-weight: 400 }
.buttons { display: flex; flex-wrap: wrap; justify-content: end; gap: .5em }
.sign-in .again { margin-inline-end: auto; color: var(--muted); font-size: .875em }
.chips { display: flex; flex-wrap: wrap; gap: 8px; padding: 0 8px 8px }
.chips:empty { display: none }
.chip { flex: 0 1 21em; display: flex; gap: 8px; align-items: center; min-inline-size: 0; padding: 6px; border: 1px solid var(--border); border-radius: var(--radius) }
.chip canvas { flex: none; inline-size: 44px; block-size: 44px; border-radius: 6px; background: var(--border) }
.chip > div { flex: 1; min-inline-size: 0; font-size: .8125em }
.chip span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--muted) }
.chip input { inline-size: 100%; min-block-size: 28px; padding: 0; border-width: 0 0 1px; border-radius: 0 }
.chip input:focus { border-color: var(--accent); outline: 0 }
progress { inline-size: 100%; accent-color: var(--accent) }
.mirror { position: absolute; inset: 0 0 auto; visibility: hidden; padding: 8px 12px; white-space: pre-wrap }
.sheet { inset: auto; margin: 0; padding: 6px; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface); color: var(--text); box-shadow: 0 4px 24px #0003 }
.sheet:popover-open { position: absolute }
.menu { min-inline-size: min(14em, 90vw); max-inline-size: 90vw; font-size: .9375em }
.menu > * { display: flex; gap: .75em; align-items: center; inline-size: 100%; min-block-size: 34px; padding: 0 .75em; border-radius: calc(var(--radius) - 3px); color: inherit; text-align: start; text-decoration: none }
.menu > :is(:hover, :focus), [aria-selected=true] { background: var(--tint) }
.menu > .danger, .menu > .danger:hover { background: none; color: var(--danger) }
.menu hr { min-block-size: 0; block-size: 1px; margin: 6px 0; padding: 0; border: 0; background: var(--border) }
.emoji { grid-template-columns: repeat(8, 34px); max-block-size: 220px; overflow: auto }
.emoji:popover-open { display: grid }
.emoji button { block-size: 34px; padding: 0; font-size: 1.25em }
.people { inline-size: 16em; max-inline-size: 90vw }
.people div { display: flex; align-items: center; gap: .5em; padding: .25em .5em; border-radius: var(--radius); cursor: pointer }
.people span { overflow: clip }
.people .avatar { inline-size: 28px; block-size: 28px }
.composer .kept { color: var(--muted) }
.question { gap: .5em; margin-inline: 0; color: var(--text) }
.question .danger { color: var(--danger); background: none; font-weight: 600 }
@container (width < 30em) {
  .composer.open > .avatar { display: none }
  .identity { flex-basis: 100% }
  .eye svg { display: inline }
  .eye span { display: none }
  .toolbar button { min-inline-size: 30px; padding: 0 4px }
}
@media (prefers-reduced-motion: no-preference) {
  .sheet { animation: appear .15s }
  .editor textarea { transition: min-block-size .15s }
  .posting .editor::after { content: ''; position: absolute; inset: auto 0 0; block-size: 2px; background: linear-gradient(90deg, transparent, var(--accent), transparent) 0 / 50% no-repeat; animation: run 1s .3s infinite both }
  @keyframes appear { from { opacity: 0; translate: 0 4px } }
  @keyframes run { from { background-position: -100% } to { background-position: 200% } }
}
`)

/** Gives a thread what writers need. */
export function dress({ root }) {
  const { adoptedStyleSheets: sheets } = root
  if (!sheets.includes(places)) sheets.push(formStyles, writerStyles, places)
}
