export const inFull = (time, language) => new Date(time).toLocaleString(language, { dateStyle: 'long', timeStyle: 'short' })
