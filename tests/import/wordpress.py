"""Writes comments with WordPress's own functions, exports them as Tools > Export does, imports the file into a data
directory of `cargo local`, and compares the comments that both show.

Usage: wordpress.py FOLDER PROGRAM, with the folder of WordPress and the program of `cargo local`. It needs php with
mysqli, and mariadbd."""

import getpass
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import moved
from moved import PATIENCE

SITE = Path(__file__).with_suffix(".php")
CREATE = 'mysqli_connect("localhost", "root", "", "", 0, $argv[1])->query("CREATE DATABASE wordpress CHARACTER SET utf8mb4");'
# WordPress shows typographic quotes and dashes, but the file has the text as it was typed.
TYPED = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "…": "..."})


def start_database(folder):
    """Starts a database without system tables, which WordPress does not need. It listens on a socket in the folder."""
    data = folder / "database"
    data.mkdir()
    socket = data / "socket"
    command = ["mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={data}", f"--socket={socket}"]
    with open(folder / "database.log", "w") as log:
        server = subprocess.Popen([*command, "--skip-grant-tables", "--skip-networking"], stdout=log, stderr=log)
    moved.wait_for(server, socket.exists, folder / "database.log")
    php("-r", CREATE, socket)
    return socket, server


def php(*arguments):
    command = ["php", "-d", "display_errors=stderr", *arguments]
    return subprocess.run(command, check=True, timeout=PATIENCE, stdout=subprocess.PIPE).stdout


def of_wordpress(comments):
    return [
        (
            {"name": each["name"], "content": moved.content(each["html"]).translate(TYPED), "created_at": each["created_at"]},
            of_wordpress(each["replies"]),
        )
        for each in comments
    ]


def of_ours(comments):
    return [
        (
            {"name": each["user"]["name"], "content": moved.content(each["html"]), "created_at": each["created_at"]},
            of_ours(each["replies"]),
        )
        for each in comments
    ]


def main(wordpress, program):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        data, file = folder / "data", folder / "blog.xml"
        socket, server = start_database(folder)
        try:
            php(SITE, wordpress, socket, "install")
            site = json.loads(php(SITE, wordpress, socket, "write"))
            file.write_bytes(php(SITE, wordpress, socket, "export"))
        finally:
            server.terminate()
            server.wait(PATIENCE)

        # The zone applies only to comments without a UTC time. The file has no such comments.
        first = moved.run_import(program, "wordpress", file, data, "--zone", "Pacific/Auckland")
        # WordPress does not export spam.
        assert (first["new"], first["skipped"]) == (11, {"pingback": 1}), first
        assert (first["refused"], first["unmapped"], first["moved"]) == ([], [], []), first
        again = moved.run_import(program, "wordpress", file, data)
        assert (again["new"], again["already_there"]) == (0, 11), again

        posts = site["posts"]
        shown = moved.threads(program, data, [*posts, site["held"]])
        for post, comments in posts.items():
            moved.compare(of_wordpress(comments), of_ours(shown[post]))
        (placeholder,) = shown[site["held"]]
        assert placeholder["is_deleted"] and placeholder["body"] == "", placeholder
        assert [reply["body"] for reply in placeholder["replies"]] == ["to nobody"], placeholder
        print(f"{first['read']} WordPress comments read, {first['new']} imported; guests see the same on both")


if __name__ == "__main__":
    main(*sys.argv[1:])
