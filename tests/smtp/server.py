"""An SMTP server for tests. It writes each email to a folder and requires the login `user` with the password `p@ss`.

usage: server.py PORT FOLDER plain
       server.py PORT FOLDER starttls|tls CERTIFICATE KEY
"""

import ssl
import sys
import threading
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

port, folder, mode = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
context = None
if mode != "plain":
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*sys.argv[4:6])


class Handler:
    count = 0

    async def handle_DATA(self, server, session, envelope):
        if any(address.startswith("full@") for address in envelope.rcpt_tos):
            return "452 4.2.2 Mailbox full"
        self.count += 1
        tls = session.ssl is not None or server.transport.get_extra_info("sslcontext") is not None
        head = f"X-Envelope: {envelope.mail_from} {' '.join(envelope.rcpt_tos)} tls={tls}\r\n"
        (folder / f"{self.count}.eml").write_bytes(head.encode() + envelope.content)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, login):
    known = (login.login, login.password) == (b"user", b"p@ss")
    return AuthResult(success=known, handled=False)


Controller(
    Handler(),
    hostname="127.0.0.1",
    port=port,
    authenticator=authenticate,
    auth_required=True,
    auth_require_tls=mode == "starttls",
    require_starttls=mode == "starttls",
    tls_context=context if mode == "starttls" else None,
    ssl_context=context if mode == "tls" else None,
).start()
print("ready", flush=True)
threading.Event().wait()
