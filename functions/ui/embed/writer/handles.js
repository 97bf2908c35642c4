/**
 * Handles that mention people, and the places where a text may mention them. The service follows the same rules
 * (`shared/domain/src/mention.rs`). `tests/mentions.json` has test cases for both.
 */

import { extent } from '../kit/addresses.js'

const MOST = 50

/** Characters that a mention may follow. */
const PRECEDES =
  /[\s\p{S}\u200b]|(?![_@＠])\p{P}|(?=\p{L})[\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u
/** Invisible and combining characters, backslashes, and the closing delimiters of Markdown. */
const UNSEEN = /(?!\u200b)[\p{M}\p{Cf}*~`\\]/u
/** A sign and at most `MOST` characters at the end of a text. */
const TYPED = /[@＠]([\p{L}\p{M}\p{Nd}_]{1,50})$/u
const LOCAL = /[\p{L}\p{M}\p{Nd}!#$%&'*+/=?^_`{|}~.-]$/u
const DOMAIN = /^[\p{L}\p{M}\p{Nd}-]+(\.[\p{L}\p{M}\p{Nd}-]+)?/u
/**
 * Markdown in which an `@` mentions no one: code, links and entities. Also matches schemes, where an address may begin.
 * Code is a fenced block (closed or not), text between backticks in a paragraph, or indented lines after a blank line or
 * a heading.
 */
const CLOSED =
  /^ {0,3}(`{3,}|~{3,})[^]*?(?:\n {0,3}\1[`~]* *$|(?![^]))|(?<![\\`])(`+)(?!`)(?:(?!\n\s*\n)[^])*?[^`]\2(?!`)|\[[^[\]]*\]\((?:[^()\n]|\([^()\n]*\))*\)|<\w[^\s<>]*>|&#?\w+;|(\bhttps?:\/\/)|^(?<!^\s*[^\s#].*\n)(( {4}| *\t).*\n?)+/gim

/** Returns the handle of a name, or an empty string if the name can't be mentioned. @param {string} name */
export function handleOf(name) {
  const normal = name.normalize().toLowerCase().normalize()
  const handle = [...normal.replace(/[^\p{L}\p{M}\p{Nd}]+/gu, '_')].slice(0, MOST).join('')
  return namesSomebody(handle) ? handle : ''
}

/** Returns the mention before the caret, if the service would accept it. @param {string} text @param {number} caret */
export function typedAt(text, caret) {
  const [sign, typed] = TYPED.exec(text.slice(0, caret)) ?? []
  if (!sign || !namesSomebody(typed)) return
  const at = caret - sign.length
  if (mayFollow(text.slice(0, at)) && !isClosed(text, at, caret) && !isInEmail(text, at) && !(/[@＠]/.test(text[caret]) && isInEmail(text, caret))) return typed
}

/** Whether a part of the range is code, or belongs to a link or an address, even to an address that is too long. */
function isClosed(text, start, end) {
  CLOSED.lastIndex = 0
  for (let found; (found = CLOSED.exec(text)) && found.index < end; ) {
    const address = found[3] && extent(text, found.index)
    if (address) CLOSED.lastIndex = address.isAddress ? address.end : address.read
    if (start < CLOSED.lastIndex) return true
  }
  return false
}

/** Whether the `@` at this place joins the texts on both sides, as in an email address. */
function isInEmail(text, at) {
  const before = text.slice(0, at)
  const [domain, end] = DOMAIN.exec(text.slice(at + 1)) ?? []
  return LOCAL.test(before) && domain && (end || !mayFollow(before))
}

/** Whether a mention may follow this text, judging by its last visible character. Link addresses and entities are invisible. */
function mayFollow(text) {
  const seen = [...text.replace(CLOSED, (all) => all.replace(/]\(.*|>$|^&.*/, ''))].findLast((sign) => !UNSEEN.test(sign))
  return !seen || PRECEDES.test(seen)
}

const namesSomebody = (handle) => /[\p{L}\p{Nd}]/u.test(handle)
