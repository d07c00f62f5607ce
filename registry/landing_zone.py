"""What an account needs before dq: a stack of CloudFormation, and the actions that its roles may take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

from dq.contracts.outcome import UsageError
from dq.registry.schedules import TARGETS, service_of

Node = dict[str, Any]
VERSION = "2012-10-17"


class On(StrEnum):
    """What an action is on."""

    TABLES = "the catalog, and databases of the domains with their tables"
    LINKS = "one's own catalog, the database of the links and its tables"
    FILES = "the files of the tables"
    MARKERS = "the markers of deliveries"
    QUARANTINE = "the folder of the quarantine"
    BUCKETS = "the bucket, below the folders of the tables"
    TOPICS = "the topic of the domain"
    SCHEDULES = "the schedules of the group"
    SCHEDULE_GROUP = "the group of schedules"
    SCHEDULER_ROLE = "the role that starts what is due"
    LAKE_ROLE = "the role with which Lake Formation reads"
    # Such an action knows no resources, or its service bounds it by grants of its own.
    EVERYTHING = "everything"


# Who is told the role by iam:PassRole, and nobody else.
PASSED_TO = {
    On.SCHEDULER_ROLE: "scheduler.amazonaws.com",
    On.LAKE_ROLE: "lakeformation.amazonaws.com",
}


@dataclass(frozen=True, slots=True)
class Privilege:
    """Actions of IAM on something; `when` says for what alone they are needed, "" for always.

    `named` are those of one service, such as `s3: GetObject PutObject`.
    """

    on: On
    named: str
    when: str = ""

    @property
    def actions(self) -> tuple[str, ...]:
        """Each as IAM writes it, such as `s3:GetObject`."""
        service, _, names = self.named.partition(":")
        return tuple(f"{service}:{name}" for name in names.split())


@dataclass(frozen=True, slots=True)
class Duty:
    """What somebody does with dq, by which commands, and all that this needs in AWS."""

    name: str
    does: str
    commands: str
    privileges: tuple[Privilege, ...]


GOVERNED, _TIMED = "the setting `lake_formation`", "the setting `schedule_target`"
_LISTED = Privilege(On.BUCKETS, "s3: ListBucket")
_READ = Privilege(On.FILES, "s3: GetObject")

_INDEXED = Privilege(On.TABLES, "glue: GetPartitionIndexes", "a table that has partition indexes")

PLANNER = Duty(
    "planner",
    "plans, and changes nothing",
    "`dq register` without `--apply`, `dq import glue`, `dq doctor --catalog glue`",
    (
        Privilege(On.TABLES, "glue: GetPartitions GetTable GetTables"),
        _INDEXED,
        Privilege(
            On.EVERYTHING, "lakeformation: GetLFTag GetResourceLFTags ListPermissions ListResources", GOVERNED
        ),
        Privilege(On.SCHEDULES, "scheduler: GetSchedule", _TIMED),
        Privilege(On.SCHEDULE_GROUP, "scheduler: GetScheduleGroup", _TIMED),
        Privilege(On.EVERYTHING, "scheduler: ListSchedules", _TIMED),
    ),
)
REGISTRAR = Duty(
    "registrar",
    "makes the catalog as the contracts say",
    "`dq register --apply`",
    (
        *PLANNER.privileges,
        Privilege(
            On.TABLES,
            "glue: BatchUpdatePartition CreateDatabase CreatePartitionIndex CreateTable DeletePartitionIndex "
            "UpdateTable",
        ),
        Privilege(On.TABLES, "glue: DeleteTable", "`--prune`"),
        Privilege(
            On.EVERYTHING,
            "lakeformation: AddLFTagsToResource CreateDataCellsFilter CreateLFTag DeleteDataCellsFilter "
            "GrantPermissions RegisterResource RemoveLFTagsFromResource RevokePermissions UpdateLFTag",
            GOVERNED,
        ),
        Privilege(On.LAKE_ROLE, "iam: PassRole", "`locations` in the setting `lake_formation`"),
        Privilege(On.SCHEDULES, "scheduler: CreateSchedule DeleteSchedule UpdateSchedule", _TIMED),
        Privilege(On.SCHEDULER_ROLE, "iam: PassRole", _TIMED),
    ),
)
PUBLISHER = Duty(
    "publisher",
    "says that a delivery is complete",
    "`dq publish --catalog glue`, `dq.publish`",
    (
        Privilege(On.TABLES, "glue: BatchCreatePartition GetPartition GetTable"),
        _INDEXED,
        Privilege(On.TABLES, "glue: BatchUpdatePartition", "`--audit`, and a partition that somebody moved"),
        Privilege(On.TABLES, "glue: GetPartitions", "`--audit`, with clauses about the whole table"),
        _LISTED,
        # Also without an audit: whether a folder is there, S3 is asked by its key first.
        _READ,
        Privilege(On.MARKERS, "s3: PutObject"),
        Privilege(On.TOPICS, "sns: Publish", "the setting `topic`"),
    ),
)
REPAIRER = Duty(
    "repairer",
    "adds partitions that somebody wrote without dq",
    "`dq repair --catalog glue --apply`",
    (
        Privilege(On.TABLES, "glue: GetPartitions GetTable"),
        _INDEXED,
        Privilege(On.TABLES, "glue: BatchCreatePartition GetPartition", "`--apply`"),
        _LISTED,
    ),
)
CHECKER = Duty(
    "checker",
    "looks at the rows; Spark does, with rights of the cluster",
    "`dq check`, `dq.check`, `dq backtest`",
    (
        _LISTED,
        _READ,
        Privilege(
            On.QUARANTINE, "s3: DeleteObject GetObject PutObject", "`--quarantine` with a folder in S3"
        ),
    ),
)
WATCHER = Duty(
    "watcher",
    "sees whether deliveries came",
    "`dq watch`, `dq.cycle`, the sensor of Airflow",
    (_LISTED, _READ),
)
CONSUMER = Duty(
    "consumer",
    "accepts what was shared, in its own account",
    "`dq link`",
    (
        Privilege(On.EVERYTHING, "ram: GetResourceShareInvitations"),
        Privilege(
            On.EVERYTHING, "ram: AcceptResourceShareInvitation", "an owner outside of one's organization"
        ),
        Privilege(On.LINKS, "glue: GetDatabase GetTable"),
        Privilege(On.LINKS, "glue: CreateDatabase CreateTable", "`--apply`"),
        Privilege(On.EVERYTHING, "lakeformation: ListPermissions"),
        Privilege(On.EVERYTHING, "lakeformation: GrantPermissions", "`--apply`"),
    ),
)

DUTIES = (PLANNER, REGISTRAR, PUBLISHER, REPAIRER, CHECKER, WATCHER, CONSUMER)


def actions_of(duty: Duty) -> frozenset[str]:
    """All that a duty may do."""
    return frozenset(action for one in duty.privileges for action in one.actions)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A place where actions are allowed under a condition alone; none where that is empty."""

    resource: Any
    condition: Node


