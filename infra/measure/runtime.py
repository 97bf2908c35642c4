"""Shared by the measurements: runs release binaries of the functions against a local Runtime API."""

import http.server
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
FUNCTIONS = ["comments", "delivery", "events", "jobs", "media", "moderation", "public", "reactions", "sign_in", "thumbnails", "ui", "users"]
# Seconds before a function times out.
PATIENCE = 300

# Variables that Lambda or the template sets.
ENVIRONMENT = {
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
    "AWS_LAMBDA_FUNCTION_VERSION": "1",
    "AWS_LAMBDA_LOG_STREAM_NAME": "s",
    "AWS_LAMBDA_LOG_GROUP_NAME": "g",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "session",
    "TABLE_NAME": "comments",
    "JOBS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/jobs",
    "MEDIA_BUCKET": "media",
    "MEDIA_BASE_URL": "https://media.example.org",
    "SVC_JWT_SECRET": "the secret that signs all the tokens",
    "SVC_VISITOR_SALT": "the salt of visitors",
}


class Server:
    """An HTTP server on a free port."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def address(self):
        return f"127.0.0.1:{self.server.server_port}"


class EmptyTable(Server):
    """A table without items."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        super().__init__(Handler)


class RuntimeApi(Server):
    """Sends a function its events, one after the other, then closes the connection, which ends the function."""

    def __init__(self, events=()):
        self.events = queue.SimpleQueue()
        for event in events:
            self.events.put(json.dumps(event).encode())
        self.answers = []
        self.fetched = False
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                api.fetched = True
                if api.events.empty():
                    self.close_connection = True
                    return
                self.send_response(200)
                self.send_header("Lambda-Runtime-Aws-Request-Id", f"request-{len(api.answers)}")
                self.send_header("Lambda-Runtime-Deadline-Ms", "9999999999999")
                self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:0:function:f")
                self.reply(api.events.get())

            def do_POST(self):
                api.answers.append(self.body())
                self.send_response(202)
                self.reply(b'{"status":"OK"}')

            def body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers["Content-Length"]))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def reply(self, body):
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(Handler)


def build(functions):
    """Builds the binaries as for AWS: without features that other packages of the workspace enable. A selection of
    functions may need a separate build of the SDK."""
    packages = [word for name in functions for word in ("--package", name)]
    subprocess.run(["cargo", "build", "--release", *packages, "--bins"], cwd=ROOT, check=True)


def binary(function):
    return os.path.join(TARGET, "release", function)


def run(function, tool, environment, events=()):
    """Returns the function's responses to the events, and its stderr. `tool` is the command before the program."""
    with RuntimeApi(events) as api:
        environment = {
            "PATH": os.environ["PATH"],
            **ENVIRONMENT,
            "AWS_LAMBDA_RUNTIME_API": api.address,
            "AWS_LAMBDA_FUNCTION_NAME": function,
            **environment,
        }
        command = [*tool, binary(function)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                _, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.terminate()
                _, errors = process.communicate()
        if not api.fetched or not api.events.empty():
            sys.exit(f"{function} did not fetch its events:\n{errors.decode()}")
        return api.answers, errors.decode()


def instructions(function, environment, events=(), profile=None):
    """Returns the instructions from the start of the process to its end, after the last event, and the responses."""
    with tempfile.TemporaryDirectory() as folder:
        profile = profile or os.path.join(folder, "profile")
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        answers, said = run(function, tool, environment, events)
    return int(re.search(r"Collected : (\d+)", said).group(1)), answers


def heap(function, environment, events=()):
    """Returns the blocks and bytes allocated in total, and the bytes at the peak."""
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=dhat", f"--dhat-out-file={os.path.join(folder, 'profile')}"]
        _, said = run(function, tool, environment, events)

    def figure(line, unit):
        return int(re.search(rf"{line}:.*?([\d,]+) {unit}", said).group(1).replace(",", ""))

    return figure("Total", "blocks"), figure("Total", "bytes"), figure("At t-gmax", "bytes")


class Services:
    """`cargo local --services-only`. The variable LOCAL may name a binary to use instead."""

    def __enter__(self):
        built = os.environ.get("LOCAL")
        program = [built] if built else ["cargo", "run", "--quiet", "--package", "cli", "--bin", "comments-server", "--"]
        command = [*program, "--services-only", "--ephemeral", "--port", "0"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.environment = {"SVC_READ_LIMIT": "1000000", "SVC_WRITE_LIMIT": "1000000"}
        for line in self.process.stdout:
            if variable := re.match(r"export (\w+)='(.*)'$", line):
                self.environment[variable[1]] = variable[2]
            if member := re.match(r"# member +(\S+)", line):
                self.member = member[1]
            if line.startswith("# moderator"):
                return self
        sys.exit("table and bucket did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Committed:
    """The figures of an earlier run, in a file beside the scripts."""

    def __init__(self, name):
        self.path = os.path.join(ROOT, "infra", "measure", name)
        self.figures = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.figures = json.load(file)

    def write(self, figures):
        self.figures.update(figures)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.figures, file, indent=2, sort_keys=True)
            file.write("\n")

    def check(self, figures, margin):
        """Fails if a figure is more than `margin` above the committed one, or none is committed."""
        worse = [
            f"{name}: {figure:,}, committed {self.figures.get(name, 0):,}"
            for name, figure in figures.items()
            if figure > self.figures.get(name, 0) * (1 + margin)
        ]
        if worse:
            sys.exit("\n".join(worse))
