/** The addresses in a text, which is read once. The service finds the same ones: `shared/domain/src/address.rs`. */

const SCHEME = /\bhttps?:\/\//gi
/** A scheme (without the flag `i`, which makes `ſ` an `s`); characters that end an address; brackets that open and close; characters that belong to it if more of it follows; all others. */
const SIGN = /(\b[Hh][Tt]{2}[Pp][Ss]?:\/\/)|([\s\p{Cc}\p{Cf}<>。、，．！？：；｡､]|(?!['‘’])\p{Quotation_Mark})|(\p{Ps})|(\p{Pe})|[.,;:!?']|(?![!-~])\p{P}|(.)/gsuy

/** Splits a text; every second part is an address. @param {string} text */
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

/** Where the address that begins here ends, where the next one may begin, and whether it is an address. @param {string} text */
export function extent(text, start) {
  let read = start
  let end = start
  /** How often each bracket is open. */
  const open = {}
  /** Where the address ends if a bracket that is not ASCII is never closed, for each that is open. */
  const wide = /** @type {number[]} */ ([])
  SIGN.lastIndex = start
  for (let found; (found = SIGN.exec(text)); read = SIGN.lastIndex) {
    const [sign, scheme, stop, opens, closes, other] = found
    const code = sign.codePointAt(0) ?? 0
    const isWide = code > 127
    // The opening one is one or two code points before it.
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
