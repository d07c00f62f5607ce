"""The stack of CloudFormation with what `dq` expects of an account: topics, queue, schedule group and roles.

Source of the shapes: the template reference of CloudFormation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dq.registry.landing import privileges
from dq.registry.scheduler.entry import TARGETS, service_of

Node = dict[str, Any]

_LONGEST_KEPT = 14 * 24 * 3600
_VERSION = "2012-10-17"
# An action of Lake Formation that the service itself checks; there is no name to write.
_EVERY = "*"


@dataclass(frozen=True, slots=True)
class LandingZone:
    """What the stack is of. `locations` are prefixes `s3://bucket/path` that Lake Formation reads.

    `target` is the ARN of what schedules start, or "", which leaves their role out; so do no `locations`
    for the role that reads them.
    """

    databases: Sequence[str]
    topics: Sequence[str]
    locations: Sequence[str] = ()
    target: str = ""
    group: str = "dq"
    queue: str = "dq-dead-letters"
    scheduler_role: str = "dq-scheduler"
    lake_role: str = "dq-lake-reader"
    governed: bool = False


def template(zone: LandingZone) -> Node:
    """The template, the same for the same landing zone."""
    resources: Node = {
        "ScheduleGroup": _resource("AWS::Scheduler::ScheduleGroup", {"Name": zone.group}),
        "DeadLetters": _resource(
            "AWS::SQS::Queue",
            {
                "QueueName": zone.queue,
                "MessageRetentionPeriod": _LONGEST_KEPT,
                "SqsManagedSseEnabled": True,
            },
            kept=True,
        ),
        "Registrar": _role("dq-registrar", {"AWS": {"Ref": "RegistrarPrincipal"}}, _registrar(zone)),
    }
    for name in sorted(set(zone.topics)):
        resources[f"Topic{_logical(name)}"] = _resource("AWS::SNS::Topic", {"TopicName": name}, kept=True)
    if zone.target:
        resources["SchedulerRole"] = _scheduler_role(zone)
    if zone.locations:
        resources["LakeReader"] = _role(
            zone.lake_role, {"Service": "lakeformation.amazonaws.com"}, _reading(zone.locations)
        )
    outputs = {name: {"Value": _arn_of(name, one["Type"])} for name, one in resources.items()}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What dq expects of this account.",
        "Parameters": {
            "RegistrarPrincipal": {
                "Type": "String",
                "AllowedPattern": r"arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:.+",
                "Description": "The ARN of the role or user who runs dq register.",
            }
        },
        "Resources": resources,
        "Outputs": outputs,
    }


def _registrar(zone: LandingZone) -> list[Node]:
    glue = ["catalog", *(part for one in sorted(set(zone.databases)) for part in _database(one))]
    made = [
        _allow(privileges.GLUE, [_sub("glue", one) for one in glue]),
        _allow(privileges.SCHEDULES, [_sub("scheduler", f"schedule/{zone.group}/*")]),
        _allow(privileges.SCHEDULE_GROUP, [{"Fn::GetAtt": ["ScheduleGroup", "Arn"]}]),
        _allow(privileges.SCHEDULE_LISTS, [_EVERY]),
    ]
    if zone.target:
        made.append(_pass("SchedulerRole", "scheduler.amazonaws.com"))
    if zone.governed:
        made.append(_allow(privileges.LAKE_FORMATION, [_EVERY]))
        if zone.locations:
            made.append(_pass("LakeReader", "lakeformation.amazonaws.com"))
    return made


def _database(name: str) -> tuple[str, str]:
    return f"database/{name}", f"table/{name}/*"


def _scheduler_role(zone: LandingZone) -> Node:
    service = service_of(zone.target)
    targets = [zone.target]
    if service == "lambda" and zone.target.count(":") == 6:
        # A version or an alias of the function is one more name.
        targets.append(f"{zone.target}:*")
    statements = [
        _allow([TARGETS[service][0]], targets),
        _allow(["sqs:SendMessage"], [{"Fn::GetAtt": ["DeadLetters", "Arn"]}]),
    ]
    # Another account's scheduler is not to be helped.
    own = {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": ["ScheduleGroup", "Arn"]},
        }
    }
    return _role(zone.scheduler_role, {"Service": "scheduler.amazonaws.com"}, statements, own)


def _reading(locations: Iterable[str]) -> list[Node]:
    made = []
    for location in sorted(set(locations)):
        bucket, _, path = re.sub("^s3[an]?://", "", location).rstrip("/").partition("/")
        files = (
            f"arn:${{AWS::Partition}}:s3:::{bucket}/{path}/*"
            if path
            else f"arn:${{AWS::Partition}}:s3:::{bucket}/*"
        )
        made.append(_allow(["s3:GetObject"], [{"Fn::Sub": files}]))
        listed = _allow(["s3:ListBucket"], [{"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{bucket}"}])
        if path:
            listed["Condition"] = {"StringLike": {"s3:prefix": [path, f"{path}/*"]}}
        made.append(listed)
    return made


def _role(name: str, principal: Node, statements: list[Node], condition: Node | None = None) -> Node:
    trust: Node = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    if condition is not None:
        trust["Condition"] = condition
    return _resource(
        "AWS::IAM::Role",
        {
            "RoleName": name,
            "AssumeRolePolicyDocument": {"Version": _VERSION, "Statement": [trust]},
            "Policies": [
                {"PolicyName": "dq", "PolicyDocument": {"Version": _VERSION, "Statement": statements}}
            ],
        },
    )


def _resource(kind: str, properties: Node, *, kept: bool = False) -> Node:
    made: Node = {"Type": kind, "Properties": properties}
    if kept:
        # Messages and subscriptions would be lost with it.
        made |= {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return made


def _allow(actions: Sequence[str], resources: Sequence[Any]) -> Node:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _pass(role: str, service: str) -> Node:
    made = _allow(["iam:PassRole"], [{"Fn::GetAtt": [role, "Arn"]}])
    return {**made, "Condition": {"StringEquals": {"iam:PassedToService": service}}}


def _sub(service: str, rest: str) -> Node:
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{rest}"}


def _arn_of(name: str, kind: str) -> Node:
    return {"Ref": name} if kind == "AWS::SNS::Topic" else {"Fn::GetAtt": [name, "Arn"]}


def _logical(name: str) -> str:
    """A logical id of letters and digits alone, another one for each name."""
    return re.sub("[^A-Za-z0-9]", lambda found: f"x{ord(found[0]):02x}", name)
