"""Deploys as README.md describes, up to the change set: `sam build` with a cargo that compiles nothing, then `sam
deploy` against a local server that stores objects like S3 and has no stack. The zip of every function and the template
must be uploaded, and only CreateChangeSet must be refused. Then deploys a release archive in the same way, and runs the
documented commands that clean up after a failed first deployment and that remove a table's limits.

Usage: deploy.py, with the Python of an environment that also contains sam and aws."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
BUCKET = "uploads"
FUNCTION = "AWS::Serverless::Function"

# sam calls these programs. Each binary of the fake cargo contains only its own name.
PROGRAMS = {
    "cargo": """#!/bin/sh
[ "$1" != metadata ] || exit 1    # Each function then has a target directory of its own.
while [ "$1" != --bin ]; do shift; done
mkdir -p "target/lambda/$2" && printf %s "$2" >"target/lambda/$2/bootstrap"
""",
    "cargo-lambda": "#!/bin/sh\n",
}

# The stack with the bucket that sam creates once per region.
SAM_STACK = "aws-sam-cli-managed-default"
STACKS = f"""<DescribeStacksResponse><DescribeStacksResult><Stacks><member>
<StackName>{SAM_STACK}</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime>
<Tags><member><Key>ManagedStackSource</Key><Value>AwsSamCli</Value></member></Tags>
<Outputs><member><OutputKey>SourceBucket</OutputKey><OutputValue>{BUCKET}</OutputValue></member></Outputs>
</member></Stacks></DescribeStacksResult></DescribeStacksResponse>"""
REFUSAL = "<ErrorResponse><Error><Code>ValidationError</Code><Message>{}</Message></Error></ErrorResponse>"


FAILED = """<DescribeStacksResponse><DescribeStacksResult><Stacks><member>
<StackName>{}</StackName><StackStatus>ROLLBACK_COMPLETE</StackStatus><CreationTime>2026-01-01T00:00:00Z</CreationTime>
<EnableTerminationProtection>false</EnableTerminationProtection>
</member></Stacks></DescribeStacksResult></DescribeStacksResponse>"""
TEMPLATE_OF_STACK = """<GetTemplateResponse><GetTemplateResult><TemplateBody>Resources: {}</TemplateBody></GetTemplateResult></GetTemplateResponse>"""
DELETED = "<DeleteStackResponse></DeleteStackResponse>"
TABLE = "comments-Table-1A2B3C4D5E6F"


class Aws(BaseHTTPRequestHandler):
    """Fakes S3, CloudFormation (sam's own stack, and a failed stack if the test sets one), and DynamoDB (the failed
    stack's table)."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(200 if self.path in self.server.objects else 404)

    def do_PUT(self):
        self.server.objects[urlsplit(self.path).path] = self.body()
        self.answer(200)

    def do_POST(self):
        if "x-amz-target" in self.headers:
            self.table(self.headers["x-amz-target"].partition(".")[2], json.loads(self.body()))
            return
        call = dict(parse_qsl(self.body().decode()))
        self.server.calls.append(call)
        action, failed = call.get("Action"), self.server.failed
        if action == "DescribeStacks" and call["StackName"] == SAM_STACK:
            self.answer(200, STACKS)
        elif action == "DescribeStacks" and call["StackName"] == failed:
            self.answer(200, FAILED.format(failed))
        elif action == "GetTemplate" and call["StackName"] == failed:
            self.answer(200, TEMPLATE_OF_STACK)
        elif action == "DeleteStack" and call["StackName"] == failed:
            self.server.failed = None
            self.answer(200, DELETED)
        elif action == "DescribeStacks":
            self.answer(400, REFUSAL.format(f"Stack with id {call['StackName']} does not exist"))
        else:
            self.answer(400, REFUSAL.format("there is no CloudFormation"))

    def table(self, operation, asked):
        """Responds like DynamoDB. Refuses to delete the table while deletion protection is on."""
        table = self.server.table
        if operation == "ListTables":
            self.answer(200, json.dumps({"TableNames": [table["TableName"]] if table else []}))
            return
        if not table or asked["TableName"] != table["TableName"]:
            self.answer(400, '{"__type": "ResourceNotFoundException"}')
            return
        if operation == "UpdateTable":
            self.server.updates.append(asked)
            table |= {name: value for name, value in asked.items() if name == "DeletionProtectionEnabled"}
        elif operation == "DeleteTable" and table["DeletionProtectionEnabled"]:
            self.answer(400, '{"__type": "ValidationException", "message": "deletion protection is enabled"}')
            return
        elif operation == "DeleteTable":
            self.server.table = None
        self.answer(200, json.dumps({"Table": table, "TableDescription": table}))

    def body(self):
        return self.rfile.read(int(self.headers["content-length"]))

    def answer(self, status, body=""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def documented_command(first, documents):
    """Returns the only command in these documents that begins with `first` and deploys."""
    texts = [(ROOT / path).read_text() for path in documents]
    [command] = {line for text in texts for line in re.findall(rf"^    ({first} .*)$", text, re.M)}
    assert " && sam deploy " in command, command
    return command


def checkout(directory):
    """Copies the files that sam reads and the programs that it calls into a directory for building."""
    for name in [".ci/package", "LICENSE", "functions", "infra/samconfig.toml", "template.yaml"]:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, directory / name)
    (directory / "bin").mkdir()
    for name, program in PROGRAMS.items():
        (directory / "bin" / name).write_text(program)
        (directory / "bin" / name).chmod(0o755)


def run(command, directory, server):
    """Runs a command and returns its output. The command can reach only the fake server, whatever the caller's
    environment."""
    environment = {
        "PATH": f"{directory / 'bin'}:{Path(sys.executable).parent}:{os.defpath}",
        "HOME": str(directory),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nobody",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "SAM_CLI_TELEMETRY": "0",
    }
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, shell=True, cwd=directory, env=environment, timeout=PATIENCE, check=False, **both).stdout


