/** The options of a request with a body. Sent again with the same key, it is carried out once. @param {object} body @param {string} [key] */
export const json = (body, key) => ({ body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key } })
