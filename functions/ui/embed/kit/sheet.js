/** Constructs style sheets, because a page's policy may forbid style elements and attributes. */

import css from './element.css'

/** @param {string} css */
export function sheet(css) {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  return sheet
}

export const styles = sheet(css + [...Array(12).keys()].map((hue) => `.hue-${hue}{--hue:${hue * 30}}`).join(''))
