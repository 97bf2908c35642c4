// Verifies `{secret, headers, body}` on standard input with the library of npm. Exits with 0 if the signature is valid.

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
