/** What the reader calls once somebody writes. */

export { enhance } from './editor.js'
export { chooseMails } from './mails.js'
export { menu } from './menu.js'