Places = Mapping[On, Sequence[Any]]
"""ARNs, nodes of CloudFormation that give some, and `Bounded` ones."""


def duty_policy(duty: Duty, places: Places, without: str | None = None) -> Node:
    """The policy of IAM for a duty, but for what has no place, and what is for `without` alone."""
    return {"Version": VERSION, "Statement": list(_statements(duty, places, without))}


def _statements(duty: Duty, places: Places, without: str | None) -> Iterator[Node]:
    by_place: dict[On, set[str]] = {}
    for privilege in duty.privileges:
        if privilege.when != without:
            by_place.setdefault(privilege.on, set()).update(privilege.actions)
    for on, actions in by_place.items():
        allow = {"Effect": "Allow", "Action": sorted(actions)}
        bounds = {"StringEquals": {"iam:PassedToService": PASSED_TO[on]}} if on in PASSED_TO else {}
        known = places.get(on, ())
        plain = [one for one in known if not isinstance(one, Bounded)]
        bounded = [([one.resource], one.condition) for one in known if isinstance(one, Bounded)]
        for resources, condition in [(plain, bounds), *bounded] if plain else bounded:
            yield {**allow, "Resource": resources, **({"Condition": condition} if condition else {})}


# Where a domain's tables and files are, as resources of policies in a stack.


