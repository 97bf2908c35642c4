"""Writes comments through the API of a running Isso, imports its database into a data directory of `cargo local`, and
compares the comments that both APIs return.

Usage: isso.py ISSO PROGRAM, with the programs of Isso and of `cargo local`."""

import http.cookiejar
import json
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import moved
from moved import PATIENCE

PAGE = "/2024/hello world/"
RECORD = "2024:hello~20world"


class Isso:
    """A visitor of a running Isso, identified by cookies."""

    def __init__(self, base):
        self.base = base
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}{path}", data, method=method)
        request.add_header("content-type", "application/json")
        request.add_header("x-forwarded-for", "203.0.113.7")
        with self.opener.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def comment(self, author, text, parent=None, email=None):
        body = {"author": author, "email": email, "text": text, "parent": parent, "title": "Hello"}
        return self.call("POST", f"/new?uri={urllib.request.quote(PAGE)}", body)["id"]


def start_isso(program, folder):
    base = f"http://127.0.0.1:{moved.free_port()}"
    (folder / "isso.cfg").write_text(
        f"[general]\ndbpath = {folder}/isso.db\nhost = {base}\n"
        f"[server]\nlisten = {base}\ntrusted-proxies = 127.0.0.1\n[guard]\nenabled = false\n"
    )
    with open(folder / "isso.log", "w") as log:
        server = subprocess.Popen([program, "-c", folder / "isso.cfg", "run"], stdout=log, stderr=log)

    def answers():
        try:
            urllib.request.urlopen(f"{base}/config", timeout=PATIENCE).close()
        except urllib.error.URLError:
            return False
        return True

    moved.wait_for(server, answers, folder / "isso.log")
    return base, server


def write(isso_program, folder):
    """Writes the test comments and returns their ids by label."""
    base, server = start_isso(isso_program, folder)
    try:
        ada, bob = Isso(base), Isso(base)
        ids = {"top": ada.comment("Ada", "Hello **world**, <script>alert(1)</script>\nnext line", email="ada@example.org")}
        ids["reply"] = bob.comment("Bob", "An answer", parent=ids["top"])
        ids["edited"] = ada.comment("Ada", "Tpyo")
        ada.call("PUT", f"/id/{ids['edited']}", {"text": "Typo", "author": "Ada", "email": None, "website": None})
        ids["gone"] = bob.comment("Bob", "Never mind")
        bob.call("DELETE", f"/id/{ids['gone']}")
        ids["answered"] = bob.comment("Bob", "Deleted, and answered")
        ids["answer"] = ada.comment("Ada", "To nobody", parent=ids["answered"])
        bob.call("DELETE", f"/id/{ids['answered']}")
        liked = urllib.request.Request(f"{base}/id/{ids['top']}/like", b"{}", method="POST")
        liked.add_header("content-type", "application/json")
        liked.add_header("x-forwarded-for", "198.51.100.9")
        urllib.request.urlopen(liked, timeout=PATIENCE).close()
        return ids
    finally:
        server.terminate()
        server.wait(PATIENCE)


def main(isso_program, program):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        data = folder / "data"
        ids = write(isso_program, folder)
        first = moved.run_import(program, "isso", folder / "isso.db", data)
        assert (first["new"], first["refused"], first["unmapped"]) == (5, [], []), first
        assert first["threads"] == {f"posts/{RECORD}": 5}, first
        again = moved.run_import(program, "isso", folder / "isso.db", data)
        assert (again["new"], again["already_there"]) == (0, 5), again

        top, edited, placeholder = moved.threads(program, data, [RECORD])[RECORD]
        assert "<strong>world</strong>" in top["html"] and "<script" not in top["html"], top
        # Isso preserves line breaks.
        assert re.search(r"<br />\s*next line", top["html"]), top
        assert (top["user"]["name"], top["likes_count"], top["replies_count"]) == ("Ada", 1, 1), top
        assert [reply["body"] for reply in top["replies"]] == ["An answer"], top
        assert edited["body"] == "Typo" and edited["updated_at"] >= edited["created_at"], edited
        assert placeholder["is_deleted"] and placeholder["body"] == "", placeholder
        assert [reply["body"] for reply in placeholder["replies"]] == ["To nobody"], placeholder
        print(f"{len(ids)} Isso comments, {first['new']} imported; both APIs show the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
