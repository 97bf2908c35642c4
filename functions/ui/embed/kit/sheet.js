/**
 * Styles that every element of this service has.
 */

/** @param {string} css */
export function sheet(css) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  return sheet
}

export const styles = sheet(`
:host {
  --accent: var(--comment-accent, light-dark(#0b57d0, #8ab4f8));
  --text: var(--comment-text, light-dark(#1f2328, #e6e8eb));
  --muted: var(--comment-muted, light-dark(#59636e, #9aa3ad));
  --surface: var(--comment-surface, light-dark(#fff, #17191c));
  --border: var(--comment-border, light-dark(#d5dae0, #373c43));
  --radius: var(--comment-radius, 8px);
  --danger: light-dark(#b3261e, #f2b8b5);
  --tint: color-mix(in srgb, var(--accent) 8%, transparent);
  display: block;
  overflow-wrap: anywhere;
  font-family: var(--comment-font, inherit);
  line-height: 1.5;
}
:host([hidden]), [hidden] { display: none !important }
section, dialog { color: var(--text) }
.light { color-scheme: light }
.dark { color-scheme: dark }
.light, .dark, dialog { padding: 1em; border-radius: var(--radius); background: var(--surface) }
* { box-sizing: border-box }
.visually-hidden { position: absolute; clip-path: inset(50%) }
a { color: var(--accent) }
button, input, select, textarea { border: 0; border-radius: var(--radius); background: none; color: inherit; font: inherit; accent-color: var(--accent) }
button { min-block-size: 28px; min-inline-size: 28px; padding: 0 .5em; cursor: pointer }
button:hover { background: var(--tint) }
.primary, .outlined, select, input:not([type=radio], [type=checkbox]) { min-block-size: 36px; padding: .25em .75em }
.primary, .primary:hover { background: var(--accent); color: light-dark(#fff, #111); font-weight: 600 }
.danger, .danger:hover { background: var(--danger) }
.outlined, select, input, dialog textarea, dialog { border: 1px solid var(--border) }
:disabled, [aria-disabled=true], [aria-busy=true] { opacity: .7 }
dialog { inline-size: min(26em, 90%) }
.badge { padding: 0 .5em; border: 1px solid var(--border); border-radius: 1em; font-size: .75em }
.badge, .muted { color: var(--muted) }
.avatar { flex: none; display: grid; place-items: center; inline-size: 36px; block-size: 36px; border-radius: 50%; object-fit: cover; background: var(--border) }
.error { color: var(--danger) }
`)
