/**
 * Styles that every element of this service has.
 */

/** @param {string} css */
export function sheet(css) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  return sheet
}

/**
 * All colours derive from the text colour that the element inherits: light text means a dark page. `--step` is 0 on light
 * pages and 1 on dark ones. `--base` is the colour that decides. It takes `--under` into account, the ground of the page, because
 * grey text may be light or dark. Text counts as light from a lightness of .25 and half of that of the ground on, .6 where nothing is
 * known. A relative colour is made where it is used, from the colour of that element.
 *
 * What texts look like on the page does not reach into the elements.
 */
export const styles = sheet(`
:host { display: block; overflow-wrap: anywhere; font-family: var(--comment-font, inherit) }
:host > * {
  --base: color-mix(in oklab, currentColor 67%, oklch(from var(--under, oklch(.7 0 0)) calc(1 - l) 0 0));
  --step: clamp(0, (l - .5) * 99, 1);
  --text: var(--comment-text);
  --accent: var(--comment-accent, oklch(from var(--base) calc(.5 + .3 * var(--step)) calc(.17 - .05 * var(--step)) 258 / 1));
  --muted: var(--comment-muted, oklch(from currentColor l c h / calc(.72 + 1.3 * max(0, (l - .3) * (1 - var(--step)), (.9 - l) * var(--step)))));
  --surface: var(--comment-surface, oklch(from var(--base) calc(.995 - .755 * var(--step)) 0 0 / 1));
  --on-accent: oklch(from var(--base) calc(1 - .85 * var(--step)) 0 0 / 1);
  --danger: oklch(from var(--base) calc(.52 + .26 * var(--step)) .15 25 / 1);
  --heart: oklch(from var(--base) calc(.6 + .1 * var(--step)) .19 15 / 1);
  --line: color-mix(in srgb, currentColor 15%, transparent);
  --border: var(--comment-border, color-mix(in srgb, currentColor 24%, transparent));
  --wash: color-mix(in srgb, currentColor 2.5%, transparent);
  --hover: color-mix(in srgb, currentColor 8%, transparent);
  --tint: color-mix(in srgb, var(--accent) 9%, transparent);
  --radius: var(--comment-radius, 10px);
  text-align: start;
  text-transform: none;
  text-indent: 0;
  letter-spacing: normal;
  word-spacing: normal;
  white-space: normal;
  line-height: 1.55;
}
@supports not (color: oklch(from currentColor l c h)) {
  :host > * { --surface: var(--comment-surface, Canvas) }
}
:host([hidden]), [hidden] { display: none !important }
@media print { form, dialog, button, select, .notice { display: none !important } }
section { color: var(--text) }
.light { --text: var(--comment-text, #1f2328); color-scheme: light }
.dark { --text: var(--comment-text, #e6e8eb); color-scheme: dark }
.light, .dark { padding: 1em; border-radius: var(--radius); background: var(--surface) }
* { box-sizing: border-box }
a { color: var(--accent) }
button, input, select, textarea { border: 0; border-radius: min(7px, var(--radius)); background: none; color: inherit; font: inherit; accent-color: var(--accent) }
input, select, textarea { font-size: max(16px, 1em) }
button, select { min-block-size: 28px; min-inline-size: 28px; padding: 0 .5em; cursor: pointer }
option { background: var(--surface) }
::placeholder { color: var(--muted); opacity: 1 }
button:hover { background: var(--hover) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
.primary, .outlined { min-block-size: 36px; padding: .25em .75em }
.primary, .primary:hover { background: var(--accent); -webkit-text-fill-color: var(--on-accent); font-weight: 600 }
.outlined { border: 1px solid var(--border) }
:disabled, [aria-disabled=true], [aria-busy=true] { opacity: .7 }
.badge { padding: .25em .75em; border-radius: 1em; background: var(--hover); font-size: .846em; font-weight: 600; line-height: 1.4 }
.badge, .muted { color: var(--muted) }
.avatar { flex: none; display: grid; place-items: center; inline-size: 36px; block-size: 36px; border-radius: 50%; object-fit: cover; background: oklch(from var(--base) calc(.9 - .52 * var(--step)) .055 var(--hue) / var(--shown, 1)); -webkit-text-fill-color: oklch(from var(--base) calc(.42 + .46 * var(--step)) .09 var(--hue) / 1); font-size: 13px; font-weight: 600 }
.avatar:empty:not(img) { border: 1px dashed var(--border); background: none }
.error { color: var(--danger) }
@media (forced-colors: active) {
  .primary, .badge, .avatar, .notice { border: 1px solid }
}
${[...Array(12).keys()].map((hue) => `.hue-${hue} { --hue: ${hue * 30} }`).join('\n')}
`)
