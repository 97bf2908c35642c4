/** The folder that the script came from. */

export const API = new URL('.', import.meta.url).href
