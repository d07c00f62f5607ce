"""Parts of a CloudFormation template of dq, compared with what the account has. Read-only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dq.contracts.outcome import DqError, UsageError, pluralize
from dq.registry.aws.client import (
    account_of,
    aws_session,
    call_ignoring,
    explained,
    opening,
    rate_limited_client,
)
from dq.registry.stack import Node

_MISSING_CODES = (
    "NoSuchEntity",
    "NotFound",
    "ResourceNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
)
_DEPLOY = "Deploy the template again: aws cloudformation deploy --capabilities CAPABILITY_NAMED_IAM …"
_ADMINISTRATOR = "Add it to the data lake administrators: put-data-lake-settings replaces the list."


@dataclass(frozen=True, slots=True)
class PartState:
    """A part of the template. `lacks` is "" for a complete one; with `is_optional` it may be missing."""

    kind: str
    name: str
    lacks: str = ""
    hint: str = ""
    is_optional: bool = False


class _Missing(Exception):
    """The part does not exist."""


Lacks = Iterator[tuple[str, str]]
"""What a part lacks, each with a hint."""


@dataclass(slots=True)
class StackAccount:
    """The account of the credentials, with one client for each service."""

    session: Any
    account: str
    partition: str
    clients: dict[str, Any] = field(default_factory=dict)

    def call(self, service: str, operation: str, **request: Any) -> Any:
        """Call AWS and return the response. Raises _Missing for a resource that does not exist."""
        if service not in self.clients:
            self.clients[service] = rate_limited_client(
                self.session, service, {}, attempts=3, read_timeout=10
            )
        call: Callable[..., Any] = getattr(self.clients[service], operation)
        for code in _MISSING_CODES[1:]:
            call = _ignoring(code, call)
        answer = call_ignoring(_MISSING_CODES[0], call, **request)
        if answer is None:
            raise _Missing
        return answer


def _ignoring(code: str, call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **request: call_ignoring(code, call, **request)


def connect_account(role_arn: str = "") -> StackAccount:
    """Open the account of the credentials, as `role_arn` if set.

    Raises UsageError without a region or credentials, ReadError when AWS does not answer.
    """
    with opening("the account"):
        session = aws_session(role_arn, {})
        account = account_of(session)
        return StackAccount(session, account, session.get_partition_for_region(session.region_name))


def read_template(text: bytes, name: str) -> Node:
    """Return the template in a file of this name. Raises UsageError if it is not one that dq emits."""
    try:
        template = json.loads(text)
        valid = all(isinstance(part["Type"], str) for part in template["Resources"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        valid = False
    if not valid:
        raise UsageError(
            f"{name} is not a CloudFormation template in JSON.",
            "Pass the output of 'dq register --emit-landing-zone' or 'dq link --emit-stack'.",
        )
    return dict(template)


def part_states(aws: StackAccount, template: Mapping[str, Any]) -> Iterator[PartState]:
    """Yield the state of each part, in the template's order.

    Raises UsageError without credentials or a region. Another refusal of AWS is what the part lacks.
    """
    parts = _Parts(aws, template["Resources"])
    for key, part in parts.resources.items():
        check = CHECKS.get(part["Type"])
        kind = part["Type"].removeprefix("AWS::")
        name = parts.name(key)
        is_optional = "Condition" in part
        if check is None:
            yield PartState(kind, name, "is not checked", "Look it up in the AWS console.", is_optional=True)
            continue
        try:
            with explained(f"read {kind} {name}"):
                lacks = list(check(_Part(parts, key)))
        except _Missing:
            lacks = [(f"does not exist in {aws.account}", _DEPLOY)]
            yield PartState(kind, name, *lacks[0], is_optional)
            continue
        except UsageError:
            raise
        except DqError as error:
            lacks = [(error.message, error.hint)]
        yield from (PartState(kind, name, *lack) for lack in lacks)
        if not lacks:
            yield PartState(kind, name)


def has_function(aws: StackAccount, name: str) -> bool:
    """Return whether the account has the function. Raises as `explained`."""
    try:
        with explained(f"read Lambda::Function {name}"):
            aws.call("lambda", "get_function_configuration", FunctionName=name)
    except _Missing:
        return False
    return True


# Names and ARNs of the parts, as far as the template has them.

_NAMES = {
    "AWS::IAM::Role": ("RoleName", "iam", "role/"),
    "AWS::Lambda::Function": ("FunctionName", "lambda", "function:"),
    "AWS::SQS::Queue": ("QueueName", "sqs", ""),
    "AWS::SNS::Topic": ("TopicName", "sns", ""),
    "AWS::Scheduler::ScheduleGroup": ("Name", "scheduler", "schedule-group/"),
    "AWS::Scheduler::Schedule": ("Name", "scheduler", "schedule/"),
    "AWS::Events::Rule": ("Name", "events", "rule/"),
    "AWS::Logs::LogGroup": ("LogGroupName", "logs", "log-group:"),
    "AWS::CloudWatch::Alarm": ("AlarmName", "cloudwatch", "alarm:"),
}


@dataclass(frozen=True, slots=True)
class _Parts:
    """Resources of a template, with what their names and references mean in the account."""

    aws: StackAccount
    resources: Mapping[str, Node]

    def name(self, key: str) -> str:
        """Return the name of a resource, or its key in the template if CloudFormation names it."""
        part = self.resources[key]
        attribute = _NAMES.get(part["Type"], ("", "", ""))[0]
        return str(part["Properties"].get(attribute) or key)

    def arn(self, key: str) -> str:
        """Return the ARN of a resource that has a name of its own."""
        _, service, prefix = _NAMES[self.resources[key]["Type"]]
        region = "" if service == "iam" else self.aws.session.region_name
        return f"arn:{self.aws.partition}:{service}:{region}:{self.aws.account}:{prefix}{self.name(key)}"

    def key(self, node: Any) -> str:
        """Return the key of the resource that a node refers to, or "" for none."""
        if not isinstance(node, dict):
            return ""
        target = node.get("Ref") or (node.get("Fn::GetAtt") or [""])[0]
        return target if target in self.resources else ""

    def text(self, node: Any) -> str:
        """Return the value of a node: a text, or the name or ARN of what it refers to."""
        key = self.key(node)
        if not key:
            return node if isinstance(node, str) else ""
        attribute = (node.get("Fn::GetAtt") or ["", ""])[1]
        return self.arn(key) if attribute == "Arn" else self.name(key)


@dataclass(frozen=True, slots=True)
class _Part:
    """One resource of the template, and its name in the account."""

    parts: _Parts
    key: str

    @property
    def node(self) -> Node:
        """The resource as the template has it."""
        return self.parts.resources[self.key]

    @property
    def properties(self) -> Node:
        """Its properties in the template."""
        properties: Node = self.node["Properties"]
        return properties

    @property
    def name(self) -> str:
        """Its name, or its key in the template if CloudFormation names it."""
        return self.parts.name(self.key)

    @property
    def arn(self) -> str:
        """Its ARN; only of a resource with a name of its own."""
        return self.parts.arn(self.key)

    def call(self, service: str, operation: str, **request: Any) -> Any:
        """Call AWS as `StackAccount.call` does."""
        return self.parts.aws.call(service, operation, **request)


# One check for each type. Each yields what the part lacks, and raises _Missing if it does not exist.


def _role(part: _Part) -> Lacks:
    role = part.call("iam", "get_role", RoleName=part.name)["Role"]
    for policy in part.properties.get("Policies", ()):
        try:
            answer = part.call("iam", "get_role_policy", RoleName=part.name, PolicyName=policy["PolicyName"])
            allowed = _actions(answer["PolicyDocument"])
        except _Missing:
            allowed = set()
        lacking = sorted(_actions(policy["PolicyDocument"]) - allowed)
        if lacking:
            yield f"lacks the permissions {', '.join(lacking)}", _DEPLOY
    if part.node.get("Metadata", {}).get("DataLakeAdministrator"):
        settings = part.call("lakeformation", "get_data_lake_settings")["DataLakeSettings"]
        administrators = [
            admin["DataLakePrincipalIdentifier"] for admin in settings.get("DataLakeAdmins", ())
        ]
        if role["Arn"] not in administrators:
            yield "is not a data lake administrator", _ADMINISTRATOR


def _actions(document: Node) -> set[str]:
    """Return the allowed actions of a policy; conditional statements of a template are left out."""
    allowed: set[str] = set()
    for statement in document["Statement"]:
        actions = statement.get("Action", ())
        allowed |= {actions} if isinstance(actions, str) else set(actions)
    return allowed


def _managed_policy(part: _Part) -> Lacks:
    role = part.parts.key(part.properties["Roles"][0])
    attached = part.call("iam", "list_attached_role_policies", RoleName=part.parts.name(role))
    required = sum(
        part.parts.key(resource["Properties"]["Roles"][0]) == role
        for resource in part.parts.resources.values()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    )
    count = len(attached["AttachedPolicies"])
    if count < required:
        yield f"{part.parts.name(role)} has {pluralize(count, 'policy', 'policies')} of {required}", _DEPLOY


def _queue(part: _Part) -> Lacks:
    url = part.call("sqs", "get_queue_url", QueueName=part.name)["QueueUrl"]
    names = ["ApproximateNumberOfMessages"]
    answer = part.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=names)
    count = int(answer["Attributes"]["ApproximateNumberOfMessages"])
    # A queue with a redrive policy is worked on; in a dead-letter queue, each message is a failure.
    if count and "RedrivePolicy" not in part.properties:
        hint = "Read them with 'aws sqs receive-message', fix the cause, then send them again or purge."
        yield f"has {pluralize(count, 'message')} of failed starts", hint


def _queue_policy(part: _Part) -> Lacks:
    queue = part.parts.text(part.properties["Queues"][0])
    url = part.call("sqs", "get_queue_url", QueueName=queue)["QueueUrl"]
    answer = part.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=["Policy"])
    if "Policy" not in answer.get("Attributes", {}):
        raise _Missing
    yield from ()


def _topic(part: _Part) -> Lacks:
    part.call("sns", "get_topic_attributes", TopicArn=part.arn)
    yield from ()


def _topic_policy(part: _Part) -> Lacks:
    topic = part.parts.arn(part.parts.key(part.properties["Topics"][0]))
    attributes = part.call("sns", "get_topic_attributes", TopicArn=topic)["Attributes"]
    required = {
        statement["Sid"] for statement in part.properties["PolicyDocument"]["Statement"] if "Sid" in statement
    }
    present = {
        statement.get("Sid") for statement in json.loads(attributes.get("Policy", "{}")).get("Statement", ())
    }
    if not required <= present:
        yield f"lacks the statements {', '.join(sorted(required - present))}", _DEPLOY


def _function(part: _Part) -> Lacks:
    name = part.name
    current = part.call("lambda", "get_function_configuration", FunctionName=name)
    if current.get("State") == "Failed":
        yield (
            f"failed: {current.get('StateReason', 'without a reason')}",
            "Fix its image, then deploy it again.",
        )
    role = part.parts.text(part.properties["Role"])
    if current.get("Role") != role:
        yield f"runs as {current.get('Role')}, not as {role}", _DEPLOY
    required = part.properties.get("Environment", {}).get("Variables", {})
    present = current.get("Environment", {}).get("Variables", {})
    # Values may be secrets, and conditional variables may be left out.
    lacking = sorted(
        name for name, value in required.items() if isinstance(value, str) and name not in present
    )
    if lacking:
        yield f"lacks the variables {', '.join(lacking)}", _DEPLOY


def _function_permission(part: _Part) -> Lacks:
    function = part.parts.text(part.properties["FunctionName"])
    policy = part.call("lambda", "get_policy", FunctionName=function)["Policy"]
    source = part.parts.text(part.properties.get("SourceArn"))
    if source and source not in policy:
        yield f"{source} may not start the function", _DEPLOY


def _invoke_config(part: _Part) -> Lacks:
    name = part.parts.text(part.properties["FunctionName"])
    current = part.call("lambda", "get_function_event_invoke_config", FunctionName=name)
    if not current.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"):
        yield "has no destination for failed events", _DEPLOY


def _event_source(part: _Part) -> Lacks:
    name = part.parts.text(part.properties["FunctionName"])
    answer = part.call("lambda", "list_event_source_mappings", FunctionName=name)
    source = part.parts.text(part.properties["EventSourceArn"])
    mappings = [mapping for mapping in answer["EventSourceMappings"] if mapping["EventSourceArn"] == source]
    if not mappings:
        raise _Missing
    if all(mapping.get("State") == "Disabled" for mapping in mappings):
        yield "is disabled", "Enable it: aws lambda update-event-source-mapping --enabled"


def _schedule_group(part: _Part) -> Lacks:
    part.call("scheduler", "get_schedule_group", Name=part.name)
    yield from ()


def _schedule(part: _Part) -> Lacks:
    group = part.parts.text(part.properties.get("GroupName")) or "default"
    current = part.call("scheduler", "get_schedule", Name=part.name, GroupName=group)
    if current.get("State") == "DISABLED":
        yield "is disabled", "Enable it in EventBridge Scheduler, or deploy the template again."


def _rule(part: _Part) -> Lacks:
    name = part.properties.get("Name")
    if not name:
        target = part.parts.text(part.properties["Targets"][0]["Arn"])
        if not part.call("events", "list_rule_names_by_target", TargetArn=target)["RuleNames"]:
            raise _Missing
        return
    if part.call("events", "describe_rule", Name=name).get("State") == "DISABLED":
        yield "is disabled", f"Enable it: aws events enable-rule --name {name}"


def _log_group(part: _Part) -> Lacks:
    name = part.name
    answer = part.call("logs", "describe_log_groups", logGroupNamePrefix=name)
    if name not in [group["logGroupName"] for group in answer["logGroups"]]:
        raise _Missing
    yield from ()


def _alarm(part: _Part) -> Lacks:
    """Find an alarm by its metric, because CloudFormation may have named it."""
    dimensions = [
        {"Name": dimension["Name"], "Value": part.parts.text(dimension["Value"])}
        for dimension in part.properties["Dimensions"]
    ]
    answer = part.call(
        "cloudwatch",
        "describe_alarms_for_metric",
        Namespace=part.properties["Namespace"],
        MetricName=part.properties["MetricName"],
        Dimensions=dimensions,
    )
    alarms = [alarm for alarm in answer["MetricAlarms"] if alarm.get("Dimensions") == dimensions]
    if not alarms:
        raise _Missing
    for alarm in alarms:
        if alarm.get("StateValue") == "ALARM":
            yield (
                f"is in alarm: {part.properties.get('AlarmDescription', '')}",
                "Read the log of the function.",
            )
        if not alarm.get("AlarmActions"):
            yield "notifies no topic", "Deploy the template with the parameter AlarmTopic."
        elif not alarm.get("ActionsEnabled", True):
            yield "has its actions disabled", "Enable them: aws cloudwatch enable-alarm-actions"


CHECKS: Mapping[str, Callable[[_Part], Lacks]] = {
    "AWS::IAM::Role": _role,
    "AWS::IAM::ManagedPolicy": _managed_policy,
    "AWS::SQS::Queue": _queue,
    "AWS::SQS::QueuePolicy": _queue_policy,
    "AWS::SNS::Topic": _topic,
    "AWS::SNS::TopicPolicy": _topic_policy,
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::Permission": _function_permission,
    "AWS::Lambda::EventInvokeConfig": _invoke_config,
    "AWS::Lambda::EventSourceMapping": _event_source,
    "AWS::Scheduler::ScheduleGroup": _schedule_group,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::Events::Rule": _rule,
    "AWS::Logs::LogGroup": _log_group,
    "AWS::CloudWatch::Alarm": _alarm,
}
