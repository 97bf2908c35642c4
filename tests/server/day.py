"""A compressed day on one machine: an upgrade, two sites' readers, kills, a backup, a restore elsewhere, emails, and a
move to an AWS table and back."""

import http.client
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error

from machine import API, PATIENCE, ROOT, SECRET, Caddy, Container, ask, environment, free_port, started, token

SITES = ("https://blog.example", "https://shop.example")
KILLS = 3
# Acknowledged writes to wait for before each kill, and before and after the backup.
WRITES = 40


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


class Readers:
    """Four members who post comments from two sites until the service stops. `acknowledged` has the ids from the
    responses."""

    def __init__(self, site):
        self.api, self.acknowledged, self.stopped = f"{site}/{API}", set(), False
        self.threads = []

    def write(self):
        self.stopped = False
        self.threads = [threading.Thread(target=self._write, args=(number,)) for number in range(4)]
        for thread in self.threads:
            thread.start()

    def _write(self, number):
        origin, me = SITES[number % 2], {"authorization": f"Bearer {token(100 + number, f'Reader {number}')}"}
        try:
            while not self.stopped:
                parent = self._comment(number % 2, me, origin, {"body": "A word."})
                self._comment(number % 2, me, origin, {"body": "Another.", "parent_id": parent})
                ask(f"{self.api}/comments/{parent}/like", "POST", {}, Origin=origin, **me)
        except (Gone, urllib.error.URLError, ConnectionError, http.client.HTTPException):
            return

    def _comment(self, record, me, origin, body):
        status, headers, answer = ask(f"{self.api}/posts/{record}/comments", "POST", body, Origin=origin, **me)
        if status == 502:
            raise Gone
        assert status == 201 and headers["access-control-allow-origin"] == origin, (status, answer)
        comment = json.loads(answer)["data"]["id"]
        self.acknowledged.add(comment)
        return comment

    def wait_for_more(self, count):
        enough = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= enough)

    def end(self):
        self.stopped = True
        for thread in self.threads:
            thread.join()


class Gone(Exception):
    """Caddy responds, but the service behind it doesn't."""


def exported(container):
    """Returns the export and the ids of its comments."""
    export = container.run("export", stdout=subprocess.PIPE).stdout
    records = [json.loads(line) for line in export.splitlines()]
    return export, {int(record["comment"]["id"]) for record in records if "comment" in record}


def is_in_order(container):
    container.run("check", stdout=subprocess.DEVNULL)


def upgraded(container):
    """Copies a data directory of an older version into the container."""
    shutil.copytree(ROOT / "tests" / "data_dirs" / "unversioned", container.data, dirs_exist_ok=True)
    container.give()


def mail_server(folder):
    folder.mkdir()
    port = free_port()
    command = [sys.executable, ROOT / "tests" / "smtp" / "server.py", str(port), folder, "plain"]
    server = started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout.readline().strip() == "ready"
    return server, f"smtp://user:p%40ss@127.0.0.1:{port}"


def notifies(api, mails):
    """Checks that a reply reaches its subscriber by email."""
    ada = {"authorization": f"Bearer {token(7, 'Ada', email='ada@example.org')}"}
    status, _, answer = ask(f"{api}/posts/9/comments", "POST", {"body": "Who replies?", "subscribe_to_replies": True}, **ada)
    assert status == 201, answer
    bob = {"authorization": f"Bearer {token(8, 'Bob')}"}
    reply = {"body": "A reply that is sent.", "parent_id": json.loads(answer)["data"]["id"]}
    assert ask(f"{api}/posts/9/comments", "POST", reply, **bob)[0] == 201
    until(lambda: any("A reply that is sent." in mail.read_text() for mail in mails.glob("*.eml")))


