"""A production machine without a container daemon: the image's program as the image configures it, Caddy in front of
it, and an HTTP client."""

import atexit
import base64
import ctypes
import hashlib
import hmac
import json
import os
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "import"))
from moved import PATIENCE, environment, free_port, wait_for

PACKAGE = ROOT / "infra" / "server" / "package"
SECRET = "a secret of these tests, long enough"
API = "svc/api/v1"
PR_SET_NO_NEW_PRIVS = 38


def started(*words, **options):
    """Starts a process that is killed when this one exits."""
    process = subprocess.Popen(*words, **options)
    atexit.register(process.kill)
    return process


class Container:
    """A container of the image: its files, user, working directory and entry point. Needs root."""

    def __init__(self, layout, folder):
        subprocess.run(["umoci", "unpack", "--image", f"{layout}:latest", folder], check=True, stderr=subprocess.DEVNULL)
        self.folder, self.root = folder, folder / "rootfs"
        self.process = json.loads((folder / "config.json").read_text())["process"]
        assert self.process["args"] == ["/comments-server", "serve"], self.process
        self.data = self.root / self.process["cwd"].lstrip("/")

    def _enter(self):
        user = self.process["user"]
        for limit in self.process["rlimits"]:
            resource.setrlimit(getattr(resource, limit["type"]), (limit["soft"], limit["hard"]))
        os.chroot(self.root)
        os.chdir(self.process["cwd"])
        os.setgroups([])
        os.setgid(user["gid"])
        os.setuid(user["uid"])
        assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0

    def command(self, words, settings=None):
        """Returns Popen's arguments for a process that runs `words` with the image's entry point."""
        variables = dict(variable.split("=", 1) for variable in self.process["env"]) | (settings or {})
        return {"args": [self.process["args"][0], *words], "env": variables, "preexec_fn": self._enter}

    def run(self, *words, settings=None, **options):
        return subprocess.run(**self.command(words, settings), check=True, timeout=PATIENCE, **options)

    def give(self):
        """Makes the image's user the owner of the data."""
        for path in [self.data, *self.data.rglob("*")]:
            os.chown(path, self.process["user"]["uid"], self.process["user"]["gid"])

    def serve(self, port, settings):
        return Serving(self, port, settings)


class Serving:
    """A running service in a container, from readiness to its end."""

    def __init__(self, container, port, settings):
        self.log = container.folder / "log"
        command = container.command(["serve", "--listen", f"127.0.0.1:{port}"], settings)
        with open(self.log, "w") as log:
            self.process = started(**command, stdout=log, stderr=log)
        wait_for(self.process, lambda: "listening on" in self.log.read_text(), self.log)

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)


class Caddy:
    """Caddy with the package's Caddyfile, except for the addresses. It issues its own certificates."""

    def __init__(self, folder, upstream_port):
        self.port, self.tls_port = free_port(), free_port()
        folder.mkdir()
        text = (PACKAGE / "Caddyfile").read_text()
        assert "comments.example.org {" in text and "comments:3000" in text
        text = text.replace("comments.example.org", f"http://127.0.0.1:{self.port}, https://localhost:{self.tls_port}")
        text = text.replace("comments:3000", f"127.0.0.1:{upstream_port}")
        options = "admin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\n"
        (folder / "Caddyfile").write_text(f"{{\n{options}storage file_system {folder}\n}}\n{text}")
        self.certificate = folder / "pki" / "authorities" / "local" / "root.crt"
        log = folder / "log"
        with open(log, "w") as output:
            command = ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]
            homes = {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
            self.process = started(command, env=os.environ | homes, stdout=output, stderr=output)
        wait_for(self.process, lambda: self.certificate.exists() and "serving initial configuration" in log.read_text(), log)

    @property
    def site(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def token(user, name, *, moderator=False, email=None):
    """Returns a token like those that a host page's server signs."""
    now = int(time.time())
    claims = {"sub": str(user), "name": name, "iat": now - 1, "exp": now + 3600}
    claims |= {"roles": ["moderator"]} if moderator else {}
    claims |= {"email": email, "email_verified": True} if email else {}

    def part(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    signed = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    return (signed + b"." + part(hmac.digest(SECRET.encode(), signed, hashlib.sha256))).decode()


def ask(url, method="GET", body=None, **headers):
    """Returns the status, headers and body of a response, whatever its status."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()}, method=method)
    if data:
        request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.status, refusal.headers, refusal.read()
