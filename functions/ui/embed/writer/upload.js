/** Like `fetch`, but reports progress. */

/** @param {(share: number) => void} progress */
export const sendWith = (progress) => (/** @type {URL} */ url, /** @type {any} */ { method, headers, body, signal }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open(method, url)
    headers.forEach((value, name) => request.setRequestHeader(name, value))
    request.upload.onprogress = ({ loaded, total }) => progress(loaded / total)
    // A `Response` can't have a status above 599, which some proxies send.
    request.onload = () => resolve({ ok: request.status < 300, status: request.status, text: () => request.responseText })
    request.onerror = request.onabort = reject
    signal.onabort = () => request.abort()
    request.send(body)
  })
