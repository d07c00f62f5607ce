"""What each duty of dq may do in AWS: one table, from which the page and the stack are written.

Tests hold it against the calls that are made. A duty that is not here, as the gate's, asks nothing of AWS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
        if plain:
            yield {**allow, "Resource": plain, **({"Condition": bounds} if bounds else {})}
        for one in known:
            if isinstance(one, Bounded):
                yield {
                    **allow,
                    "Resource": [one.resource],
                    **({"Condition": one.condition} if one.condition else {}),
                }
