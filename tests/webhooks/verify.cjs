// Verifies `{secret, headers, body}` from standard input with the npm library. Exits with 0 if the signature is valid.

const { Webhook } = require('standardwebhooks')

let text = ''
process.stdin.on('data', (part) => (text += part))
process.stdin.on('end', () => {
  const { secret, headers, body } = JSON.parse(text)
  try {
    new Webhook(secret).verify(body, headers)
  } catch {
    process.exitCode = 1
  }
})
