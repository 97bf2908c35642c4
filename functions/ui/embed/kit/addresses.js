/** The addresses in a text, which is read once. The service finds the same ones: `shared/src/domain/address.rs`. */

/** A scheme; what no address goes on with; brackets that open and close; what belongs to one if more of it follows; all else. */
const IN_TEXT = /(\bhttps?:\/\/)|([\s\p{Cc}\p{Cf}<>。、，．！？：；｡､]|(?!['‘’])\p{Quotation_Mark})|(\p{Ps})|(\p{Pe})|[.,;:!?']|(?![!-~])\p{P}|(.)/gisu

/** The parts of a text, of which every second one is an address. @param {string} text */
export function parts(text) {
  const found = /** @type {string[]} */ ([])
  let written = 0
  let at = 0
  let start = -1
  let end = 0
  /** How often each bracket is open. */
  let open = {}
  /** Where the address ends if a bracket that is not ASCII is never closed, for each that is open. */
  let wide = /** @type {number[]} */ ([])
  const finish = () => {
    end = wide[0] ?? end
    const address = text.slice(start, end)
    if (start >= 0 && [...address].length <= 2048 && URL.canParse(address)) {
      found.push(text.slice(written, start), address)
      written = end
    }
    start = -1
    open = {}
    wide = []
  }
  for (const [sign, scheme, stop, opens, closes, other] of text.includes('://') ? text.matchAll(IN_TEXT) : []) {
    const code = sign.codePointAt(0) ?? 0
    const isWide = code > 127
    // The opening one is one or two code points before it.
    const opening = open[code - 1] ? code - 1 : code - 2
    const isMatched = closes && open[opening]
    if (scheme && (start < 0 || wide[0])) {
      finish()
      start = at
    }
    at += sign.length
    if (stop || (closes && isWide && !isMatched)) finish()
    if (start < 0) continue
    if (opens) open[code] = (open[code] ?? 0) + 1
    if (opens && isWide) wide.push(end)
    if (isMatched) open[opening]--
    if (isMatched && isWide) wide.pop()
    if (scheme || opens || isMatched || other) end = at
  }
  finish()
  return [...found, text.slice(written)]
}
