/** Loads the writer, which has all that only those need who write. */

/** @typedef {typeof import('../writer/index.js')} Writer */

/** @type {Promise<Writer> | undefined} */
let loading

/** The writer. A load that fails is tried again by whoever comes next. */
export function writer() {
  loading ??= import('../writer/index.js').catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

const come = () => void writer().catch(() => {})

/** Attributes of what leads to the writer: it is fetched when somebody comes there with the pointer or the focus. */
export const ahead = { pointerenter: come, focus: come }
