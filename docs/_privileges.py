"""The page of what each duty may do in AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dq.registry.landing_zone import DUTIES, Bounded, Duty, On, duty_policy

_AWS, _HERE = "arn:aws", "eu-central-1:123456789012"
_GLUE = f"{_AWS}:glue:{_HERE}"
_CONSUMER = f"{_AWS}:glue:eu-central-1:210987654321"
# One domain, `sales`, below one prefix of one bucket.
_PLACES: dict[On, list[Any]] = {
    On.TABLES: [f"{_GLUE}:catalog", f"{_GLUE}:database/sales", f"{_GLUE}:table/sales/*"],
    On.LINKS: [f"{_CONSUMER}:catalog", f"{_CONSUMER}:database/shared", f"{_CONSUMER}:table/shared/*"],
    On.FILES: [f"{_AWS}:s3:::lake/sales/*"],
    On.MARKERS: [f"{_AWS}:s3:::lake/sales/*/_SUCCESS"],
    On.QUARANTINE: [f"{_AWS}:s3:::lake/quarantine/sales/*"],
    On.BUCKETS: [
        Bounded(f"{_AWS}:s3:::lake", {"StringLike": {"s3:prefix": ["sales", "sales/*"]}}),
    ],
    On.TOPICS: [f"{_AWS}:sns:{_HERE}:dq-sales"],
    On.SCHEDULES: [f"{_AWS}:scheduler:{_HERE}:schedule/dq/*"],
    On.SCHEDULE_GROUP: [f"{_AWS}:scheduler:{_HERE}:schedule-group/dq"],
    On.SCHEDULER_ROLE: [f"{_AWS}:iam::123456789012:role/dq-scheduler"],
    On.LAKE_ROLE: [f"{_AWS}:iam::123456789012:role/dq-lake-reader"],
    On.EVERYTHING: ["*"],
}
_INTRODUCTION = (
    "# What each duty may do in AWS",
    "No role needs more than stands here for what it does with dq. Tests hold this page against the calls "
    "that dq makes. Replace region, accounts, databases, prefixes and names by yours; "
    "[the stack](../how-to/register.md#what-has-to-be-there-first) of `dq register --emit-landing-zone` has "
    "yours already.",
    "**The gate needs nothing.** `dq validate`, `dq diff`, `dq subscriptions`, `dq export` and "
    "`--emit-landing-zone` ask nothing of AWS: a job that judges pull requests gets no credentials. Nor do "
    "`dq status`, `dq incidents` and `dq portal`, which read the state store.",
    "With `--role-arn` a caller also needs `sts:AssumeRole` on that role; `sts:GetCallerIdentity` needs no "
    "right. Where files are encrypted with a key of KMS, who reads needs `kms:Decrypt` on it, and who writes "
    "`kms:GenerateDataKey`.",
    "| duty | does | by |\n|---|---|---|",
)
# What a table cannot say.
_NOTES = {
    "registrar": "Where Lake Formation governs the lake, it also is a data lake administrator, or has its "
    "permissions with the grant option, and the data locations.",
    "publisher": "One for each domain: who publishes `sales` has no right on the tables, files and topic of "
    "others. It writes no data: its own job does, with rights of its own. With `--audit` on a staged folder "
    "beside the tables' own, add that to the files and the prefixes. A branch of Iceberg is moved by Spark's "
    "own catalog, which needs what Iceberg needs of it.",
    "checker": "Spark reads the data, and where a server is of Glue or Hive, its metastore client asks the "
    "catalog; both with the rights of the cluster's role. What dq reads itself are footers of files and logs "
    "of table formats.",
    "watcher": "It writes nothing in the lake and asks no catalog.",
    "consumer": "In the consumer's own account, as an administrator of its data lake. On what was shared it "
    "gets its rights by the owner's grant.",
}


def privileges() -> Iterator[str]:
    """Every duty: what it does, each action with what it is for, and the policy."""
    yield "\n\n".join(_INTRODUCTION)
    for duty in DUTIES:
        yield f"| [{duty.name}](#{duty.name}) | {duty.does} | {duty.commands} |"
    yield ""
    for duty in DUTIES:
        yield from _duty(duty)


def _duty(duty: Duty) -> Iterator[str]:
    yield f"## {duty.name.capitalize()}\n"
    yield f"{duty.does.capitalize()}: {duty.commands}.\n"
    if duty.name in _NOTES:
        yield f"{_NOTES[duty.name]}\n"
    yield "| action | on | needed for |\n|---|---|---|"
    for one in duty.privileges:
        for action in one.actions:
            yield f"| `{action}` | {one.on} | {one.when or 'all of it'} |"
    yield f"\n```json not-run\n{json.dumps(duty_policy(duty, _PLACES), indent=2)}\n```\n"
