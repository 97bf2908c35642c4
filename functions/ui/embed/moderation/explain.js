/**
 * Explains failures in the language of the page.
 * @import { App } from './app.js'
 */

import { ApiError } from '../kit/api.js'

/** @param {App} app @param {unknown} error */
export function explanation({ t, language }, error) {
  if (!(error instanceof ApiError) || error.status === 0) return t('error_offline')
  if (error.status === 401) return t('bad_token')
  if (error.code === 'comment_banned') return t('error_banned')
  if (error.status === 404) return t('gone')
  if (error.status === 423) return t('read_only')
  if (error.status === 429) return t('error_busy')
  if (error.status >= 500) return t('error_server')
  return language === 'en' && error.message ? error.message : t('error_refused')
}
