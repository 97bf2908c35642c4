"""Starts `cargo local` with webhooks and a receiver, and writes a comment. The npm library and the PyPI library must
both verify the message's signature and refuse a changed message.

Usage: run.py PROGRAM, with `standardwebhooks` of PyPI installed, and that of npm in NODE_PATH."""

import json
import os
import queue
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

PATIENCE = 60
arrived = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    """Stores and accepts every message."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        arrived.put((self.path, dict((name.lower(), value) for name, value in self.headers.items()), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def call(base, token, method, path, body):
    request = urllib.request.Request(f"{base}/{path}", json.dumps(body).encode(), method=method)
    request.add_header("authorization", f"Bearer {token}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def verified_by_python(secret, headers, body):
    try:
        Webhook(secret).verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


def verified_by_node(secret, headers, body):
    script = Path(__file__).with_name("verify.cjs")
    text = json.dumps({"secret": secret, "headers": headers, "body": body})
    return subprocess.run(["node", script], input=text, text=True, timeout=PATIENCE, check=False).returncode == 0


def main(program):
    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    settings = {"SVC_WEBHOOKS": "true", "SVC_WEBHOOK_PRIVATE": "true"}
    command = [program, "--port", "0", "--ephemeral"]
    service = subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True)
    try:
        base, token = (
            next(line.split()[1] for line in service.stdout if line.startswith(label)) for label in ("API", "moderator")
        )
        hook = {"url": f"http://127.0.0.1:{receiver.server_port}/hook", "events": ["comment.created"]}
        secret = call(base, token, "POST", "moderation/webhooks", hook)["data"]["secret"]
        written = call(base, token, "POST", "posts/1/comments", {"body": "Grüße 😀"})["data"]
        path, headers, body = arrived.get(timeout=PATIENCE)
        message = json.loads(body)
        assert (path, message["type"], message["data"]["id"]) == ("/hook", "comment.created", written["id"]), message
        for verified in (verified_by_python, verified_by_node):
            assert verified(secret, headers, body), verified.__name__
            assert not verified(secret, headers, body + " "), f"{verified.__name__}: a changed body"
            other = {**headers, "webhook-id": "msg_1"}
            assert not verified(secret, other, body), f"{verified.__name__}: a changed id"
        print("npm and PyPI verify our signatures")
    finally:
        service.terminate()
        service.wait(timeout=PATIENCE)


main(sys.argv[1])
