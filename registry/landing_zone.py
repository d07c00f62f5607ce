"""Prerequisites of dq in an AWS account: a CloudFormation stack, and the allowed actions of its roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

from dq.contracts.outcome import UsageError
from dq.registry.schedules import TARGETS, service_of
from dq.registry.stack import (
    VERSION,
    Node,
    allow_statement,
    iam_role,
    logical_id,
    own_arn,
    stack_output,
    stack_resource,
)


class ResourceScope(StrEnum):
    """Kind of AWS resources that an action applies to."""

    TABLES = "the catalog, and databases of the domains with their tables"
    LINKS = "the account's own catalog, and the database of the links with its tables"
    SHARED = "the owner's catalog, and its shared databases and tables"
    FILES = "the files of the tables"
    MARKERS = "the markers of deliveries"
    QUARANTINE = "the folder of the quarantine or of the good rows"
    BUCKETS = "the bucket, below the folders of the tables"
    TOPICS = "the topic of the domain"
    SCHEDULES = "the schedules of the group"
    SCHEDULE_GROUP = "the group of schedules"
    SCHEDULER_ROLE = "the role that starts the schedule's target"
    LAKE_ROLE = "the role with which Lake Formation reads"
    EVENT_QUEUE = "the queue of object events"
    DEAD_LETTERS = "the dead-letter queue"
    LOGS = "the log of the function"
    # Actions without resources, or restricted by the service's own grants.
    EVERYTHING = "everything"


# The only service to which iam:PassRole may pass the role.
PASSED_TO = {
    ResourceScope.SCHEDULER_ROLE: "scheduler.amazonaws.com",
    ResourceScope.LAKE_ROLE: "lakeformation.amazonaws.com",
}


@dataclass(frozen=True, slots=True)
class Privilege:
    """IAM actions on resources; `condition` tells for what they are needed, "" for always.

    `action_names` are those of one service, e.g. `s3: GetObject PutObject`.
    """

    scope: ResourceScope
    action_names: str
    condition: str = ""

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions as IAM writes them, e.g. `s3:GetObject`."""
        service, _, names = self.action_names.partition(":")
        return tuple(f"{service}:{name}" for name in names.split())


@dataclass(frozen=True, slots=True)
class Duty:
    """A role of a dq user, with its commands and the AWS privileges they need."""

    name: str
    description: str
    commands: str
    privileges: tuple[Privilege, ...]


GOVERNED, _TIMED = "the setting `lake_formation`", "the setting `schedule_target`"
_WATCHED = "the setting `watch_catalog`"
FUNCTION, IN_VPC = "`dq.aws.handler` in AWS Lambda", "the function in a VPC"
_LIST_BUCKETS = Privilege(ResourceScope.BUCKETS, "s3: ListBucket")
_READ_FILES = Privilege(ResourceScope.FILES, "s3: GetObject")

_READ_INDEXES = Privilege(
    ResourceScope.TABLES, "glue: GetPartitionIndexes", "a table that has partition indexes"
)

