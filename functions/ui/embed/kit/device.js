/**
 * Storage on this device. If it throws, as in some frames, or is full, values last as long as the page.
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
