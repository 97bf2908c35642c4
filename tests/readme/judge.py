"""Runs `infra/judge.py` alongside `cargo local` as docs/moderation.md describes, and expects it to decide about pending
and public comments, leave other comments to a moderator, and refuse messages that the service didn't sign.

Usage: judge.py PROGRAM"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

JUDGE = Path(__file__).parents[2] / "infra/judge.py"
PATIENCE = 60
SETTINGS = {"SVC_WEBHOOKS": "true", "SVC_WEBHOOK_PRIVATE": "true", "SVC_SPAM_REVIEW": "watches"}


def call(base, token, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/{path}", data, method=method)
    request.add_header("authorization", f"Bearer {token}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def until(ask, expected):
    """Waits until `ask` returns the expected value. Events reach the judge asynchronously, through the table's stream
    and a queue."""
    end = time.monotonic() + PATIENCE
    while (answer := ask()) != expected:
        assert time.monotonic() < end, f"{answer}, not {expected}"
        time.sleep(0.1)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def refused(port):
    """Returns the status of the judge's response to a message without a signature."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", b"{}", timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return "nobody listens yet"
    return "accepted"


def main(program):
    command = [program, "--port", "0", "--ephemeral"]
    service = subprocess.Popen(command, env={**os.environ, **SETTINGS}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    judge = None
    try:
        api, member, moderator = (
            next(line.split()[1] for line in service.stdout if line.startswith(label + " "))
            for label in ("API", "member", "moderator")
        )
        port = free_port()
        hook = {"url": f"http://127.0.0.1:{port}/", "events": ["comment.pending", "comment.created", "comment.updated"]}
        secret = call(api, moderator, "POST", "moderation/webhooks", hook)["data"]["secret"]
        given = {"API": api, "TOKEN": moderator, "SECRET": secret}
        judge = subprocess.Popen([sys.executable, JUDGE, str(port)], env={**os.environ, **given}, stderr=subprocess.DEVNULL)
        until(lambda: refused(port), 401)

        def states():
            """Maps each comment's body to whether it is public and why it is held."""
            items = call(api, moderator, "GET", "moderation/comments?state=all")["data"]
            return {item["body"]: (item["is_approved"], item["held_for"]) for item in items}

        for body in ["Old watches are fine", "CASINO", "More at https://example.org", "New watches: https://example.org"]:
            call(api, member, "POST", "posts/1/comments", {"body": body})
        until(states, {
            "Old watches are fine": (True, None),
            "CASINO": (False, None),
            "More at https://example.org": (True, None),
            "New watches: https://example.org": (False, "spam"),
        })
        print("the sample judge decides as documented")
    finally:
        for process in filter(None, [judge, service]):
            process.terminate()
            process.wait(timeout=PATIENCE)


main(sys.argv[1])
