"""Parses the deployment samples in the documents as sam and AWS do: every parameter in a sample must reach the template
unchanged and match its pattern. docs/deploy-aws.md must list all regions that lack a needed resource type.

Usage: documents.py, with the Python of sam's environment."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

from cfnlint.helpers import REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError
from samcli.cli.types import CfnParameterOverridesType
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = yaml_parse((ROOT / "template.yaml").read_text())
PARAMETERS = TEMPLATE["Parameters"]

DOCUMENTS = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))]
# Placeholders in samples, with valid values to replace them.
PLACEHOLDERS = {
    "BUCKET": "exports-of-example-org",
    "CertificateArn=…": "CertificateArn=arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234",
}
# Regions in unsupported partitions.
ELSEWHERE = re.compile(r"(cn|us-gov|us-iso|us-isob|us-isof|eu-isoe|eusc)-")
# Parameters that need a resource type which some regions lack.
NEEDED = {"MonthlyBudget": "AWS::Budgets::Budget", "EdgeCache": "AWS::Lambda::Url", "MailFrom": "AWS::SES::ConfigurationSet"}


def samples(text):
    """Yields code that sets parameters: indented lines, and text between backticks."""
    names = "|".join(PARAMETERS)
    for code in re.findall(r"^    (.+)$", text, re.M) + re.findall(r"`([^`\n]+)`", text):
        if re.search(rf"(?<![\w]){'(?:'}{names}{')'}=", code):
            yield code


def problems_of(code):
    """Yields problems with the parameters in a shell command."""
    for placeholder, value in PLACEHOLDERS.items():
        code = code.replace(placeholder, value)
    words = shlex.split(code, comments=True)
    words = [word for word in words if word.partition("=")[0] in PARAMETERS]
    given = CfnParameterOverridesType().convert(words, None, None)
    for word in words:
        name, _, text = word.partition("=")
        whole = text[1:-1] if text[:1] in ('"', "'") and text[-1:] == text[:1] else text
        if given.get(name) != whole:
            yield f"sam reads {given.get(name)!r}"
        pattern = PARAMETERS[name].get("AllowedPattern", ".*")
        values = whole.split(",") if PARAMETERS[name]["Type"] == "CommaDelimitedList" else [whole]
        if not all(re.fullmatch(pattern, value) for value in values):
            yield f"{name} does not accept {whole!r}"
        allowed = [str(value) for value in PARAMETERS[name].get("AllowedValues", [whole])]
        if whole not in allowed:
            yield f"{name} is none of {allowed}"


def samples_are_whole():
    tried = 0
    texts = {path: (ROOT / path).read_text() for path in DOCUMENTS}
    for name, parameter in PARAMETERS.items():
        # A description has at most one sample, quoted for the shell.
        texts[f"template.yaml, {name}"] = "\n".join(f"`{sample}`" for sample in re.findall(r"'[^' ]+=.+'", parameter["Description"]))
    for path, text in texts.items():
        for code in samples(text):
            tried += 1
            yield from (f"{path}: {code}: {problem}" for problem in problems_of(code))
    if tried < 15:
        yield f"only {tried} samples were found"


def configuration_is_whole():
    configuration = tomllib.loads((ROOT / "infra/samconfig.toml").read_text())
    for environment in ["dev", "prod"]:
        for word in configuration[environment]["deploy"]["parameters"]["parameter_overrides"]:
            yield from (f"infra/samconfig.toml: {word}: {problem}" for problem in problems_of(shlex.quote(word)))


def without(kind):
    missing = set()
    for region in REGIONS:
        try:
            PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, kind)
        except ResourceNotFoundError:
            missing.add(region)
    return {region for region in missing if not ELSEWHERE.match(region)}


def regions_are_listed():
    text = (ROOT / "docs/deploy-aws.md").read_text()
    for parameter, kind in NEEDED.items():
        [listed] = re.findall(rf"^\| `{parameter}`[^|]* isn't available in \| (.*) \|$", text, re.M)
        forgotten = without(kind) - set(re.findall(r"[a-z]{2}-[a-z]+-\d", listed))
        if forgotten:
            yield f"docs/deploy-aws.md does not say that {parameter} isn't available in {', '.join(sorted(forgotten))}"


def cut_samples_are_found():
    """Checks that `problems_of` finds a violation of each rule."""
    for code, told in [
        ("SpamDeny='casino, cheap pills'", "sam reads 'casino,'"),
        ("SiteName=The\\ Blog", "sam reads 'The'"),
        ("CorsOrigins=https://example.org/", "CorsOrigins does not accept"),
        ("EdgeCache=on", "EdgeCache is none of"),
    ]:
        if not any(told in problem for problem in problems_of(code)):
            yield f"no problem is reported for {code}"


def main():
    wrong = [*cut_samples_are_found(), *samples_are_whole(), *configuration_is_whole(), *regions_are_listed()]
    if wrong:
        sys.exit("\n".join(wrong))
    print("sam reads every parameter in the documents as written, and every region that lacks a resource type is listed")


main()
