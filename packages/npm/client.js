/** An error response of the API. */
export class ApiError extends Error {
  constructor(status, { message = '', code = 'server_error', errors = {} } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.errors = errors
  }
}

/** Creates a client of the API. Its functions, one for each HTTP method, resolve to the response's JSON. */
export function createClient({ api, token }) {
  async function request(method, path, { path: places = {}, query = {}, headers = {}, body, signal } = {}) {
    const place = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(places[name]))
    const url = new URL(api.replace(/\/+$/, '') + place)
    for (const [name, value] of Object.entries(query)) if (value != null) url.searchParams.set(name, value)
    const bearer = typeof token === 'function' ? await token() : token
    const isForm = body instanceof FormData
    const response = await fetch(url, {
      method,
      signal,
      headers: {
        ...(bearer && { Authorization: `Bearer ${bearer}` }),
        ...(body && !isForm && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: isForm ? body : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new ApiError(response.status, text.startsWith('{') ? JSON.parse(text) : {})
    return text ? JSON.parse(text) : undefined
  }
  const of = (method) => (path, options) => request(method, path, options)
  return { get: of('GET'), post: of('POST'), put: of('PUT'), patch: of('PATCH'), delete: of('DELETE') }
}