PLANNER = Duty(
    "planner",
    "plans without making changes",
    "`dq register` without `--apply`, `dq import glue`, `dq discover glue://`, `dq doctor --catalog glue`",
    (
        Privilege(ResourceScope.TABLES, "glue: GetPartitions GetTable GetTables"),
        _READ_INDEXES,
        Privilege(ResourceScope.TABLES, "glue: GetDatabases", "`dq discover glue://`, of all databases"),
        Privilege(
            ResourceScope.EVERYTHING,
            "lakeformation: GetLFTag GetResourceLFTags ListPermissions ListResources",
            GOVERNED,
        ),
        Privilege(ResourceScope.SCHEDULES, "scheduler: GetSchedule", _TIMED),
        Privilege(ResourceScope.SCHEDULE_GROUP, "scheduler: GetScheduleGroup", _TIMED),
        Privilege(ResourceScope.EVERYTHING, "scheduler: ListSchedules", _TIMED),
    ),
)
REGISTRAR = Duty(
    "registrar",
    "applies the contracts to the catalog",
    "`dq register --apply`",
    (
        *PLANNER.privileges,
        Privilege(
            ResourceScope.TABLES,
            "glue: BatchUpdatePartition CreateDatabase CreatePartitionIndex CreateTable DeletePartitionIndex "
            "UpdateTable",
        ),
        Privilege(ResourceScope.TABLES, "glue: DeleteTable", "`--prune`"),
        Privilege(
            ResourceScope.EVERYTHING,
            "lakeformation: AddLFTagsToResource CreateDataCellsFilter CreateLFTag DeleteDataCellsFilter "
            "GrantPermissions RegisterResource RemoveLFTagsFromResource RevokePermissions UpdateLFTag",
            GOVERNED,
        ),
        Privilege(ResourceScope.LAKE_ROLE, "iam: PassRole", "`locations` in the setting `lake_formation`"),
        Privilege(ResourceScope.SCHEDULES, "scheduler: CreateSchedule DeleteSchedule UpdateSchedule", _TIMED),
        Privilege(ResourceScope.SCHEDULER_ROLE, "iam: PassRole", _TIMED),
    ),
)
PUBLISHER = Duty(
    "publisher",
    "publishes deliveries",
    "`dq publish --catalog glue`, `dq.publish`",
    (
        Privilege(ResourceScope.TABLES, "glue: BatchCreatePartition GetPartition GetTable"),
        _READ_INDEXES,
        Privilege(
            ResourceScope.TABLES, "glue: BatchUpdatePartition", "`--audit`, and a partition that was moved"
        ),
        Privilege(
            ResourceScope.TABLES, "glue: GetPartitions", "`--audit`, with clauses about the whole table"
        ),
        _LIST_BUCKETS,
        # Also without an audit: a check for a folder first asks S3 for an object of that key.
        _READ_FILES,
        Privilege(ResourceScope.MARKERS, "s3: PutObject"),
        Privilege(ResourceScope.TOPICS, "sns: Publish", "the setting `topic`"),
    ),
)
REPAIRER = Duty(
    "repairer",
    "adds partitions that were written without dq",
    "`dq repair --catalog glue --apply`",
    (
        Privilege(ResourceScope.TABLES, "glue: GetPartitions GetTable"),
        _READ_INDEXES,
        Privilege(ResourceScope.TABLES, "glue: BatchCreatePartition GetPartition", "`--apply`"),
        _LIST_BUCKETS,
    ),
)
CHECKER = Duty(
    "checker",
    "reads the rows; Spark does, with the permissions of the cluster",
    "`dq check`, `dq.check`, `dq backtest`",
    (
        _LIST_BUCKETS,
        _READ_FILES,
        Privilege(
            ResourceScope.QUARANTINE,
            "s3: DeleteObject GetObject PutObject",
            "`--quarantine` or `--clean` with a folder in S3",
        ),
    ),
)
WATCHER = Duty(
    "watcher",
    "detects whether deliveries have arrived",
    "`dq watch`, `dq.cycle`, `dq.aws.handler`, the sensor of Airflow",
    (
        _LIST_BUCKETS,
        _READ_FILES,
        Privilege(ResourceScope.TABLES, "glue: GetTable UpdateTable", _WATCHED),
        Privilege(ResourceScope.TABLES, "glue: GetPartitionIndexes", f"{_WATCHED}, and partition indexes"),
        Privilege(
            ResourceScope.EVENT_QUEUE, "sqs: DeleteMessage GetQueueAttributes ReceiveMessage", FUNCTION
        ),
        Privilege(ResourceScope.DEAD_LETTERS, "sqs: SendMessage", FUNCTION),
        Privilege(ResourceScope.LOGS, "logs: CreateLogStream PutLogEvents", FUNCTION),
        Privilege(
            ResourceScope.EVERYTHING,
            "ec2: AssignPrivateIpAddresses CreateNetworkInterface DeleteNetworkInterface "
            "DescribeNetworkInterfaces DescribeSubnets UnassignPrivateIpAddresses",
            IN_VPC,
        ),
    ),
)
CONSUMER = Duty(
    "consumer",
    "accepts shared tables in its own account",
    "`dq link`",
    (
        Privilege(ResourceScope.EVERYTHING, "ram: GetResourceShareInvitations"),
        Privilege(
            ResourceScope.EVERYTHING,
            "ram: AcceptResourceShareInvitation",
            "an owner outside the organization",
        ),
        Privilege(ResourceScope.LINKS, "glue: GetDatabase GetTable"),
        # AWS asks for both the link and the table that it leads to.
        Privilege(ResourceScope.SHARED, "glue: GetDatabase GetTable"),
        Privilege(ResourceScope.EVERYTHING, "glue: SearchTables", "all shared tables, and `--prune`"),
        Privilege(ResourceScope.LINKS, "glue: CreateDatabase CreateTable UpdateDatabase", "`--apply`"),
        Privilege(ResourceScope.LINKS, "glue: DeleteTable", "`--prune`"),
        Privilege(ResourceScope.EVERYTHING, "lakeformation: ListPermissions"),
        Privilege(ResourceScope.EVERYTHING, "lakeformation: GrantPermissions RevokePermissions", "`--apply`"),
    ),
)