# What a policy written into a role has room for, beside the rest.
_MOST_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class Domain:
    """What is published together: its topic, databases, and the folders of its tables in S3.

    `name` is "" for a topic of all domains. `markers` are the names of the files that say that a delivery
    is complete. `readers` are the accounts that subscribe.
    """

    name: str
    topic: str
    databases: Sequence[str] = ()
    folders: Sequence[str] = ()
    markers: Sequence[str] = ()
    readers: Sequence[str] = ()


def own(service: str, rest: str) -> Node:
    """The ARN of something in the stack's own account and region."""
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:{service}:${{AWS::Region}}:${{AWS::AccountId}}:{rest}"}


def glue_places(databases: Iterable[str]) -> list[Node]:
    """The catalog, these databases, and all of their tables."""
    names = [_literal(one) for one in sorted(set(databases))]
    named = [part for one in names for part in (f"database/{one}", f"table/{one}/*")]
    return [own("glue", one) for one in ("catalog", *named)]


def file_arns(folders: Iterable[str], pattern: str) -> list[Node]:
    """What matches the pattern below these folders `s3://bucket/path`."""
    return [_bucket_arn("/".join((*map(_literal, way), pattern))) for way in _ways(folders)]


def bucket_places(folders: Iterable[str]) -> list[Bounded]:
    """The buckets of these folders, each to be listed below them alone."""
    by_bucket: dict[str, list[str]] = {}
    for bucket, *path in _ways(folders):
        by_bucket.setdefault(bucket, []).append("/".join(map(_for_iam, path)))
    return [
        Bounded(
            _bucket_arn(_literal(bucket)),
            {"StringLike": {"s3:prefix": [part for one in paths for part in (one, f"{one}/*")]}}
            if all(paths)
            else {},
        )
        for bucket, paths in sorted(by_bucket.items())
    ]


def logical(name: str) -> str:
    """A logical id of letters and digits alone, another one for each name."""
    return re.sub("[^A-Za-z0-9]", lambda found: f"x{ord(found[0]):02x}", name)


def _ways(folders: Iterable[str]) -> list[list[str]]:
    """Bucket and path of each folder that lies in no other; those of a bucket in one where they are many."""
    ways = sorted({tuple(re.sub("^s3[an]?://", "", one).rstrip("/").split("/")) for one in folders})
    outer: list[tuple[str, ...]] = []
    for way in ways:
        if not outer or way[: len(outer[-1])] != outer[-1]:
            outer.append(way)
    if len(outer) <= _MOST_FOLDERS:
        return [list(one) for one in outer]
    buckets = sorted({one[0] for one in outer})
    return [_common([one for one in outer if one[0] == bucket]) for bucket in buckets]


def _common(ways: list[tuple[str, ...]]) -> list[str]:
    return [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*ways, strict=False))]


def _for_iam(text: str) -> str:
    """A name as a policy reads it: a contract must not widen a role by a pattern in it."""
    return re.sub("[*?$]", lambda found: f"${{{found[0]}}}", text)


def _literal(text: str) -> str:
    """The same inside of Fn::Sub."""
    return _for_iam(text).replace("${", "${!")


def _bucket_arn(way: str) -> Node:
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{way}"}


# Who may publish to a domain's topic, and who may subscribe: the policy of the topic itself.

# What may be told by a topic; a mail or a phone is no consumer.
_PROTOCOLS = ["firehose", "https", "lambda", "sqs"]


def topic_policy(topic: str, publisher: str, readers: Sequence[str], condition: str) -> Node:
    """The policy of a topic of the stack: its publisher, where the stack has that one, and its readers.

    `readers` are accounts, each of which gives on what it may as its own administrators say. Nobody speaks
    without encryption.
    """
    here = [{"Ref": topic}]
    statements: list[Node] = [
        {
            "Sid": "Encrypted",
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["sns:Publish", "sns:Subscribe"],
            "Resource": here,
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
                    "Resource": here,
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
                "Resource": here,
                "Condition": {"StringEquals": {"sns:Protocol": _PROTOCOLS}},
            }
        )
    return {"Version": VERSION, "Statement": statements}


