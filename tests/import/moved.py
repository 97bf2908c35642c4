"""Imports into a data directory of `cargo local`, and reads the comments from its API."""

import html.parser
import json
import os
import re
import socket
import subprocess
import time
import urllib.request

PATIENCE = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(server, is_ready, log):
    """Waits until the process is ready. If it ends or takes too long, fails with its log."""
    end = time.monotonic() + PATIENCE
    while not is_ready():
        assert server.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def run_import(program, source, file, data, *options):
    report = data.with_suffix(".json")
    command = [program, "import", source, file, "--data-dir", data, "--report", report, *options]
    subprocess.run(command, env=environment(), check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text())


def threads(program, data, records):
    """Returns each record's comments as the API lists them for guests, with all nested replies."""
    command = [program, "--data-dir", data, "--port", "0"]
    server = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        base = next(found[1] for line in server.stdout if (found := re.match(r"API +(\S+)", line)))

        def get(path):
            with urllib.request.urlopen(f"{base}/{path}", timeout=PATIENCE) as answer:
                return json.load(answer)["data"]

        def with_replies(comment):
            return comment | {"replies": [with_replies(reply) for reply in get(f"comments/{comment['id']}/replies")]}

        return {
            record: [with_replies(comment) for comment in get(f"posts/{record}/comments?sort=oldest")] for record in records
        }
    finally:
        server.terminate()
        server.wait(PATIENCE)


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}


class _Reader(html.parser.HTMLParser):
    SHOWN = {"strong": "b", "b": "b", "em": "i", "i": "i", "br": "br", "code": "code", "li": "li", "blockquote": "quote"}

    def __init__(self):
        super().__init__()
        self.seen = ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a":
            self.seen += f"<link {attributes['href']}>"
        elif tag == "img":
            self.seen += f"<image {attributes['src']} {attributes['alt']}>"
        elif tag in self.SHOWN:
            self.seen += f"<{self.SHOWN[tag]}>"

    def handle_data(self, data):
        self.seen += "".join(data.split())


def content(text):
    """Returns the visible text of HTML without white space, with markers for breaks, links, images, emphasis, code,
    quotes and items."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.seen


def compare(theirs, ours):
    """Compares two threads, which are lists of `(comment, replies)`."""
    assert len(theirs) == len(ours), f"\ntheirs: {theirs}\n  ours: {ours}"
    for (their_comment, their_replies), (our_comment, our_replies) in zip(theirs, ours):
        assert their_comment == our_comment, f"\ntheirs: {their_comment}\n  ours: {our_comment}"
        compare(their_replies, our_replies)
