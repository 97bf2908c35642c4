/** @param {Uint8Array<ArrayBuffer>} bytes */
export const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')

export const newKey = () => base64url(crypto.getRandomValues(new Uint8Array(32)))
