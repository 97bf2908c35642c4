/**
 * What this device remembers. Storage throws in some frames, or takes no more: what is kept lasts as long as the page then.
 */

const memory = {}

export const device = {
  get(key) {
    try {
      return memory[key] ?? localStorage[`comment-thread ${key}`]
    } catch {}
  },
  set(key, value) {
    try {
      localStorage[`comment-thread ${key}`] = value
      delete memory[key]
    } catch {
      memory[key] = `${value}`
    }
  },
}