# The stack of CloudFormation with what `dq` expects of an account: topics, queue, schedule group and roles.
#
# Source of the shapes: the template reference of CloudFormation.

_LONGEST_KEPT = 14 * 24 * 3600
_MOST_RESOURCES = 500
_ROLE_NAME = 64
# Of the 6,144 that a policy beside a role holds; what is written into a role itself holds 10,240.
_POLICY_CHARACTERS = 5_000
_ARN_CHARACTERS = 55
_MOST_POLICIES = 10
_PUBLISHERS, _PLANNER = "HasPublishers", "HasPlanner"
# What nobody asks the stack for.
_UNNAMED = ("AWS::SNS::TopicPolicy", "AWS::IAM::ManagedPolicy")
DOMAIN_TAG = "dq-domain"
"""Whoever takes on the role of a domain's publisher carries the domain in this tag."""


@dataclass(frozen=True, slots=True)
class LandingZone:
    """What the stack is of. `locations` are prefixes `s3://bucket/path` that Lake Formation reads.

    `target` is the ARN of what schedules start, or "", which leaves their role out; so do no `locations`
    for the role that reads them.
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


def template(zone: LandingZone) -> Node:
    """The template, the same for the same landing zone. Raises UsageError for what no stack can hold."""
    made: Node = {
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
    }
    made |= _registrars(zone)
    for one in sorted(zone.domains, key=lambda domain: domain.topic):
        name = logical(one.topic)
        made[f"Topic{name}"] = _resource("AWS::SNS::Topic", {"TopicName": one.topic}, kept=True)
        made[f"Publisher{name}"] = _publisher(one, f"Topic{name}")
        made[f"Heard{name}"] = _resource(
            "AWS::SNS::TopicPolicy",
            {
                "Topics": [{"Ref": f"Topic{name}"}],
                "PolicyDocument": topic_policy(f"Topic{name}", f"Publisher{name}", one.readers, _PUBLISHERS),
            },
        )
    if zone.target:
        made["SchedulerRole"] = _scheduler_role(zone)
    if zone.locations:
        files: Places = {On.FILES: file_arns(zone.locations, "*"), On.BUCKETS: bucket_places(zone.locations)}
        made["LakeReader"] = _role(
            zone.lake_role, {"Service": "lakeformation.amazonaws.com"}, duty_policy(WATCHER, files)
        )
    if len(made) > _MOST_RESOURCES:
        raise UsageError(
            f"A stack holds {_MOST_RESOURCES} resources, and these contracts ask for {len(made)}.",
            "Name fewer domains: print a stack for each folder, with a schedule group of its own.",
        )
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What dq expects of this account.",
        "Parameters": _parameters(),
        "Conditions": {
            _PLANNER: {"Fn::Not": [{"Fn::Equals": [{"Ref": "PlannerPrincipal"}, ""]}]},
            _PUBLISHERS: {
                "Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "PublisherPrincipals"}]}, ""]}]
            },
        },
        "Resources": made,
        "Outputs": {name: _output(name, one) for name, one in made.items() if one["Type"] not in _UNNAMED},
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
    """The role that applies, the one that plans, and policies for the databases that do not fit into them."""
    glue = [glue_places(part) for part in _parts(sorted(set(zone.databases)))]
    places: dict[On, Sequence[Any]] = {
        On.TABLES: glue[0],
        On.SCHEDULES: [own("scheduler", f"schedule/{zone.group}/*")],
        On.SCHEDULE_GROUP: [{"Fn::GetAtt": ["ScheduleGroup", "Arn"]}],
        On.EVERYTHING: ["*"],
    }
    if zone.target:
        places[On.SCHEDULER_ROLE] = [{"Fn::GetAtt": ["SchedulerRole", "Arn"]}]
    if zone.locations and zone.governed:
        places[On.LAKE_ROLE] = [{"Fn::GetAtt": ["LakeReader", "Arn"]}]
    without = None if zone.governed else GOVERNED
    made = {
        "Registrar": _role(
            "dq-registrar", {"AWS": {"Ref": "RegistrarPrincipal"}}, duty_policy(REGISTRAR, places, without)
        ),
        "Planner": {
            **_role(
                "dq-planner", {"AWS": {"Ref": "PlannerPrincipal"}}, duty_policy(PLANNER, places, without)
            ),
            "Condition": _PLANNER,
        },
    }
    for at, more in enumerate(glue[1:], 2):
        for name, duty in (("Registrar", REGISTRAR), ("Planner", PLANNER)):
            document = duty_policy(duty, {On.TABLES: more})
            one = _resource("AWS::IAM::ManagedPolicy", {"PolicyDocument": document, "Roles": [{"Ref": name}]})
            made[f"{name}{at}"] = {**one, "Condition": _PLANNER} if name == "Planner" else one
    return made


def _parts(databases: list[str]) -> list[list[str]]:
    """The databases in parts, each of which fits into one policy."""
    found: list[list[str]] = [[]]
    for one in databases:
        size = sum(2 * (len(name) + _ARN_CHARACTERS) for name in (*found[-1], one))
        if size > _POLICY_CHARACTERS and found[-1]:
            found.append([])
        found[-1].append(one)
    if len(found) > _MOST_POLICIES + 1:
        raise UsageError(
            f"The names of {len(databases)} databases are more than the policies of a role hold.",
            "Print a stack for each folder, with a schedule group of its own.",
        )
    return found


def _publisher(one: Domain, topic: str) -> Node:
    places: Places = {
        On.TABLES: glue_places(one.databases),
        On.FILES: file_arns(one.folders, "*"),
        On.MARKERS: [
            arn
            for marker in sorted(set(one.markers))
            for pattern in (marker, f"*/{marker}")
            for arn in file_arns(one.folders, pattern)
        ],
        On.BUCKETS: bucket_places(one.folders),
        On.TOPICS: [{"Ref": topic}],
    }
    carries = {"StringEquals": {f"aws:PrincipalTag/{DOMAIN_TAG}": one.name}} if one.name else None
    name = f"dq-publisher-{one.name}".rstrip("-")
    # A longer name is made up by CloudFormation.
    role = _role(
        name if len(name) <= _ROLE_NAME else "",
        {"AWS": {"Ref": "PublisherPrincipals"}},
        duty_policy(PUBLISHER, places),
        carries,
    )
    return {**role, "Condition": _PUBLISHERS}


def _scheduler_role(zone: LandingZone) -> Node:
    service = service_of(zone.target)
    targets = [zone.target]
    if service == "lambda" and zone.target.count(":") == 6:
        # A version or an alias of the function is one more name.
        targets.append(f"{zone.target}:*")
    statements = [
        _allow(TARGETS[service][0], targets),
        _allow("sqs:SendMessage", [{"Fn::GetAtt": ["DeadLetters", "Arn"]}]),
    ]
    # Another account's scheduler is not to be helped.
    ours = {
        "StringEquals": {
            "aws:SourceAccount": {"Ref": "AWS::AccountId"},
            "aws:SourceArn": {"Fn::GetAtt": ["ScheduleGroup", "Arn"]},
        }
    }
    document = {"Version": VERSION, "Statement": statements}
    return _role(zone.scheduler_role, {"Service": "scheduler.amazonaws.com"}, document, ours)


def _role(name: str, principal: Node, document: Node, condition: Node | None = None) -> Node:
    trust: Node = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    if condition is not None:
        trust["Condition"] = condition
    named = {"RoleName": name} if name else {}
    return _resource(
        "AWS::IAM::Role",
        {
            **named,
            "AssumeRolePolicyDocument": {"Version": VERSION, "Statement": [trust]},
            "Policies": [{"PolicyName": "dq", "PolicyDocument": document}],
        },
    )


def _resource(kind: str, properties: Node, *, kept: bool = False) -> Node:
    made: Node = {"Type": kind, "Properties": properties}
    if kept:
        # Messages and subscriptions would be lost with it.
        made |= {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return made


def _allow(action: str, resources: Sequence[Any]) -> Node:
    return {"Effect": "Allow", "Action": [action], "Resource": list(resources)}


def _output(name: str, one: Node) -> Node:
    arn = {"Ref": name} if one["Type"] == "AWS::SNS::Topic" else {"Fn::GetAtt": [name, "Arn"]}
    return {"Value": arn} | ({"Condition": one["Condition"]} if "Condition" in one else {})
