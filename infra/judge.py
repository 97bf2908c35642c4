"""A judge of your own. It hears of each comment by a webhook, and approves it, rejects it, or leaves it to a person. It needs
nothing but Python.

    API=https://API/svc/api/v1 TOKEN=JWT SECRET=whsec_... python3 judge.py 8081

TOKEN is a moderator's, which your site signs for as long as the judge runs. SECRET is what the moderators' page shows once, when
you add a webhook with this address for comment.pending, comment.created and comment.updated."""

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
# Seconds that a message may be old. An older one may be somebody's copy.
TOLERANCE = 300
# What says that the comment is gone, or has another text by now. Another message tells of that.
PASSED = (404, 409)


def judge(text):
    """approve, reject, or None for a person. Ask your own model here."""
    if "casino" in text.lower():
        return "reject"
    return None if "http" in text else "approve"


def is_ours(headers, body):
    """Whether the service has signed the message, as standardwebhooks.com says."""
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "0")
    digest = hmac.digest(SECRET, f"{name}.{at}.".encode() + body, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected, one) for one in signatures) and abs(time.time() - int(at)) < TOLERANCE


def decide(comment):
    """Decides once more what was decided already: that changes nothing, so a message may come twice."""
    action = judge(comment["body"])
    if action is None or (action == "approve" and comment["is_approved"]):
        return
    # The text that was judged. An edit in between is not decided.
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
                # The service sends it again.
                print(error, file=sys.stderr)
                status = 503
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("", int(sys.argv[1])), Judge).serve_forever()