INSPECTOR = Duty(
    "inspector",
    "checks that the parts of a stack are there",
    "`dq doctor --aws`",
    tuple(
        Privilege(ResourceScope.EVERYTHING, names)
        for names in (
            "iam: GetRole GetRolePolicy ListAttachedRolePolicies",
            "sqs: GetQueueAttributes GetQueueUrl",
            "sns: GetTopicAttributes",
            "lambda: GetFunctionConfiguration GetFunctionEventInvokeConfig GetPolicy ListEventSourceMappings",
            "scheduler: GetSchedule GetScheduleGroup",
            "events: DescribeRule ListRuleNamesByTarget",
            "logs: DescribeLogGroups",
            "cloudwatch: DescribeAlarmsForMetric",
            "lakeformation: GetDataLakeSettings",
        )
    ),
)

DUTIES = (PLANNER, REGISTRAR, PUBLISHER, REPAIRER, CHECKER, WATCHER, CONSUMER, INSPECTOR)


def actions_of(duty: Duty) -> frozenset[str]:
    """Return all actions of a duty."""
    return frozenset(action for privilege in duty.privileges for action in privilege.actions)


@dataclass(frozen=True, slots=True)
class ConditionalResource:
    """A resource on which actions are allowed under a condition; empty for no condition."""

    resource: Any
    condition: Node


Places = Mapping[ResourceScope, Sequence[Any]]
"""ARNs, CloudFormation nodes that yield ARNs, and `ConditionalResource`s."""


def duty_policy(duty: Duty, places: Places, without: str | None = None) -> Node:
    """Return the IAM policy of a duty, leaving out scopes without resources and the condition `without`."""
    return {"Version": VERSION, "Statement": list(_statements(duty, places, without))}


def _statements(duty: Duty, places: Places, without: str | None) -> Iterator[Node]:
    by_place: dict[ResourceScope, set[str]] = {}
    for privilege in duty.privileges:
        if privilege.condition != without:
            by_place.setdefault(privilege.scope, set()).update(privilege.actions)
    for scope, actions in by_place.items():
        allow = {"Effect": "Allow", "Action": sorted(actions)}
        bounds = {"StringEquals": {"iam:PassedToService": PASSED_TO[scope]}} if scope in PASSED_TO else {}
        scope_resources = places.get(scope, ())
        plain = [resource for resource in scope_resources if not isinstance(resource, ConditionalResource)]
        bounded = [
            ([resource.resource], resource.condition)
            for resource in scope_resources
            if isinstance(resource, ConditionalResource)
        ]
        for resources, condition in [(plain, bounds), *bounded] if plain else bounded:
            yield {**allow, "Resource": resources, **({"Condition": condition} if condition else {})}


# Tables and files of a domain, as resources of policies in a stack.


