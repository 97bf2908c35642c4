/** Loads the writer, which has all that only those need who write. */

/** @typedef {typeof import('../writer/index.js')} Writer */

/** @type {Promise<Writer> | undefined} */
let loading

/** The writer. A failed load is retried at the next use. */
export function writer() {
  loading ??= import('../writer/index.js').catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

const come = () => void writer().catch(() => {})

/** Attributes of elements that lead to the writer: pointer or focus on them fetches it. */
export const ahead = { pointerenter: come, focus: come }
