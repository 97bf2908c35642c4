"""Writes comments through the API of a running Waline, exports them as its management page does, imports the file into
a data directory of `cargo local`, and compares the comments that both show.

Usage: waline.py PACKAGE PROGRAM, with the folder of @waline/vercel and the program of `cargo local`."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True
import moved
from moved import PATIENCE

PAGE = "/2024/hello world/"
RECORD = "2024:hello~20world"
# Waline stores times without a zone. Its Docker image uses this zone by default.
ZONE = "Asia/Shanghai"
START = Path(__file__).with_name("waline.cjs")
# The SQLite schema in Waline's documentation, without the columns for social accounts.
TABLES = """
    CREATE TABLE wl_Comment (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER, comment TEXT,
        insertedAt DATETIME DEFAULT (datetime('now', 'localtime')), ip TEXT, link TEXT, mail TEXT, nick TEXT, rid INTEGER,
        pid INTEGER, sticky NUMERIC, status TEXT NOT NULL, "like" INTEGER, ua TEXT, url TEXT,
        createdAt DATETIME DEFAULT (datetime('now', 'localtime')), updatedAt DATETIME DEFAULT (datetime('now', 'localtime')));
    CREATE TABLE wl_Counter (id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER, url TEXT,
        createdAt DATETIME DEFAULT (datetime('now', 'localtime')), updatedAt DATETIME DEFAULT (datetime('now', 'localtime')));
    CREATE TABLE wl_Users (id INTEGER PRIMARY KEY AUTOINCREMENT, display_name TEXT, email TEXT, password TEXT, type TEXT,
        label TEXT, url TEXT, avatar TEXT, "2fa" TEXT,
        createdAt DATETIME DEFAULT (datetime('now', 'localtime')), updatedAt DATETIME DEFAULT (datetime('now', 'localtime')));
"""
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
# The widget inserts its emoji into a comment as images.
EMOJI = '<img class="wl-emoji" src="https://emoji.example/yes.png" alt="yes">'


class Waline:
    """A visitor of a running Waline, or a signed-in user with a token."""

    def __init__(self, base, token=None):
        self.base = base
        self.token = token

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/api/{path}", data, method=method)
        request.add_header("content-type", "application/json")
        if self.token:
            request.add_header("authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer = json.load(response)
        assert answer["errno"] == 0, answer
        return answer["data"]

    def sign_up(self, name, email):
        """Signs up a user. Waline makes the first user the administrator."""
        self.call("POST", "user", {"display_name": name, "email": email, "password": email, "url": ""})
        return Waline(self.base, self.call("POST", "token", {"email": email, "password": email})["token"])

    def comment(self, nick, text, parent=None, **more):
        """Writes a comment. `parent` is the value returned for the comment it replies to."""
        body = {"nick": nick, "mail": "", "link": "", "ua": AGENT, "url": PAGE, "comment": text, **more}
        if parent:
            body |= {"pid": parent["objectId"], "rid": parent["rid"] or parent["objectId"], "at": parent["nick"]}
        return {"rid": None, **self.call("POST", "comment", body)}

    def change(self, written, **fields):
        self.call("PUT", f"comment/{written['objectId']}", fields)

    def shown(self):
        """Returns the page's comments as guests see them, oldest first, with nested replies."""
        query = urllib.parse.urlencode({"path": PAGE, "page": 1, "pageSize": 100, "sortBy": "insertedAt_asc"})
        page = self.call("GET", f"comment?{query}")
        return page["data"]


