"""Checks the template that sam generates from template.yaml, in every combination of its conditions: no reference leads
to a resource that is not created, nothing depends on itself, and AWS limits hold.

Usage: walk.py, with the Python of sam's environment."""

import copy
import itertools
import json
import os
import re
import sys
from pathlib import Path

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]

# CloudFormation's pseudo parameters, with the longest likely values.
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "ap-southeast-2",
    "AWS::StackName": "comments-of-example-org",
    "AWS::URLSuffix": "amazonaws.com",
}
# Assumed length of a resource's name, address or ARN, in characters.
LONGEST_NAME = 120
FUNCTION_NAME = 64

# CloudWatch allows ten metrics per alarm, and the free tier has ten alarm metrics per account.
METRICS_OF_AN_ALARM = METRICS_OF_ALL_ALARMS = 10
# Lambda allows 20 KB. SAM adds a statement per event.
RESOURCE_POLICY = 18 * 1024
# Lambda allows 4 KB. The rest is for the owner's phrase lists.
ENVIRONMENT = 2_560
MANAGED_POLICY, ROLE_POLICIES, POLICIES_OF_A_ROLE = 6_144, 10_240, 10
CACHE_BEHAVIOURS = 25
# Budget alerts: the type of spending, and the threshold in percent.
BUDGET = [("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)]
RESOURCES, PARAMETERS, OUTPUTS, TEMPLATE = 500, 200, 200, 1_000_000

# Values that turn conditions on. They must match the parameter's pattern.
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:it-AbCdEf"
SAMPLES = {
    "AkismetKeyArn": SECRET,
    "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms",
    "BudgetMail": "owner@example.org",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012",
    "CorsOrigins": "https://example.org",
    "DomainName": "comments.example.org",
    "JwksUrl": "https://id.example.org/.well-known/jwks.json",
    "JwtIssuer": "https://id.example.org",
    "JwtSecretArn": SECRET,
    "MailFrom": "comments@example.org",
    "MaxReadUnits": "200",
    "MaxWriteUnits": "100",
    "MonthlyBudget": "20",
    "PageUrl": "https://www.example.org/{type}/{id}",
    "PublicUrl": "https://comments.example.org",
    "ReservedConcurrency": "2",
    "RestoreBucket": "exports-of-example-org",
    "RestorePrefix": "AWSDynamoDB/01750000000000-12345678/data/",
    "SecretKeyArns": "arn:aws:kms:eu-west-1:123456789012:key/12345678-1234-1234-1234-123456789012",
    "GithubClientId": "Iv1.0123456789abcdef",
    "GithubClientSecretArn": SECRET,
    "GoogleClientSecretArn": SECRET,
    "OidcClientSecretArn": SECRET,
    "SignIn": "email,github",
    "SmtpUrlArn": SECRET,
}
# For each parameter, the other parameters that rules require with it.
BESIDE = {
    "DomainName": ["CertificateArn"],
    "EdgeCache": ["PublicUrl"],
    "JwksUrl": ["JwtIssuer"],
    "MailFrom": ["PageUrl", "PublicUrl"],
    "MonthlyBudget": ["BudgetMail"],
    "RestoreBucket": ["RestorePrefix"],
    "SignIn": ["CorsOrigins", "GithubClientId", "GithubClientSecretArn", "MailFrom", "PublicUrl"],
}
# Parameters that are set together here, because they differ only in name. Setting each parameter separately would take
# four times as long.
LIKE = {"GoogleClientSecretArn": "GithubClientSecretArn", "OidcClientSecretArn": "GithubClientSecretArn"}
# Combinations that each rule rejects. A listed parameter has its sample value or the value after `=`; all others keep
# their defaults.
REFUSED = {
    "Budget": [["MonthlyBudget"], ["BudgetMail"]],
    "Codes": [["SignIn", "CorsOrigins", "PublicUrl"]],
    "Methods": [["SignIn", "CorsOrigins", "MailFrom"], ["SignIn=github", "CorsOrigins"], ["SignIn", "MailFrom", "PublicUrl"],
              ["SignIn", "MailFrom", "PublicUrl", "CorsOrigins=https://*"], ["SignIn", "MailFrom", "PublicUrl", "CorsOrigins=https://example.org,http://*"]],
    "Domain": [["DomainName"], ["CertificateArn"], ["DomainName", "CertificateArn"], ["EdgeCache", "DomainName"]],
    "Edge": [["EdgeCache"], ["EdgeCache", "DomainName", "CertificateArn"], ["EdgeCache", "PublicUrl", "CorsOrigins=https://*"],
             ["EdgeCache", "PublicUrl", "CorsOrigins=https://example.org,http://*"]],
    "Github": [["SignIn=github", "CorsOrigins", "PublicUrl"], ["SignIn=email,github", "GithubClientId"], ["SignIn=oidc,github", "GithubClientSecretArn"]],
    "Google": [["SignIn=google"], ["SignIn=google,email", "GoogleClientId"], ["SignIn=google,oidc", "GoogleClientSecretArn"]],
    "Mails": [["Subscriptions"], ["ModerationMail=mods@example.org"], ["MailFrom"], ["MailFrom", "PageUrl"], ["MailFrom", "PublicUrl"], ["SignIn", "Subscriptions", "MailFrom", "PublicUrl"]],
    "Oidc": [["SignIn=oidc"]] + [["SignIn=email,oidc,github", *(name for name in ["OidcName", "OidcIssuer", "OidcClientId", "OidcClientSecretArn"] if name != missing)]
                               for missing in ["OidcName", "OidcIssuer", "OidcClientId", "OidcClientSecretArn"]],
    "Restore": [["RestoreBucket"], ["RestorePrefix"]],
    "SignIn": [["JwksUrl"]],
}

SOURCE = yaml_parse((ROOT / "template.yaml").read_text())
DEFAULTS = {name: str(parameter["Default"]) for name, parameter in SOURCE["Parameters"].items()}


def translate(template):
    """Translates the template as sam does, without an AWS account. Of the language extensions, only the prefix of
    routes is resolved."""
    template = copy.deepcopy(template)
    for function in template["Resources"].values():
        if function["Type"] != "AWS::Serverless::Function":
            continue
        function["Properties"]["CodeUri"] = "s3://bucket/key"
        for event in function["Properties"].get("Events", {}).values():
            path = event["Properties"].get("Path")
            if path:
                prefix = template["Parameters"]["ApiPrefix"]["Default"]
                event["Properties"]["Path"] = path["Fn::Sub"].replace("${ApiPrefix}", prefix)
    os.environ["AWS_DEFAULT_REGION"] = PSEUDO["AWS::Region"]
    return Translator({}, Parser()).translate(template, DEFAULTS | PSEUDO)


def holds(expression, values, conditions):
    """Evaluates a condition or an assertion with these parameter values."""
    if isinstance(expression, dict):
        [(function, argument)] = expression.items()
        if function == "Condition":
            return holds(conditions[argument], values, conditions)
        if function == "Fn::Contains":
            listed, one = argument
            listed = values[listed["Ref"]].split(",") if isinstance(listed, dict) else listed
            return (values[one["Ref"]] if isinstance(one, dict) else one) in listed
        if function == "Fn::Equals":
            left, right = (str(values[side["Ref"]] if isinstance(side, dict) else side) for side in argument)
            return left == right
        if function == "Fn::Not":
            return not holds(argument[0], values, conditions)
        both = {"Fn::And": all, "Fn::Or": any}
        return both[function](holds(part, values, conditions) for part in argument)
    raise ValueError(expression)


def refused_by(rules, values):
    fails = lambda rule: any(not holds(assertion["Assert"], values, {}) for assertion in rule["Assertions"])
    applies = lambda rule: "RuleCondition" not in rule or holds(rule["RuleCondition"], values, {})
    return [name for name, rule in rules.items() if applies(rule) and fails(rule)]


def combinations(template):
    """Returns every set of conditions that holds for some parameter values."""
    conditions = template["Conditions"]
    named = sorted(set(re.findall(r'"Ref": "(\w+)"', json.dumps(conditions))))
    named = [name for name in named if name not in LIKE]
    choices = []
    for name in named:
        parameter = template["Parameters"][name]
        allowed = parameter.get("AllowedValues")
        choices.append(allowed if allowed else [DEFAULTS[name], SAMPLES[name]])
    found = set()
    for chosen in itertools.product(*choices):
        values = DEFAULTS | dict(zip(named, chosen))
        values |= {name: values[like] for name, like in LIKE.items()}
        values |= {beside: SAMPLES[beside] for name in BESIDE if values[name] != DEFAULTS[name] for beside in BESIDE[name]}
        if not refused_by(template["Rules"], values):
            found.add(frozenset(name for name in conditions if holds(conditions[name], values, conditions)))
    return sorted(found, key=sorted)


def references(value, guards=()):
    """Yields the names that a value refers to, each with its guards: pairs of a condition and the result that the
    reference requires."""
    if isinstance(value, list):
        for item in value:
            yield from references(item, guards)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item, guards
            elif key == "Fn::GetAtt":
                yield (item.split(".") if isinstance(item, str) else item)[0], guards
            elif key == "Fn::Sub":
                text, given = item if isinstance(item, list) else (item, {})
                for name in re.findall(r"\$\{([^!}][^}]*)\}", text):
                    if name not in given:
                        yield name.split(".")[0], guards
                yield from references(given, guards)
            elif key == "Fn::If":
                yield from references(item[1], (*guards, (item[0], True)))
                yield from references(item[2], (*guards, (item[0], False)))
            else:
                yield from references(item, guards)


def depends(resource):
    """Yields a resource's references, including those in `DependsOn`."""
    listed = resource.get("DependsOn", [])
    guards = ((resource["Condition"], True),) if "Condition" in resource else ()
    for name in [listed] if isinstance(listed, str) else listed:
        yield name, guards
    yield from references(resource.get("Properties", {}), guards)


def agrees(combination, guards):
    return all((name in combination) == wanted for name, wanted in guards)


def longest(value):
    """Returns the value with the longest branch of each condition, and with long names in place of resources."""
    if isinstance(value, list):
        return [longest(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(key, item)] = value.items()
        if key == "Fn::If":
            return max(longest(item[1]), longest(item[2]), key=lambda branch: len(json.dumps(branch)))
        if key == "Ref" and item in PSEUDO:
            return PSEUDO[item]
        if key == "Ref" and item == "AWS::NoValue":
            return ""
        if key == "Ref" and item in DEFAULTS:
            return DEFAULTS[item]
        if key == "Fn::Sub" and isinstance(item, str):
            return re.sub(r"\$\{([^}]*)\}", lambda name: longest({"Ref": name[1]}), item)
        if key == "Fn::Join":
            return item[0].join(map(str, item[1])) if isinstance(item[1], list) else longest(item[1])
        if key in ("Ref", "Fn::GetAtt", "Fn::Split", "Fn::ImportValue"):
            return "n" * LONGEST_NAME
    return {key: longest(item) for key, item in value.items()}


def size(value):
    return len(json.dumps(longest(value), separators=(",", ":")))


def of_type(template, kind):
    return [(name, resource) for name, resource in template["Resources"].items() if resource["Type"] == kind]


def dangling(template, found):
    """Yields references of resources and outputs to resources that are missing in some combination of conditions."""
    resources, known = template["Resources"], set(template["Parameters"]) | set(PSEUDO) | {"AWS::NoValue", "AWS::StackId"}
    named = [(name, list(depends(resource))) for name, resource in resources.items()]
    for name, output in template.get("Outputs", {}).items():
        guards = ((output["Condition"], True),) if "Condition" in output else ()
        named.append((name, list(references(output["Value"], guards))))
    for name, referred in named:
        for target, guards in set(referred):
            if target in known:
                continue
            if target not in resources:
                yield f"{name} refers to {target}, which does not exist"
                continue
            condition = resources[target].get("Condition")
            lost = [c for c in found if condition and condition not in c and agrees(c, guards)]
            if lost:
                yield f"{name} refers to {target}, which does not exist with {sorted(lost[0])}"


def circular(template, _):
    """Yields circular dependencies, regardless of conditions."""
    resources = template["Resources"]
    needed = {name: {target for target, _ in depends(resource)} & set(resources) for name, resource in resources.items()}
    while needed:
        free = {name for name, targets in needed.items() if not targets & set(needed)}
        if not free:
            yield f"circular dependencies: {sorted(needed)}"
            return
        needed = {name: targets for name, targets in needed.items() if name not in free}


def metrics_of(alarm):
    """Yields the conditions of each metric that an alarm's expression reads."""
    for metric in alarm["Properties"].get("Metrics", []):
        condition, metric, _ = metric.get("Fn::If", (None, metric, None))
        if "MetricStat" in metric:
            yield ((condition, True),) if condition else ()


def alarms(template, found):
    for name, alarm in of_type(template, "AWS::CloudWatch::Alarm"):
        read = list(metrics_of(alarm))
        most = max(sum(agrees(combination, guard) for guard in read) for combination in found)
        if most > METRICS_OF_AN_ALARM:
            yield f"{name} reads {most} metrics"
    together = max(read_by_alarms(template, combination) for combination in found)
    if together > METRICS_OF_ALL_ALARMS:
        yield f"all alarms read {together} metrics"


def resource_policies(template, _):
    statements = {}
    for name, permission in of_type(template, "AWS::Lambda::Permission"):
        properties = permission["Properties"]
        function = next(references(properties["FunctionName"]))[0]
        statement = {
            "Sid": f"{PSEUDO['AWS::StackName']}-{name}-{'X' * 12}",
            "Effect": "Allow",
            "Principal": {"Service": properties["Principal"]},
            "Action": properties["Action"],
            "Resource": f"arn:aws:lambda:{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}:function:{'f' * FUNCTION_NAME}",
            "Condition": {"ArnLike": {"AWS:SourceArn": properties.get("SourceArn", "")}},
        }
        statements.setdefault(function, []).append(statement)
    for function, of_function in statements.items():
        if size(of_function) > RESOURCE_POLICY:
            yield f"the resource policy of {function} has {size(of_function)} bytes"


def environments(template, _):
    for name, function in of_type(template, "AWS::Lambda::Function"):
        variables = function["Properties"].get("Environment", {}).get("Variables", {})
        if size(variables) > ENVIRONMENT:
            yield f"the environment of {name} has {size(variables)} bytes"


def policies(template, _):
    for name, policy in of_type(template, "AWS::IAM::ManagedPolicy"):
        if size(policy["Properties"]["PolicyDocument"]) > MANAGED_POLICY:
            yield f"{name} has {size(policy['Properties']['PolicyDocument'])} characters"
    for name, role in of_type(template, "AWS::IAM::Role"):
        inline = sum(size(policy["PolicyDocument"]) for policy in role["Properties"].get("Policies", []))
        if inline > ROLE_POLICIES:
            yield f"the policies of {name} have {inline} characters"
        if len(role["Properties"].get("ManagedPolicyArns", [])) > POLICIES_OF_A_ROLE:
            yield f"{name} has more than {POLICIES_OF_A_ROLE} managed policies"


def distributions(template, _):
    for name, distribution in of_type(template, "AWS::CloudFront::Distribution"):
        behaviours = distribution["Properties"]["DistributionConfig"].get("CacheBehaviors", [])
        if len(behaviours) > CACHE_BEHAVIOURS:
            yield f"{name} has {len(behaviours)} cache behaviours"


def ceilings(template, _):
    for name, table in of_type(template, "AWS::DynamoDB::Table"):
        for index in table["Properties"]["GlobalSecondaryIndexes"]:
            if index.get("OnDemandThroughput") != table["Properties"]["OnDemandThroughput"]:
                yield f"the index {index['IndexName']} has another ceiling than {name}"


def dashboards(template, _):
    """Yields problems in dashboards, with the longest names filled in. The stack's name has hyphens, so a search for it
    needs quotes."""
    for name, dashboard in of_type(template, "AWS::CloudWatch::Dashboard"):
        body = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
        text, given = body if isinstance(body, list) else (body, {})
        named = lambda match: longest(given[match[1]]) if match[1] in given else longest({"Ref": match[1]})
        widgets = json.loads(re.sub(r"\$\{([^}]*)\}", named, text))["widgets"]
        for searched in re.findall(r"SEARCH\('(.*?)'", json.dumps(widgets).replace(r'\"', '"')):
            schema, terms = re.fullmatch(r"\{(.*?)\}(.*)", searched).groups()
            names = schema.split(",") + re.findall(r"\w+=(\S+)", terms)
            if not all(re.fullmatch(r'\w+|"[^"]*"', one) for one in names):
                yield f"{name} searches for a name without quotes: {searched}"


def budgets(template, _):
    for name, budget in of_type(template, "AWS::Budgets::Budget"):
        notified = [notice["Notification"] for notice in budget["Properties"]["NotificationsWithSubscribers"]]
        if [(notice["NotificationType"], notice["Threshold"]) for notice in notified] != BUDGET:
            yield f"{name} does not notify at {BUDGET}"


def stack(template, _):
    counts = [("Resources", RESOURCES), ("Parameters", PARAMETERS), ("Outputs", OUTPUTS)]
    for section, most in counts:
        if len(template[section]) > most:
            yield f"the template has {len(template[section])} {section}"
    if len(json.dumps(template)) > TEMPLATE:
        yield f"the template has {len(json.dumps(template))} bytes"


CHECKS = [dangling, circular, alarms, resource_policies, environments, policies, distributions, ceilings, dashboards, budgets, stack]


def read_by_alarms(template, combination):
    """Returns the number of metrics that the alarms read. Metrics beyond the free tier cost money."""
    count = 0
    for _, alarm in of_type(template, "AWS::CloudWatch::Alarm"):
        if agrees(combination, ((alarm["Condition"], True),) if "Condition" in alarm else ()):
            count += sum(agrees(combination, guard) for guard in metrics_of(alarm)) or 1
    return count


def main():
    template, found = translate(SOURCE), combinations(SOURCE)
    wrong = [problem for check in CHECKS for problem in check(template, found)]
    # Also checks the source template, because the language extensions refuse references to resources that SAM adds.
    with_globals = SOURCE["Resources"] | {"Globals": {"Properties": SOURCE["Globals"]}}
    wrong += dangling(SOURCE | {"Resources": with_globals}, found)
    for name, value in (DEFAULTS | SAMPLES).items():
        pattern = SOURCE["Parameters"][name].get("AllowedPattern")
        if pattern and not re.fullmatch(pattern, value):
            wrong.append(f"{name} does not accept {value!r}")
    for rule, refused in REFUSED.items():
        for names in refused:
            given = (name.partition("=") for name in names)
            values = DEFAULTS | {name: value or SAMPLES.get(name, "true") for name, _, value in given}
            if rule not in refused_by(SOURCE["Rules"], values):
                wrong.append(f"the rule {rule} accepts {names}")
    for methods in (",".join(some) for n in range(5) for some in itertools.permutations(["email", "github", "google", "oidc"], n)):
        refused = refused_by(SOURCE["Rules"], DEFAULTS | {"SignIn": methods})
        for rule, method in [("Codes", "email"), ("Github", "github"), ("Google", "google"), ("Oidc", "oidc")]:
            if (rule in refused) != (method in methods):
                wrong.append(f"the rule {rule} is wrong about SignIn={methods}")
    for condition in SOURCE["Conditions"]:
        if len({condition in combination for combination in found}) < 2:
            wrong.append(f"{condition} is the same in every combination")
    wrong += [f"the rule {rule} is not tested" for rule in SOURCE["Rules"] if rule not in REFUSED]

    counts = [read_by_alarms(template, combination) for combination in found]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(found)} combinations of conditions, {len(template['Resources'])} resources; alarms read {min(counts)} to {max(counts)} metrics")


main()
