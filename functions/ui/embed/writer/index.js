/** What the reader calls once somebody writes. */

export { enhance } from './editor.js'
export { chooseMails } from './mails.js'
export { pin } from './pin.js'
export { remove } from './remove.js'
export { report } from './report.js'