# Fits into an inline policy of a role, next to the other statements.
_MAX_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain that publishes to one topic: its databases, and the folders of its tables in S3.

    `name` is "" for a topic of all domains. `markers` are the names of the marker files of complete
    deliveries. `readers` are the accounts that subscribe.
    """

    name: str
    topic: str
    databases: Sequence[str] = ()
    folders: Sequence[str] = ()
    markers: Sequence[str] = ()
    readers: Sequence[str] = ()


def glue_arns(databases: Iterable[str]) -> list[Node]:
    """Return the ARNs of the catalog, these databases, and all of their tables."""
    names = [_literal(database) for database in sorted(set(databases))]
    named = [part for name in names for part in (f"database/{name}", f"table/{name}/*")]
    return [own_arn("glue", path) for path in ("catalog", *named)]


def file_arns(folders: Iterable[str], pattern: str) -> list[Node]:
    """Return the ARNs that match the pattern below these folders `s3://bucket/path`."""
    return [_bucket_arn("/".join((*map(_literal, path), pattern))) for path in _outer_paths(folders)]


def bucket_resources(folders: Iterable[str]) -> list[ConditionalResource]:
    """Return the buckets of these folders, each with a condition to list only these folders."""
    by_bucket: dict[str, list[str]] = {}
    for bucket, *path in _outer_paths(folders):
        by_bucket.setdefault(bucket, []).append("/".join(map(_for_iam, path)))
    return [
        ConditionalResource(
            _bucket_arn(_literal(bucket)),
            {"StringLike": {"s3:prefix": [part for path in paths for part in (path, f"{path}/*")]}}
            if all(paths)
            else {},
        )
        for bucket, paths in sorted(by_bucket.items())
    ]


def key_prefixes(folders: Iterable[str]) -> dict[str, list[str]]:
    """Return the prefixes of the keys below these folders `s3://bucket/path`, by bucket; "" for all keys."""
    by_bucket: dict[str, list[str]] = {}
    for bucket, *path in _outer_paths(folders):
        by_bucket.setdefault(bucket, []).append("".join(f"{name}/" for name in path))
    return by_bucket


def _outer_paths(folders: Iterable[str]) -> list[list[str]]:
    """Return bucket and path of the outermost folders; one common path per bucket if there are too many."""
    paths = sorted({tuple(re.sub("^s3[an]?://", "", folder).rstrip("/").split("/")) for folder in folders})
    outer: list[tuple[str, ...]] = []
    for path in paths:
        if not outer or path[: len(outer[-1])] != outer[-1]:
            outer.append(path)
    if len(outer) <= _MAX_FOLDERS:
        return [list(path) for path in outer]
    buckets = sorted({path[0] for path in outer})
    return [_common([path for path in outer if path[0] == bucket]) for bucket in buckets]


def _common(paths: list[tuple[str, ...]]) -> list[str]:
    return [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False))]


def _for_iam(text: str) -> str:
    """Escape a name for a policy, so that a pattern in a contract cannot widen a role."""
    return re.sub("[*?$]", lambda match: f"${{{match[0]}}}", text)


def _literal(text: str) -> str:
    """Escape a name for a policy inside of Fn::Sub."""
    return _for_iam(text).replace("${", "${!")


def _bucket_arn(path: str) -> Node:
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{path}"}


# The policy of a domain's topic: its publisher and its subscribers.

# Allowed protocols of subscriptions; mail and phone are not consumers.
_PROTOCOLS = ["firehose", "https", "lambda", "sqs"]


def topic_policy(topic: str, publisher: str, readers: Sequence[str], condition: str) -> Node:
    """Return the policy of a topic of the stack for its publisher, if the stack has one, and its readers.

    `readers` are accounts, whose administrators delegate access. Unencrypted requests are denied.
    """
    resources = [{"Ref": topic}]
    statements: list[Node] = [
        {
            "Sid": "Encrypted",
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["sns:Publish", "sns:Subscribe"],
            "Resource": resources,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
        {
            "Fn::If": [
                condition,
                {
                    "Sid": "Publisher",
                    "Effect": "Allow",
                    "Principal": {"AWS": {"Fn::GetAtt": [publisher, "Arn"]}},
                    "Action": "sns:Publish",
                    "Resource": resources,
                },
                {"Ref": "AWS::NoValue"},
            ]
        },
    ]
    if readers:
        statements.append(
            {
                "Sid": "Subscribers",
                "Effect": "Allow",
                "Principal": {"AWS": sorted(readers)},
                "Action": "sns:Subscribe",
                "Resource": resources,
                "Condition": {"StringEquals": {"sns:Protocol": _PROTOCOLS}},
            }
        )
    return {"Version": VERSION, "Statement": statements}


# The CloudFormation stack that `dq` expects in an account: topics, queue, schedule group and roles.
#
# Source of the shapes: the template reference of CloudFormation.

_RETENTION_SECONDS = 14 * 24 * 3600
_MAX_RESOURCES = 500
_ROLE_NAME = 64
# Out of 6,144 for a managed policy; the inline policies of a role hold 10,240.
_POLICY_CHARACTERS = 5_000
_ARN_CHARACTERS = 55
_MAX_POLICIES = 10
_PUBLISHERS, _PLANNER = "HasPublishers", "HasPlanner"
# Resources without an output of the stack.
_UNNAMED = ("AWS::SNS::TopicPolicy", "AWS::IAM::ManagedPolicy")
WATCHER_FUNCTION = "dq-watcher"
DOMAIN_TAG = "dq-domain"
"""Principal tag with the domain, required to assume the role of the domain's publisher."""


