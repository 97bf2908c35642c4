/** Styles of the moderators' page. */

import { sheet } from '../kit/sheet.js'
import { UNDO } from './outbox.js'

export const moderationStyles = sheet(`
:host { font-size: .9375em }
:host > * {
  --ground: oklch(from var(--base) calc(.955 - .77 * var(--step)) 0 0 / 1);
  --good: oklch(from var(--base) calc(.46 + .32 * var(--step)) .1 155 / 1);
  --warn: oklch(from var(--base) calc(.49 + .33 * var(--step)) .11 70 / 1);
  --line: color-mix(in srgb, var(--border) 70%, transparent);
}
@supports not (color: oklch(from currentColor l c h)) {
  :host > * {
    --ground: light-dark(#f2f4f6, #101214);
    --good: light-dark(#1a6b3c, #7fd6a0);
    --warn: light-dark(#8a5300, #f0c274);
  }
}
.frame { display: flow-root; overflow-x: clip; min-block-size: 100%; padding: 0 0 96px; border-radius: 0; background: var(--ground); color: var(--text) }
:host([standalone]) .frame { min-block-size: 100vh }
main { display: block }
.content { max-inline-size: 64em; margin-inline: auto; padding: 0 16px; outline: none }
h1, h2, p { margin: 0 }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.card:focus-visible { outline: 0 }
.badge { font-size: .75em }
.visually-hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
:is(.top, .panel) h1 { font-size: 1.133em; font-weight: 650; letter-spacing: -.01em }
h2 { font-size: 1.133em; font-weight: 600 }
button { display: inline-flex; align-items: center; justify-content: center; gap: .375em; min-block-size: 30px; max-inline-size: 100%; white-space: nowrap; transition: background-color .12s }
.quiet { color: var(--muted) }
.quiet:hover { color: var(--text) }
.quiet.end { margin-inline-start: auto }
.news { color: var(--accent); font-weight: 600 }
.round { min-inline-size: 30px; padding: 0; border: 1px solid var(--border); border-radius: 50%; font-weight: 600 }
.link { min-block-size: 24px; padding: 0 .25em; margin-inline: -.25em; color: var(--accent); font-size: .875em }
.icon { flex: none; inline-size: 1em; block-size: 1em; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round }
kbd {
  min-inline-size: 1.5em; padding: 0 .3em; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 4px;
  font: 500 .75em/1.5 ui-monospace, monospace; text-align: center;
}
.small { font-size: .875em }
.centred { text-align: center; padding: 32px }

.top {
  display: flex; align-items: center; gap: 4px 12px; padding: 0 16px;
  padding-inline: max(16px, calc((100% - 64em) / 2 + 16px));
  border-block-end: 1px solid var(--border); background: var(--surface);
}
[role=tablist] { display: flex; gap: 2px; overflow-x: auto; scrollbar-width: none; margin-inline: 8px auto }
[role=tab] { position: relative; flex: none; min-block-size: 48px; padding: 0 .75em; border-radius: 0; color: var(--muted); font-weight: 500 }
.tally { margin-inline-start: .375em; padding: .125em .5em; border-radius: 1em; background: color-mix(in srgb, currentcolor 12%, transparent); font-size: .75em; font-variant-numeric: tabular-nums }
[role=tab]:hover { background: none; color: var(--text) }
[role=tab]:focus-visible { outline-offset: -3px; border-radius: var(--radius) }
[role=tab][aria-selected=true] { color: var(--text) }
[role=tab][aria-selected=true]::after { content: ''; position: absolute; inset: auto .5em 0; block-size: 2px; border-radius: 2px; background: var(--accent) }
.top h1 { flex: none }
.long { overflow: hidden; text-overflow: ellipsis }
.me { display: block; max-inline-size: 10em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .875em }
.banner { display: flex; gap: .5em; align-items: center; max-inline-size: 62em; margin: 16px auto 0; padding: 8px 16px; border-radius: var(--radius); background: color-mix(in srgb, var(--warn) 14%, transparent); color: var(--warn) }

.toolbar {
  position: sticky; inset-block-start: 0; z-index: 1; display: flex; align-items: center; gap: 4px 10px;
  min-block-size: 48px; margin-inline: -16px; padding: 6px calc(16px + 17px); background: var(--ground); font-size: .875em;
}
.toolbar.selecting .muted { color: var(--text); font-weight: 600 }
input[type=checkbox], input[type=radio] { flex: none; inline-size: 18px; block-size: 18px; min-block-size: 0; margin: 3px; padding: 0 }

.cards:empty, .rows:empty { display: none }
.cards { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; padding-block-start: 2px }
.card {
  --indent: 31px; scroll-margin: 52px 0 96px; padding: 12px 16px 8px; border: 1px solid var(--line); border-radius: calc(var(--radius) + 2px);
  background: var(--surface); box-shadow: 0 1px 2px #0000000a; outline: none; cursor: default;
}
.card.current { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
.card.current:focus-visible { box-shadow: 0 0 0 2px var(--accent), 0 4px 16px #0000001a }
.card.selected { background: color-mix(in srgb, var(--accent) 7%, var(--surface)) }
.card header, .row { display: flex; align-items: center; gap: 10px }
.card header { align-items: flex-start }
.card header > input { margin-block-start: 9px; margin-inline-end: 0 }
.avatar { inline-size: 32px; block-size: 32px; margin-block-start: 2px }
.by { display: flex; flex-direction: column; flex: 1; min-inline-size: 0; line-height: 1.35 }
.name { display: flex; flex-wrap: wrap; align-items: center; gap: 2px .5em }
.name strong { font-weight: 600 }
.name strong, .where, .details { overflow: clip; overflow-clip-margin: .25em }
.badge.bad { border-color: currentColor; color: var(--danger) }
.where { font-size: .875em }
.where a { color: inherit; text-decoration-color: var(--border); text-underline-offset: 2px }
.where a:hover { color: var(--accent) }
.where .icon { margin-inline: .25em; vertical-align: -.1em; inline-size: .85em }
.why { display: inline-flex; align-items: center; gap: .375em; flex: none; padding: 2px .625em; border-radius: 1em; font-size: .8125em; font-weight: 500; color: var(--muted); background: color-mix(in srgb, var(--muted) 12%, transparent) }
.why.spam, .why.edit { color: var(--warn); background: color-mix(in srgb, var(--warn) 13%, transparent) }
.why.visible { color: var(--good); background: color-mix(in srgb, var(--good) 12%, transparent) }
.why.rejected { color: var(--danger); background: color-mix(in srgb, var(--danger) 10%, transparent) }

.closed { margin-inline-start: .5em; color: var(--warn) }
.parent { margin: 8px 0 0; padding: 2px 0 2px 12px; border-inline-start: 3px solid var(--line); font-size: .875em }
.parent .icon { margin-inline-end: .375em; vertical-align: -.125em }
.quoted { max-block-size: 3em; overflow: hidden; color: var(--muted) }
.plain { white-space: pre-wrap }
.body { max-block-size: 13.5em; overflow: hidden; padding-block: 6px 2px }
.body.whole { max-block-size: none }
:is(.body, .quoted) > *, :is(.body, .quoted) :is(blockquote > *, li > :not(ul, ol)) { margin-block: 0 .5em }
.body > :last-child, .quoted > :last-child { margin-block-end: 0 }
.body img { max-inline-size: 100%; max-block-size: 13em; border-radius: var(--radius) }
.quoted img { max-block-size: 2.5em }
.load { margin-block: 2px; padding: .25em .75em; border: 1px dashed var(--border); color: var(--muted); text-align: start; white-space: normal }
:is(.body, .quoted) :is(h1, h2, h3, h4, h5, h6) { font-size: 1em; font-weight: 600 }
pre, table { max-inline-size: 100%; overflow-x: auto }
.body table { display: block; border-collapse: collapse }
td, th { padding: .25em .5em; border: 1px solid var(--border) }
pre { padding: .5em .75em; border-radius: var(--radius); background: var(--ground) }
code { font-size: .9em }
:is(.body, .quoted) :is(ul, ol) { padding-inline-start: min(40px, 10%) }
.body blockquote { margin-inline: 0; padding-inline-start: min(.75em, 5%); border-inline-start: 3px solid var(--line); color: var(--muted) }

.checks { display: flex; flex-wrap: wrap; gap: 6px 8px; margin-block: 8px 0; padding: 0; list-style: none; font-size: .8125em; color: var(--warn) }
.checks li { display: inline-flex; align-items: center; gap: .375em; overflow-wrap: anywhere }
mark { padding-inline: .125em; border-radius: .25em; color: inherit; background: color-mix(in srgb, var(--warn) 28%, transparent) }
.rejection { display: flex; flex-wrap: wrap; align-items: center; gap: 0 .5em; margin-block-start: 8px; font-size: .8125em }
.rejection .icon { color: var(--danger) }
.rejection strong { font-weight: 600 }
.reports { margin-block-start: 8px; padding: 8px 12px; border-radius: var(--radius); background: color-mix(in srgb, var(--danger) 7%, transparent); font-size: .875em }
.reports .count { display: flex; align-items: center; gap: .5em; color: var(--danger); font-weight: 600 }
.reports ul { margin: 4px 0 0; padding: 0; list-style: none }
.reports li { display: flex; flex-wrap: wrap; gap: 0 .625em; padding-block: 2px }
.reports li strong { font-weight: 600 }
.details { min-inline-size: 0 }
.reports li .muted { margin-inline-start: auto }
.note { display: flex; align-items: center; gap: .5em; margin-block-start: 8px; padding: 6px 12px; border-radius: var(--radius); background: color-mix(in srgb, var(--warn) 13%, transparent); color: var(--warn); font-size: .875em; font-weight: 500 }
.note .link { margin-inline-start: auto }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 6px }
.card > .actions { margin: 6px -8px 0; font-size: .875em }
.approve { color: var(--good); font-weight: 600 }
.approve:hover { background: color-mix(in srgb, var(--good) 12%, transparent) }
.reject { color: var(--danger); font-weight: 600 }
.reject:hover { background: color-mix(in srgb, var(--danger) 12%, transparent) }
.sign { display: grid; place-items: center; min-inline-size: 1.25em }
.sign kbd { display: none; min-inline-size: 1.6em; margin-inline: -.175em }
.drawer .card { --indent: 0px }
.card > :is(.parent, .body, .checks, .rejection, .reports, .note, .actions, .show-all) { margin-inline-start: calc(var(--indent) + 42px) }
.card > .actions { margin-inline-start: calc(var(--indent) + 34px) }
.card > .show-all { margin-inline-start: calc(var(--indent) + 42px - .25em) }
.body:has(+ .show-all:not([hidden])) { mask-image: linear-gradient(#000 calc(100% - 48px), #0000) }

.panel { display: grid; justify-items: center; gap: 12px; max-inline-size: 28em; margin: 12vh auto 0; padding: 16px; text-align: center; outline: none }
.panel.card-like { padding: 32px 24px; border: 1px solid var(--line); border-radius: calc(var(--radius) + 6px); background: var(--surface); box-shadow: 0 8px 32px #0000000f }
.panel h1 { font-size: 1.467em }
.mark { display: grid; place-items: center; inline-size: 56px; block-size: 56px; border-radius: 50%; color: var(--good); background: color-mix(in srgb, var(--good) 12%, transparent); font-size: 1.6em }
.mark.bad { color: var(--danger); background: color-mix(in srgb, var(--danger) 10%, transparent) }
.field { display: grid; gap: 4px; text-align: start; font-weight: 500 }
.field :is(input, textarea) { inline-size: 100%; font-weight: 400 }
.sign-in { display: grid; gap: 12px; inline-size: 100%; margin-block-start: 4px; text-align: start }
.sign-in .buttons { flex-wrap: wrap; margin: 0 }
.sign-in .again { margin-inline-end: auto; color: var(--muted) }
.sign-in .error:empty { display: none }
.sign-in small { color: var(--muted); font-weight: 400 }
dialog .sign-in + div { margin-block-start: 20px; padding-block-start: 16px; border-block-start: 1px solid var(--line) }
summary { color: var(--muted); font-size: .875em; cursor: pointer }
.after { display: grid; justify-items: center; padding-block: 8px }

.users { padding-block-start: 16px }
.search input { inline-size: 100%; background: var(--surface) }
.users h2 { margin: 20px 0 8px; font-size: .875em; color: var(--muted) }
.rows { margin: 0; padding: 0; border: 1px solid var(--line); list-style: none; border-radius: calc(var(--radius) + 2px); background: var(--surface) }
.row { flex-wrap: wrap; padding: 8px 12px 8px 16px; min-block-size: 48px }
.row + .row { border-block-start: 1px solid var(--line) }
.row .avatar { margin: 0 }
.row .actions { font-size: .875em }
.row .muted { font-size: .875em }
.ban { color: var(--danger); font-size: .875em }
.log .row { display: grid; grid-template-columns: 8em minmax(0, 2fr) minmax(0, 1.5fr) minmax(15em, auto); padding-block: 4px; min-block-size: 42px }
.log strong { font-weight: 600 }
.log .actions { flex-wrap: nowrap; justify-content: flex-end }
.webhooks .by strong { font-weight: 500 }
.webhooks .actions { flex-wrap: wrap }
.webhook-dialog { inline-size: min(36em, calc(100% - 32px)) }
.thread { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.deed.approve, .deed.reject { font-weight: 500 }
.deed.approve:hover, .deed.reject:hover { background: none }
.deed.ban { font-size: inherit }

.bar {
  position: fixed; inset-inline: 0; inset-block-end: 20px; z-index: 3; display: flex; align-items: center; gap: 16px; inline-size: fit-content;
  max-inline-size: calc(100% - 32px); margin-inline: auto; padding: 8px 10px 8px 18px; overflow: hidden; border-radius: calc(var(--radius) + 2px);
  background: light-dark(#22272d, #e8eaed); color: light-dark(#fff, #17191c); box-shadow: 0 6px 28px #00000040; font-size: .9375em;
}
.bar > span:only-child { padding-inline-end: 8px }
.bar button { flex: none; color: light-dark(#a8c7fa, #0b57d0); font-weight: 600 }
.bar:has(.choice) { flex-wrap: wrap; row-gap: 4px }
.bar:has(.choice) > :first-child { flex: 1 }
.choice { display: flex; flex-wrap: wrap; flex-basis: 100%; gap: 4px; margin-inline-start: -8px }
.bar .choice button { font-weight: 500 }
.bar [aria-pressed=true], .bar [aria-pressed=true]:hover { background: light-dark(#a8c7fa, #0b57d0); color: light-dark(#17191c, #fff) }
.bar button:hover { background: light-dark(#ffffff1f, #0000000f) }
.bar :focus-visible { outline-color: currentColor }
.countdown { position: absolute; inset: auto 0 0; block-size: 3px; background: light-dark(#a8c7fa, #0b57d0); transform-origin: left; animation: countdown ${UNDO}ms linear forwards }
@keyframes countdown { to { transform: scaleX(0) } }

dialog { inset: 0; margin: auto; padding: 24px; border-radius: calc(var(--radius) + 4px) }
dialog h2 { margin-block-end: 8px; outline: none }
dialog form { display: grid; gap: 12px }
fieldset { display: flex; flex-wrap: wrap; gap: 6px; margin: 0; padding: 0; border: 0; min-inline-size: 0 }
fieldset legend { margin-block-end: 6px; padding: 0; font-weight: 500 }
fieldset label { display: inline-flex; align-items: center; gap: 6px; max-inline-size: 100%; min-block-size: 40px; padding: 0 12px 0 8px; border: 1px solid var(--border); border-radius: var(--radius); overflow-wrap: break-word; cursor: pointer }
fieldset label:has(:checked) { border-color: var(--accent); background: var(--tint) }
fieldset input[type=date] { min-inline-size: 0; min-block-size: 30px; padding: 0 .25em; border: 0; background: none }
.check { display: flex; align-items: center; gap: 6px }
.buttons { display: flex; justify-content: flex-end; gap: 8px; margin-block-start: 8px }
button.danger, button.danger:hover { background: var(--danger) }
dialog label.field :is(input, textarea) { border: 1px solid var(--border) }
dl { display: grid; grid-template-columns: auto 1fr; gap: 6px 16px; margin: 0 }
dl kbd { padding: 2px .5em; font-size: .8125em }
dl kbd + kbd { margin-inline-start: 4px }
dd { margin: 0 }
.drawer { inline-size: min(42em, 100%); max-inline-size: none; block-size: 100%; max-block-size: none; margin: 0 0 0 auto; margin-inline: auto 0; padding: 0 20px 96px; border-width: 0; border-inline-start-width: 1px; border-radius: 0; background: var(--ground); overflow-y: auto }
.drawer-head { position: sticky; inset-block-start: 0; z-index: 1; display: flex; align-items: center; gap: 16px; margin-inline: -20px; padding: 12px 20px; background: var(--ground) }
.drawer-head h2 { flex: 1; margin: 0 }
.about { display: flex; flex-wrap: wrap; align-items: center; gap: 12px; padding-block-end: 12px }
.about:empty { display: none }
.drawer .card { scroll-margin: 64px 0 96px }

@media (pointer: fine) {
  .frame:not(.no-letters) :is(.current, .toolbar) .sign .icon { display: none }
  .frame:not(.no-letters) :is(.current, .toolbar) .sign kbd { display: block }
}
.no-letters .bar kbd { display: none }
@media not (pointer: fine) { .bar kbd, .round { display: none } }
@media (max-width: 46em) {
  .top { flex-wrap: wrap; padding-block-start: 8px }
  .top h1 { flex: 1 0 auto }
  [role=tablist] { order: 1; inline-size: calc(100% + 32px); margin: 0 -16px; padding-inline: 6px }
  [role=tab] { min-block-size: 42px; padding: 0 .625em }
  .content { padding: 0 10px }
  .toolbar { margin-inline: -10px; padding-inline: calc(10px + 13px) }
  .card { --indent: -42px; padding: 10px 12px 6px }
  .drawer .card { --indent: -42px }
  .card header { flex-wrap: wrap }
  .why { order: 1 }
  .card .by, .row .by { flex-basis: 60% }
  .card > .actions { gap: 0 }
  .card > .actions button { padding: 0 .25em }
  .card .long { position: absolute; clip-path: inset(50%) }
  .card .quiet:has(.long) { position: relative; overflow: hidden; inline-size: 26px }
  .frame .card.current .quiet:has(.long) .sign .icon { display: block }
  .frame .card.current .quiet:has(.long) .sign kbd { display: none }
  .toolbar { white-space: nowrap }
  .toolbar .sign { display: none }
  .user .actions { margin-inline-start: calc(32px + 2px) }
  .log .row { grid-template-columns: 1fr auto }
  .log .did { order: -1 }
  .log time { text-align: end }
  .log .actions { justify-content: flex-end }
  .log .actions { grid-column: 2 }
}
@media (max-width: 26em) {
  .top { column-gap: 4px }
  .me { max-inline-size: 4em }
  span.me { display: none }
  .drawer { padding-inline: 12px }
  .drawer-head { margin-inline: -12px; padding-inline: 12px }
}
@media (prefers-reduced-motion: no-preference) {
  .bar { animation: rise .16s ease-out }
  @keyframes rise { from { opacity: 0; translate: 0 8px } }
  dialog.drawer { animation: slide .18s ease-out }
  @keyframes slide { from { opacity: 0; translate: 24px 0 } }
}
@media (prefers-reduced-motion: reduce) { .countdown { animation: none } }
`)
