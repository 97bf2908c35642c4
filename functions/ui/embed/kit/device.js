/**
 * Storage on this device. If the storage throws, as in some frames, or is full, values are kept in memory until the page is left.
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
