"""Tests a release for a single machine: the systemd unit's restrictions, the image's entry point, every route behind
Caddy with the package's Caddyfile, and a day of use.

Usage: run.py PROGRAM LAYOUT WALK, as root: the static program, the image made from it, and the test binary `deployed`.
Needs caddy, strace, systemd-analyze, umoci, and Python with aiosmtpd."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import day
from machine import API, PACKAGE, PATIENCE, SECRET, Caddy, Container, ask, environment, free_port, started, token, wait_for

UNIT = PACKAGE / "comments.service"
USER = 65532
# Maximum exposure, out of 10. The unit scores 1.2 in systemd 252, mostly for the network.
EXPOSURE = 1.5


def unit_is_valid(program, folder):
    """Only verifies the unit, because systemd can't run units here."""
    copy = folder / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/local/bin/comments-server", str(program)))
    read = subprocess.run(["systemd-analyze", "verify", copy], check=True, capture_output=True, text=True)
    assert not read.stderr, read.stderr
    subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE * 10:.0f}", copy],
        check=True, stdout=subprocess.DEVNULL,
    )


def system_calls(names):
    """Returns the system calls in a systemd list, with @groups expanded."""
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        listed = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True)
        calls |= system_calls(line.strip() for line in listed.stdout.splitlines()[1:] if line.strip() and "#" not in line)
    return calls


def values(name):
    return [line.split("=", 1)[1] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]


def obeys_the_unit(program, folder):
    """Checks that the program does nothing that the unit forbids, from start to stop. It runs as the unit's user,
    without capabilities."""
    allowed, denied = values("SystemCallFilter")
    allowed = system_calls(allowed.split()) - system_calls(denied.lstrip("~").split())
    families = set(values("RestrictAddressFamilies")[0].split())
    data, trace, log = folder / "data", folder / "trace", folder / "log"
    data.mkdir()
    os.chown(data, USER, USER)
    supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    supervisor.bind(str(folder / "notify"))
    supervisor.settimeout(PATIENCE)
    (folder / "notify").chmod(0o777)
    confined = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    port = free_port()
    settings = {
        "SVC_PUBLIC_URL": f"http://127.0.0.1:{port}", "SVC_JWT_SECRET": SECRET, "NOTIFY_SOCKET": str(folder / "notify"),
        "COMMENTS_DATA_DIR": str(data),
    }
    command = [*confined, program, "serve", "--listen", f"127.0.0.1:{port}"]
    with open(log, "w") as output:
        process = started(
            ["strace", "-D", "-f", "-qq", "-y", "-s", "256", "-e", "signal=none", "-o", trace, *command],
            env=environment() | settings, stdout=output, stderr=output, umask=0o077,
        )
    wait_for(process, lambda: "listening on" in log.read_text(), log)
    assert supervisor.recv(64) == b"READY=1"
    ada = {"authorization": f"Bearer {token(7, 'Ada', moderator=True)}"}
    api = f"http://127.0.0.1:{port}/{API}"
    assert ask(f"{api}/posts/1/comments", "POST", {"body": "Hello"}, **ada)[0] == 201
    image = subprocess.run(
        ["curl", "--silent", "--fail", f"{api}/media", "--header", f"Authorization: {ada['authorization']}", "--form", f"file=@{PACKAGE.parents[2]}/tests/events/upload.png"],
        check=True, capture_output=True,
    )
    day.until(lambda: ask(json.loads(image.stdout)["thumbnail_url"])[0] == 200)
    subprocess.run([*confined, program, "backup", "--out", data / "backup.tar"], env=environment() | settings, check=True)
    process.terminate()
    assert process.wait(PATIENCE) == 0 and supervisor.recv(64) == b"STOPPING=1", log.read_text()

    text = trace.read_text()
    # Skips the system calls of setpriv and its loader, which come first.
    text = text[text.index("= 0", text.index(f'execve("{program}"')) :]
    used = set(re.findall(r"^\d+ +(\w+)\(", text, re.MULTILINE))
    assert len(used) > 40 and used <= allowed, sorted(used - allowed)
    assert set(re.findall(r"\bsocket\((AF_\w+)", text)) <= families
    assert not re.search(r"\b(mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC", text)
    written = re.findall(r'\bopen(?:at)?\(.*O_(?:WRONLY|RDWR|CREAT).*= \d+<([^>]+)>', text)
    assert written and all(Path(path).is_relative_to(data) for path in written), written
    assert {path.stat().st_mode & 0o077 for path in data.rglob("*")} == {0}


def nothing_of_development(caddy, log):
    for path in ("", "_mail", "_mail/1", "demo"):
        status, _, body = ask(f"{caddy.site}/{path}")
        assert status == 404 and b"not_found" in body, path
    # By default, pages of any origin may call the API, whatever the `Host` header.
    status, headers, _ = ask(f"{caddy.site}/{API}/posts/1/comments", Origin="https://elsewhere.example", Host=f"127.0.0.1:{caddy.port}")
    assert status == 200 and headers["access-control-allow-origin"] == "*"
    assert "eyJ" not in log.read_text()


def a_client_is_who_connects(caddy):
    """Checks that Caddy replaces a forged X-Forwarded-For."""
    left = []
    for address in ("203.0.113.1", "203.0.113.2"):
        _, headers, _ = ask(f"{caddy.site}/{API}/comments/1/like", "POST", {}, X_Forwarded_For=address)
        left.append(int(headers["x-ratelimit-remaining"]))
    assert left[0] == left[1] + 1, left


def speaks_tls(caddy):
    context = ssl.create_default_context(cafile=caddy.certificate)
    with urllib.request.urlopen(f"https://localhost:{caddy.tls_port}/healthz", timeout=PATIENCE, context=context) as answer:
        assert answer.read() == b"ok"


def every_route(container, folder, walk):
    port = free_port()
    caddy = Caddy(folder / "caddy", port)
    serving = container.serve(port, {"SVC_PUBLIC_URL": caddy.site, "SVC_JWT_SECRET": SECRET})
    speaks_tls(caddy)
    nothing_of_development(caddy, serving.log)
    a_client_is_who_connects(caddy)
    served = {"SERVICE_URL": f"{caddy.site}/{API}", "SVC_JWT_SECRET": SECRET}
    subprocess.run([walk, "every_route"], env=environment() | served, cwd=PACKAGE.parents[2] / "tests", check=True)
    lines = serving.stop()
    assert sum("route" in line for line in lines) > 200 and all(line["level"] == "INFO" for line in lines), lines
    caddy.stop()


def main(program, layout, walk):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        # The unprivileged user needs access to the folder.
        folder.chmod(0o711)
        program = Path(shutil.copy(program, folder))
        for step, needs in ((unit_is_valid, (program,)), (obeys_the_unit, (program,))):
            place = folder / step.__name__
            place.mkdir(mode=0o711)
            step(*needs, place)
            print(step.__name__, "ok", flush=True)
        every_route(Container(layout, folder / "container"), folder, walk)
        print("every_route ok", flush=True)
        day.day(layout, program, folder / "day")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*(Path(path).resolve() for path in sys.argv[1:]))
