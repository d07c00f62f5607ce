"""The page of what each duty may do in AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dq.registry.landing_zone import DUTIES, ConditionalResource, Duty, ResourceScope, duty_policy

_AWS, _ACCOUNT = "arn:aws", "eu-central-1:123456789012"
_GLUE = f"{_AWS}:glue:{_ACCOUNT}"
_CONSUMER = f"{_AWS}:glue:eu-central-1:210987654321"
# One domain, `sales`, below one prefix of one bucket.
_PLACES: dict[ResourceScope, list[Any]] = {
    ResourceScope.TABLES: [f"{_GLUE}:catalog", f"{_GLUE}:database/sales", f"{_GLUE}:table/sales/*"],
    ResourceScope.LINKS: [
        f"{_CONSUMER}:catalog",
        f"{_CONSUMER}:database/shared",
        f"{_CONSUMER}:table/shared/*",
    ],
    ResourceScope.SHARED: [f"{_GLUE}:catalog", f"{_GLUE}:database/sales", f"{_GLUE}:table/sales/*"],
    ResourceScope.FILES: [f"{_AWS}:s3:::lake/sales/*"],
    ResourceScope.MARKERS: [f"{_AWS}:s3:::lake/sales/*/_SUCCESS"],
    ResourceScope.QUARANTINE: [f"{_AWS}:s3:::lake/quarantine/sales/*"],
    ResourceScope.BUCKETS: [
        ConditionalResource(f"{_AWS}:s3:::lake", {"StringLike": {"s3:prefix": ["sales", "sales/*"]}}),
    ],
    ResourceScope.TOPICS: [f"{_AWS}:sns:{_ACCOUNT}:dq-sales"],
    ResourceScope.SCHEDULES: [f"{_AWS}:scheduler:{_ACCOUNT}:schedule/dq/*"],
    ResourceScope.SCHEDULE_GROUP: [f"{_AWS}:scheduler:{_ACCOUNT}:schedule-group/dq"],
    ResourceScope.SCHEDULER_ROLE: [f"{_AWS}:iam::123456789012:role/dq-scheduler"],
    ResourceScope.LAKE_ROLE: [f"{_AWS}:iam::123456789012:role/dq-lake-reader"],
    ResourceScope.EVENT_QUEUE: [f"{_AWS}:sqs:{_ACCOUNT}:dq-object-events"],
    ResourceScope.DEAD_LETTERS: [f"{_AWS}:sqs:{_ACCOUNT}:dq-dead-letters"],
    ResourceScope.LOGS: [f"{_AWS}:logs:{_ACCOUNT}:log-group:/aws/lambda/dq-watcher:*"],
    ResourceScope.EVERYTHING: ["*"],
}
_INTRODUCTION = (
    "# AWS permissions by role",
    "These are the minimal permissions for each task; tests compare this page with the calls that dq makes. "
    "Replace region, accounts, databases, prefixes and names with yours; "
    "[the stack](../how-to/register.md#set-up-roles-topics-and-schedules) of "
    "`dq register --emit-landing-zone` already has yours.",
    "**Validation needs no permissions.** `dq validate`, `dq diff`, `dq subscriptions`, `dq export` and "
    "`--emit-landing-zone` do not call AWS: a job that validates pull requests needs no credentials. Neither "
    "do `dq status`, `dq incidents` and `dq portal`, which read the state store.",
    "With `--role-arn` the caller also needs `sts:AssumeRole` on that role; `sts:GetCallerIdentity` needs no "
    "permission. If files are encrypted with a KMS key, readers need `kms:Decrypt` on it, and writers "
    "`kms:GenerateDataKey`.",
    "| role | task | commands |\n|---|---|---|",
)
# What a table cannot say.
_NOTES = {
    "registrar": "If Lake Formation governs the lake, this role must also be a data lake administrator, or "
    "have the corresponding permissions with the grant option, and the data locations.",
    "publisher": "One for each domain: the publisher of `sales` has no access to the tables, files and topic "
    "of other domains. It writes no data: your own job does, with its own permissions. For `--audit` with a "
    "staging folder outside of the tables' folders, add that folder to the files and the prefixes. An "
    "Iceberg branch is moved by Spark's own catalog, which needs the permissions that Iceberg requires.",
    "checker": "Spark reads the data, and for a server of type Glue or Hive its metastore client calls the "
    "catalog; both with the permissions of the cluster's role. dq itself only reads file footers and the "
    "logs of table formats.",
    "watcher": "It writes nothing to the lake. It calls a catalog only with the setting `watch_catalog`, to "
    "write [how far each table is complete](../how-to/delivery-slo.md#write-it-into-the-catalog); leave out "
    "what that needs without it. If Lake Formation governs the lake, it also needs ALTER on the tables.",
    "inspector": "Every action only reads, and it reads no data.",
    "consumer": "Used in the consumer's own account, as a data lake administrator. Permissions on the shared "
    "tables come from the owner's grant.",
}


def privileges() -> Iterator[str]:
    """Every duty: what it does, each action with what it is for, and the policy."""
    yield "\n\n".join(_INTRODUCTION)
    for duty in DUTIES:
        yield f"| [{duty.name}](#{duty.name}) | {duty.description} | {duty.commands} |"
    yield ""
    for duty in DUTIES:
        yield from _duty(duty)


def _duty(duty: Duty) -> Iterator[str]:
    yield f"## {duty.name.capitalize()}\n"
    yield f"{duty.description.capitalize()}: {duty.commands}.\n"
    if duty.name in _NOTES:
        yield f"{_NOTES[duty.name]}\n"
    yield "| action | on | needed for |\n|---|---|---|"
    for privilege in duty.privileges:
        for action in privilege.actions:
            yield f"| `{action}` | {privilege.scope} | {privilege.condition or 'all of it'} |"
    yield f"\n```json not-run\n{json.dumps(duty_policy(duty, _PLACES), indent=2)}\n```\n"
