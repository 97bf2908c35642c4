"""A sample judge for your own rules. A webhook notifies it of each comment, and it approves or rejects the comment, or leaves
it to a person. It needs only Python.

    API=https://API/svc/api/v1 TOKEN=JWT SECRET=whsec_... python3 judge.py 8081

TOKEN is a moderator's token from your site, valid for as long as the judge runs. The moderation page shows SECRET once, when you
add a webhook with the judge's URL for comment.pending, comment.created and comment.updated."""

import base64
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API, TOKEN = os.environ["API"], os.environ["TOKEN"]
SECRET = base64.b64decode(os.environ["SECRET"].removeprefix("whsec_"))
# The maximum age of a message in seconds. An older one may be a replay.
TOLERANCE = 300
# Statuses that mean that the comment is gone or its text has changed. Another message reports the change.
PASSED = (404, 409)


def judge(text):
    """Returns approve, reject, or None for a person. Query your own model here."""
    if "casino" in text.lower():
        return "reject"
    return None if "http" in text else "approve"


def is_ours(headers, body):
    """Whether the service signed the message, following standardwebhooks.com."""
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
    digest = hmac.digest(SECRET, f"{name}.{at}.".encode() + body, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected, one) for one in signatures) and abs(time.time() - int(at)) < TOLERANCE


def decide(comment):
    """Decides on a comment. Repeating a decision changes nothing, so a message may arrive twice."""
    action = judge(comment["body"])
    if action is None or (action == "approve" and comment["is_approved"]):
        return
    # The version that was judged. If the comment has been edited since, the decision fails.
    decision = {"updated_at": comment["updated_at"]} | ({"reason": "spam"} if action == "reject" else {})
    request = urllib.request.Request(f"{API}/comments/{comment['id']}/{action}", json.dumps(decision).encode(), method="POST")
    request.add_header("authorization", f"Bearer {TOKEN}")
    request.add_header("content-type", "application/json")
    try:
        urllib.request.urlopen(request, timeout=8).close()
    except urllib.error.HTTPError as error:
        if error.code not in PASSED:
            raise


class Judge(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 204
        if not is_ours(self.headers, body):
            status = 401
        else:
            message = json.loads(body)
            try:
                if "body" in message["data"]:
                    decide(message["data"])
            except OSError as error:
                # The service will resend the message.
                print(error, file=sys.stderr)
                status = 503
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("", int(sys.argv[1])), Judge).serve_forever()
