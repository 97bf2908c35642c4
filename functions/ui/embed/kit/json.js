/** Returns the options of a request with a JSON body. The service processes requests with the same key only once. @param {object} body @param {string} [key] */
export const json = (body, key) => ({ body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key } })
