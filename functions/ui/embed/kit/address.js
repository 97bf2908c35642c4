/** The URL of the folder that the script was loaded from. */

export const API = new URL('.', import.meta.url).href