def moves_to_aws_and_back(program, export, salt, folder):
    """Moves an export into an emulated AWS table and then into an empty data directory. The export must stay the same
    byte for byte."""
    folder.mkdir()
    file, from_aws, back = folder / "export.jsonl", folder / "aws.jsonl", folder / "back"
    file.write_bytes(export)
    services = started(
        [program, "--services-only", "--ephemeral", "--port", "0"], env=environment(), stdout=subprocess.PIPE, text=True
    )
    lines = iter(services.stdout.readline, "")
    named = {}
    for line in lines:
        if found := re.match(r"export (\w+)='(.*)'", line):
            named[found[1]] = found[2]
        if line.startswith("# listening"):
            break
    aws = environment() | {name: value for name, value in named.items() if name.startswith("AWS_")} | {"SVC_VISITOR_SALT": salt}

    def run(*words, **options):
        subprocess.run([program, *words], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, **options)

    table = ["--table", named["TABLE_NAME"]]
    run("import", "native", file, *table, env=aws)
    run("check", *table, env=aws)
    run("export", "--out", from_aws, *table, env=aws)
    services.terminate()
    services.wait(PATIENCE)
    assert from_aws.read_bytes() == export

    here = environment() | {"SVC_VISITOR_SALT": salt, "COMMENTS_DATA_DIR": str(back)}
    run("import", "native", from_aws, env=here)
    run("check", env=here)
    run("export", "--out", file, env=here)
    assert file.read_bytes() == export
    # The first start stores the salt, so the second doesn't need it.
    for _ in range(2):
        here["SVC_PUBLIC_URL"] = "https://comments.example.org"
        server = started([program, "serve", "--listen", "127.0.0.1:0"], env=here, stdout=subprocess.PIPE, text=True)
        address = json.loads(server.stdout.readline())["address"]
        listed = json.loads(ask(f"http://{address}/{API}/posts/1/comments?sort=oldest")[2])
        assert listed["data"][0]["body"] == "Written before there were versions."
        server.terminate()
        assert server.wait(PATIENCE) == 0
        here.pop("SVC_VISITOR_SALT", None)


def day(layout, program, folder):
    folder.mkdir(mode=0o711)
    home, elsewhere = Container(layout, folder / "home"), Container(layout, folder / "elsewhere")
    port, mails = free_port(), folder / "mails"
    server, smtp = mail_server(mails)
    caddy = Caddy(folder / "caddy", port)
    settings = {
        "SVC_PUBLIC_URL": caddy.site, "SVC_CORS_ORIGINS": ",".join(SITES), "SVC_JWT_SECRET": SECRET, "SVC_WRITE_LIMIT": "1000000",
        "SVC_SUBSCRIPTIONS": "true", "SVC_MAIL_FROM": "comments@example.org", "SVC_SMTP_URL": smtp, "SVC_MAIL_WAIT": "0",
        "SVC_PAGE_URL": "https://blog.example/{type}/{id}",
    }
    readers = Readers(caddy.site)
    upgraded(home)
    for _ in range(KILLS):
        serving = home.serve(port, settings)
        readers.write()
        readers.wait_for_more(WRITES)
        serving.kill()
        readers.end()
    print(f"{KILLS} kills, {len(readers.acknowledged)} comments", flush=True)

    serving = home.serve(port, settings)
    readers.write()
    readers.wait_for_more(WRITES)
    before = set(readers.acknowledged)
    backup = home.run("backup", "--out", "-", stdout=subprocess.PIPE).stdout
    readers.wait_for_more(WRITES)
    readers.end()
    notifies(readers.api, mails)
    status, _, listed = ask(f"{readers.api}/posts/1/comments?sort=oldest")
    assert status == 200 and b"Written before there were versions." in listed
    serving.stop()
    is_in_order(home)
    export, kept = exported(home)
    assert readers.acknowledged <= kept, readers.acknowledged - kept

    elsewhere.run("restore", "-", "--data-dir", elsewhere.process["cwd"], input=backup, stdout=subprocess.DEVNULL)
    is_in_order(elsewhere)
    serving = elsewhere.serve(port, settings)
    assert ask(f"{readers.api}/comments/{max(before)}")[0] == 200
    serving.stop()
    kept = exported(elsewhere)[1]
    assert before <= kept, before - kept
    print(f"backup and restore, {len(before)} comments", flush=True)

    moves_to_aws_and_back(program, export, (home.data / "visitor-salt").read_text(), folder / "moved")
    print("moved to an AWS table and back", flush=True)
    caddy.stop()
    server.terminate()
