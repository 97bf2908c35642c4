/** The functions that the reader calls once a visitor writes. */

export { arrive, leadToSignIn } from './sign_in.js'
export { edit, reopen, reply } from './below.js'
export { enhance } from './editor.js'
export { account } from './account.js'
export { menu } from './menu.js'
export { chooseMails } from './mails.js'
