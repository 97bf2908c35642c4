/** A new `Idempotency-Key`. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-')
