/** What a request with a body has besides. Sent again with the same key, it is taken once. @param {object} body @param {string} [key] */
export const json = (body, key) => ({ body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key } })