@dataclass(frozen=True, slots=True)
class LandingZone:
    """Contents of the stack. `locations` are prefixes `s3://bucket/path` that Lake Formation reads.

    `target` is the ARN that schedules start. The role of the scheduler starts it, and with `watcher` the
    function of the watcher. Without `locations` there is no role that reads them.
    """

    domains: Sequence[Domain]
    databases: Sequence[str]
    locations: Sequence[str] = ()
    target: str = ""
    group: str = "dq"
    queue: str = "dq-dead-letters"
    scheduler_role: str = "dq-scheduler"
    lake_role: str = "dq-lake-reader"
    governed: bool = False
    watcher: bool = False


def template(zone: LandingZone) -> Node:
    """Return the template; deterministic. Raises UsageError if it exceeds the limits of a stack."""
    resources: Node = {
        "ScheduleGroup": stack_resource("AWS::Scheduler::ScheduleGroup", {"Name": zone.group}),
        "DeadLetters": stack_resource(
            "AWS::SQS::Queue",
            {
                "QueueName": zone.queue,
                "MessageRetentionPeriod": _RETENTION_SECONDS,
                "SqsManagedSseEnabled": True,
            },
            retain=True,
        ),
    }
    resources |= _registrars(zone)
    for domain in sorted(zone.domains, key=lambda domain: domain.topic):
        name = logical_id(domain.topic)
        resources[f"Topic{name}"] = stack_resource(
            "AWS::SNS::Topic", {"TopicName": domain.topic}, retain=True
        )
        resources[f"Publisher{name}"] = _publisher(domain, f"Topic{name}")
        resources[f"Heard{name}"] = stack_resource(
            "AWS::SNS::TopicPolicy",
            {
                "Topics": [{"Ref": f"Topic{name}"}],
                "PolicyDocument": topic_policy(
                    f"Topic{name}", f"Publisher{name}", domain.readers, _PUBLISHERS
                ),
            },
        )
    if zone.target or zone.watcher:
        resources["SchedulerRole"] = _scheduler_role(zone)
    if zone.locations:
        files: Places = {
            ResourceScope.FILES: file_arns(zone.locations, "*"),
            ResourceScope.BUCKETS: bucket_resources(zone.locations),
        }
        resources["LakeReader"] = iam_role(
            zone.lake_role, {"Service": "lakeformation.amazonaws.com"}, duty_policy(WATCHER, files)
        )
    if len(resources) > _MAX_RESOURCES:
        raise UsageError(
            f"A stack can hold {_MAX_RESOURCES} resources, and these contracts need {len(resources)}.",
            "Select fewer domains: print a stack for each folder, each with its own schedule group.",
        )
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Resources that dq needs in this account.",
        "Parameters": _parameters(),
        "Conditions": {
            _PLANNER: {"Fn::Not": [{"Fn::Equals": [{"Ref": "PlannerPrincipal"}, ""]}]},
            _PUBLISHERS: {
                "Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "PublisherPrincipals"}]}, ""]}]
            },
        },
        "Resources": resources,
        "Outputs": {
            name: stack_output(name, resource)
            for name, resource in resources.items()
            if resource["Type"] not in _UNNAMED
        },
    }


def _parameters() -> Node:
    arn = r"arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:.+"
    return {
        "RegistrarPrincipal": {
            "Type": "String",
            "AllowedPattern": arn,
            "Description": "The ARN of the role or user who runs dq register --apply.",
        },
        "PlannerPrincipal": {
            "Type": "String",
            "Default": "",
            "AllowedPattern": f"({arn})?",
            "Description": "The ARN of the role that plans for pull requests; empty for none.",
        },
        "PublisherPrincipals": {
            "Type": "CommaDelimitedList",
            "Default": "",
            "Description": f"ARNs of the roles of jobs that publish; each has its domain in the tag "
            f"{DOMAIN_TAG}. Empty for none.",
        },
    }


