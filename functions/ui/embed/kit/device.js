/**
 * What this device remembers. Storage throws in some frames: what is kept lasts as long as the page then.
 */

const memory = {}

export const device = {
  get(key) {
    try {
      return localStorage[`comment-thread ${key}`]
    } catch {
      return memory[key]
    }
  },
  set(key, value) {
    memory[key] = `${value}`
    try {
      localStorage[`comment-thread ${key}`] = value
    } catch {}
  },
}
