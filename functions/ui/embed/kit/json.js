/** The options of a request with a body. A request that is repeated with the same key is carried out once. @param {object} body @param {string} [key] */
export const json = (body, key) => ({ body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key } })