def start_waline(package, folder):
    with sqlite3.connect(folder / "waline.sqlite") as database:
        database.executescript(TABLES)
    port = moved.free_port()
    environment = os.environ | {
        "SQLITE_PATH": str(folder),
        "JWT_TOKEN": "secret",
        "TZ": ZONE,
        # Turns off the rate limit and calls to other services, and marks comments with the word "pills" as spam.
        "IPQPS": "0",
        "FORBIDDEN_WORDS": "pills",
        "AKISMET_KEY": "false",
        "OAUTH_URL": 'data:application/json,{"services":[]}',
    }
    command = ["node", "--eval", START.read_text(), Path(package).resolve(), str(port)]
    with open(folder / "waline.log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    waline = Waline(f"http://127.0.0.1:{port}")

    def answers():
        try:
            return waline.shown() == []
        except urllib.error.URLError:
            return False

    moved.wait_for(server, answers, folder / "waline.log")
    return waline, server


def write(guest):
    """Writes the test comments. Waline doesn't show the last three, so they are not compared."""
    admin = guest.sign_up("Admin", "admin@blog.example")
    text = "Hello **world**, <script>alert(1)</script>\nsecond line, https://blog.example/a_b_c?x=1&y=2."
    top = guest.comment("Ada", text, mail="ada@blog.example", link="https://ada.example")
    reply = guest.comment("Bob", f"{EMOJI} *yes*", top)
    guest.comment("Ada", "> yes\n\nno, `https://code.example`", reply, mail="ada@blog.example")
    guest.comment("汪小喵", "<p>an <b>old</b> comment</p>\n<p>by <a href='https://hexo.example/'>import</a></p>")
    signed = admin.comment("As I was called", "By the *house*", top)
    admin.change(signed, comment="By the **house**")
    pinned = guest.comment("Bob", "- one\n- two\n\n```js\nif (a < b) { c(); }\n```\n![cat](https://images.example/cat.png)")
    admin.change(pinned, sticky=1)
    guest.change(top, like=True)
    guest.change(top, like=True)
    guest.comment("Spammer", "buy pills", top)
    admin.change(guest.comment("Eve", "waits"), status="waiting")
    admin.call("DELETE", f"comment/{guest.comment('Eve', 'gone')['objectId']}")
    return admin


def of_waline(comment):
    created = datetime.fromtimestamp(comment["time"] / 1000, timezone.utc)
    return {
        "name": comment["nick"],
        "content": moved.content(comment["comment"]),
        "created_at": created.isoformat(),
        "likes": comment["like"],
        "pinned": bool(comment["sticky"]),
        "moderator": comment.get("type") == "administrator",
    }


def of_ours(comment):
    return {
        "name": comment["user"]["name"],
        "content": moved.content(comment["html"]),
        "created_at": comment["created_at"],
        "likes": comment["likes_count"],
        "pinned": comment["pinned"],
        "moderator": comment["is_moderator"],
    }


def tree_of_waline(comments):
    """Returns the thread with nested replies: pinned comments first, then oldest first. Waline lists all replies below
    their top-level comment, and `pid` is the id of a reply's parent."""

    def below(parent, replies):
        answers = sorted((each for each in replies if each["pid"] == parent["objectId"]), key=lambda each: each["objectId"])
        return [(of_waline(each), below(each, replies)) for each in answers]

    roots = sorted(comments, key=lambda each: (not each["sticky"], each["objectId"]))
    return [(of_waline(root), below(root, root["children"])) for root in roots]


def tree_of_ours(comments):
    return [(of_ours(each), tree_of_ours(each["replies"])) for each in comments]


def main(package, program):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        data = folder / "data"
        waline, server = start_waline(package, folder)
        try:
            admin = write(waline)
            expected = tree_of_waline(waline.shown())
            # The management page downloads this response as waline.json.
            (folder / "waline.json").write_text(json.dumps(admin.call("GET", "db"), indent="\t", ensure_ascii=False))
        finally:
            server.terminate()
            server.wait(PATIENCE)

        first = moved.run_import(program, "waline", folder / "waline.json", data, "--zone", ZONE)
        assert (first["new"], first["skipped"]) == (7, {"spam": 1}), first
        assert (first["refused"], first["unmapped"], first["moved"]) == ([], [], []), first
        assert first["threads"] == {f"posts/{RECORD}": 7}, first
        again = moved.run_import(program, "waline", folder / "waline.json", data, "--zone", ZONE)
        assert (again["new"], again["already_there"]) == (0, 7), again

        moved.compare(expected, tree_of_ours(moved.threads(program, data, [RECORD])[RECORD]))
        print(f"{first['read']} Waline comments read, {first['new']} imported; guests see the same on both")


if __name__ == "__main__":
    main(*sys.argv[1:])
