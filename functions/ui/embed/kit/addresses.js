/** Finds the web addresses in a text in one pass. The service must find the same ones (`shared/domain/src/address.rs`). */

const SCHEME = /\bhttps?:\/\//gi
/**
 * Alternatives: a scheme (spelled out, because with the flag `i`, `s` would match `ſ`); characters that end an address;
 * opening brackets; closing brackets; characters that belong to an address only if more of it follows; all others.
 */
const SIGN = /(\b[Hh][Tt]{2}[Pp][Ss]?:\/\/)|([\s\p{Cc}\p{Cf}<>。、，．！？：；｡､]|(?!['‘’])\p{Quotation_Mark})|(\p{Ps})|(\p{Pe})|[.,;:!?']|(?![!-~])\p{P}|(.)/gsuy

/** Splits a text at its addresses. Every second part is an address. @param {string} text */
export function parts(text) {
  const found = /** @type {string[]} */ ([])
  let written = 0
  SCHEME.lastIndex = 0
  for (let scheme; (scheme = SCHEME.exec(text)); ) {
    const start = scheme.index
    const { end, read, isAddress } = extent(text, start)
    if (isAddress) {
      found.push(text.slice(written, start), text.slice(start, end))
      written = end
    }
    SCHEME.lastIndex = read
  }
  return [...found, text.slice(written)]
}

/** Returns the end of the address that begins at `start`, the first place where another address may begin, and whether the address is valid. @param {string} text */
export function extent(text, start) {
  let read = start
  let end = start
  /** The number of unclosed brackets of each kind. */
  const open = {}
  /** For each open bracket that is not ASCII, the end of the address if the bracket is never closed. */
  const wide = /** @type {number[]} */ ([])
  SIGN.lastIndex = start
  for (let found; (found = SIGN.exec(text)); read = SIGN.lastIndex) {
    const [sign, scheme, stop, opens, closes, other] = found
    const code = sign.codePointAt(0) ?? 0
    const isWide = code > 127
    // The opening bracket is one or two code points before the closing one.
    const opening = open[code - 1] ? code - 1 : code - 2
    const isMatched = closes && open[opening]
    if (stop || (closes && isWide && !isMatched) || (scheme && wide.length)) break
    if (opens) open[code] = (open[code] ?? 0) + 1
    if (opens && isWide) wide.push(end)
    if (isMatched) open[opening]--
    if (isMatched && isWide) wide.pop()
    if (scheme || opens || isMatched || other) end = SIGN.lastIndex
  }
  end = wide[0] ?? end
  const address = text.slice(start, end)
  return { end, read, isAddress: [...address].length <= 2048 && URL.canParse(address) }
}
