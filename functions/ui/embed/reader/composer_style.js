/** Styles of composers until the writer arrives. */

import { sheet } from '../kit/sheet.js'

export const composerStyles = sheet(`
.composer { container-type: inline-size; display: flex; gap: 12px; margin-block: .75em 1.5em }
.composer > .avatar { margin-block-start: 3px }
.composer > div { flex: 1; min-inline-size: 0 }
.editor { position: relative; background: var(--wash); border: 1px solid var(--border); border-radius: var(--radius) }
.editor:focus-within { border-color: var(--accent) }
textarea { display: block; inline-size: 100%; min-block-size: 92px; max-block-size: 60vh; padding: 8px 12px; resize: none; field-sizing: content }
.editor textarea { outline: 0 }
.composer:not(.open) textarea { min-block-size: calc(1.55em + 15px); max-block-size: calc(1.55em + 15px); overflow: hidden; white-space: nowrap }
.composer:not(.open) :is(.editor > :not(textarea), .editor ~ *) { display: none }
.composer .bar { margin-block-start: .5em }
.composer .error { margin: .25em 0 }
.error:empty { display: none }
.toast { position: fixed; inset: auto 0 20px; inline-size: fit-content; max-inline-size: 90vw; margin: 0 auto; padding: .75em 1.25em; border: 1px solid var(--border); border-radius: var(--radius); background: var(--surface); color: var(--text); box-shadow: 0 4px 16px #0003; transition: color 1ms }
.toast:popover-open { animation: stay 5s }
.toast:hover { animation-play-state: paused }
@keyframes stay {}
.toast.error { -webkit-text-fill-color: var(--danger) }
.toast:not(:popover-open) { position: absolute; inset: auto; display: block; padding: 0; border: 0; clip-path: inset(50%) }
`)