def _registrars(zone: LandingZone) -> Node:
    """Return the roles of registrar and planner, and extra policies for databases that do not fit in them."""
    glue = [glue_arns(part) for part in _parts(sorted(set(zone.databases)))]
    places: dict[ResourceScope, Sequence[Any]] = {
        ResourceScope.TABLES: glue[0],
        ResourceScope.SCHEDULES: [own_arn("scheduler", f"schedule/{zone.group}/*")],
        ResourceScope.SCHEDULE_GROUP: [{"Fn::GetAtt": ["ScheduleGroup", "Arn"]}],
        ResourceScope.EVERYTHING: ["*"],
    }
    if zone.target or zone.watcher:
        places[ResourceScope.SCHEDULER_ROLE] = [{"Fn::GetAtt": ["SchedulerRole", "Arn"]}]
    if zone.locations and zone.governed:
        places[ResourceScope.LAKE_ROLE] = [{"Fn::GetAtt": ["LakeReader", "Arn"]}]
    without = None if zone.governed else GOVERNED
    resources = {
        "Registrar": iam_role(
            "dq-registrar", {"AWS": {"Ref": "RegistrarPrincipal"}}, duty_policy(REGISTRAR, places, without)
        ),
        "Planner": {
            **iam_role(
                "dq-planner", {"AWS": {"Ref": "PlannerPrincipal"}}, duty_policy(PLANNER, places, without)
            ),
            "Condition": _PLANNER,
        },
    }
    for number, arns in enumerate(glue[1:], 2):
        for name, duty in (("Registrar", REGISTRAR), ("Planner", PLANNER)):
            document = duty_policy(duty, {ResourceScope.TABLES: arns})
            policy = stack_resource(
                "AWS::IAM::ManagedPolicy", {"PolicyDocument": document, "Roles": [{"Ref": name}]}
            )
            resources[f"{name}{number}"] = {**policy, "Condition": _PLANNER} if name == "Planner" else policy
    return resources


def _parts(databases: list[str]) -> list[list[str]]:
    """Split the databases into parts that each fit into one policy."""
    parts: list[list[str]] = [[]]
    for database in databases:
        size = sum(2 * (len(name) + _ARN_CHARACTERS) for name in (*parts[-1], database))
        if size > _POLICY_CHARACTERS and parts[-1]:
            parts.append([])
        parts[-1].append(database)
    if len(parts) > _MAX_POLICIES + 1:
        raise UsageError(
            f"The names of {len(databases)} databases do not fit into the policies of one role.",
            "Print a stack for each folder, each with its own schedule group.",
        )
    return parts


def _publisher(domain: Domain, topic: str) -> Node:
    places: Places = {
        ResourceScope.TABLES: glue_arns(domain.databases),
        ResourceScope.FILES: file_arns(domain.folders, "*"),
        ResourceScope.MARKERS: [
            arn
            for marker in sorted(set(domain.markers))
            for pattern in (marker, f"*/{marker}")
            for arn in file_arns(domain.folders, pattern)
        ],
        ResourceScope.BUCKETS: bucket_resources(domain.folders),
        ResourceScope.TOPICS: [{"Ref": topic}],
    }
    condition = {"StringEquals": {f"aws:PrincipalTag/{DOMAIN_TAG}": domain.name}} if domain.name else None
    name = f"dq-publisher-{domain.name}".rstrip("-")
    # CloudFormation generates a name if this one is too long.
    role = iam_role(
        name if len(name) <= _ROLE_NAME else "",
        {"AWS": {"Ref": "PublisherPrincipals"}},
        duty_policy(PUBLISHER, places),
        condition,
    )
    return {**role, "Condition": _PUBLISHERS}


def _scheduler_role(zone: LandingZone) -> Node:
    statements = []
    if zone.watcher:
        function = {"Fn::GetAtt": ["Watcher", "Arn"]}
        statements.append(allow_statement(TARGETS["lambda"][0], [function]))
    if zone.target and not (zone.watcher and zone.target.endswith(f":function:{WATCHER_FUNCTION}")):
        service = service_of(zone.target)
        targets = [zone.target]
        if service == "lambda" and zone.target.count(":") == 6:
            # The ARN of a version or alias of the function has one more part.
            targets.append(f"{zone.target}:*")
        statements.append(allow_statement(TARGETS[service][0], targets))
    statements.append(allow_statement("sqs:SendMessage", [{"Fn::GetAtt": ["DeadLetters", "Arn"]}]))
    # Prevents use of the role by the scheduler of another account (confused deputy).
    condition = {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": ["ScheduleGroup", "Arn"]},
        }
    }
    document = {"Version": VERSION, "Statement": statements}
    return iam_role(zone.scheduler_role, {"Service": "scheduler.amazonaws.com"}, document, condition)