def aws():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Aws)
    server.objects, server.calls, server.updates = {}, [], []
    server.failed = server.table = None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def commands_after(path, heading):
    """Returns the first indented block below a document's heading."""
    behind = (ROOT / path).read_text().split(f"\n## {heading}\n")
    assert len(behind) == 2, heading
    lines = re.search(r"(?:^    .*\n)+", behind[1], re.M)[0]
    return re.sub("^    ", "", lines, flags=re.M).replace("TABLE", TABLE)


def start_over(directory):
    """Checks that the documented commands for a failed first deployment delete its stack and its table."""
    server = aws()
    server.failed = "comments"
    server.table = {"TableName": TABLE, "TableStatus": "ACTIVE", "DeletionProtectionEnabled": True}
    commands = commands_after("docs/deploy-aws.md", "After a first deployment that failed")
    output = run(f"set -e\n{commands}", directory, server)
    server.shutdown()
    if server.failed or server.table or TABLE not in output:
        sys.exit(f"{output}\nthe stack or its table still exists after\n{commands}")
    print("the documented commands delete the stack and the table of a failed deployment")


def take_bounds_away(directory, template):
    server = aws()
    server.table = {"TableName": TABLE, "TableStatus": "ACTIVE", "DeletionProtectionEnabled": True}
    output = run(f"set -e\n{commands_after('docs/operate.md', 'Remove a limit on units')}", directory, server)
    server.shutdown()
    unbounded = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    indexes = [index["IndexName"] for index in template["Resources"]["Table"]["Properties"]["GlobalSecondaryIndexes"]]
    updates = [{"Update": {"IndexName": name, "OnDemandThroughput": unbounded}} for name in indexes]
    if server.updates != [{"TableName": TABLE, "OnDemandThroughput": unbounded, "GlobalSecondaryIndexUpdates": updates}]:
        sys.exit(f"{output}\n{server.updates} doesn't update the table and each index")
    print(f"the documented command removes the limits of the table and of {len(indexes)} indexes")


def deploy(command, stack, parameters, directory, template):
    server = aws()
    output = run(command, directory, server)
    server.shutdown()
    refused = f"Failed to create changeset for the stack: {stack}, "
    if refused not in output or "there is no CloudFormation" not in output:
        sys.exit(f"{output}\n{command} does not reach the change set")
    create = server.calls[-1]
    given = {create[name]: create[name.replace("Key", "Value")] for name in create if name.endswith(".ParameterKey")}
    assert create["Action"] == "CreateChangeSet" and given == parameters, create

    # The uploaded template names the objects and is otherwise unchanged.
    uploaded = yaml_parse(server.objects[urlsplit(create["TemplateURL"]).path].decode())
    functions = {name: resource for name, resource in template["Resources"].items() if resource["Type"] == FUNCTION}
    for name, function in functions.items():
        properties = uploaded["Resources"][name]["Properties"]
        archive = server.objects[properties["CodeUri"].removeprefix("s3:/")]
        binary = zipfile.ZipFile(io.BytesIO(archive)).read("bootstrap").decode()
        assert binary == function["Metadata"]["BuildProperties"]["Binary"], f"{name} is {binary}"
        properties["CodeUri"] = function["Properties"]["CodeUri"]
    assert uploaded == template
    assert len(server.objects) == len(functions) + 1
    print(f"{stack}: {len(functions)} functions and the template were uploaded, and the change set was requested")


def main():
    command = documented_command("sam build", ["README.md", "docs/deploy-aws.md"])
    released = documented_command("tar -xf comments-aws.tar.gz", ["docs/deploy-aws.md"])
    template = yaml_parse((ROOT / "template.yaml").read_text())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        checkout(directory)
        deploy(command, "comments", {"DeletionProtection": "true"}, directory, template)
        of_dev = {"DeletionProtection": "false", "LogLevel": "DEBUG", "LogRetentionDays": "7"}
        deploy(command.replace("prod", "dev"), "comments-dev", of_dev, directory, template)
        subprocess.run([directory / ".ci/package", "comments-aws.tar.gz"], cwd=directory, check=True)
        deploy(released, "comments", {"DeletionProtection": "true"}, directory, template)
        start_over(directory)
        take_bounds_away(directory, template)


main()
