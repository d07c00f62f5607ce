"""Looks at every request before it leaves: AWS's model first, then what AWS keeps to itself.

Hooked on the session, so that no client of it can skip it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dq.contracts.shared.errors import UsageError
from dq.registry.glue import table_rules as rules
from dq.registry.glue.model_limits import Raw, Rule, refusals

_ACCOUNT = re.compile(r"\d{12}(:.+)?")
_SHOWN = 10


def refuse(operation: Any, params: Raw) -> None:
    """Raises UsageError, with all that is wrong, for a request that AWS would refuse or misunderstand.

    `operation` is botocore's model of the operation.
    """
    wrong = [*_account(params), *refusals(operation, params, RULES)]
    if not wrong:
        return
    more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
    raise UsageError(
        f"{_subject(params)}: Glue would not take this {operation.name}: {'; '.join(wrong[:_SHOWN] + more)}.",
        "Nothing was sent; mend the contract.",
    )


def _subject(params: Raw) -> str:
    table = params.get("TableInput") or {}
    database = params.get("DatabaseInput") or {}
    parts = (params.get("DatabaseName"), table.get("Name"), params.get("TableName"), params.get("Name"))
    words = list(dict.fromkeys([*(part for part in parts if part), *filter(None, [database.get("Name")])]))
    return ".".join(str(word) for word in words) or "Glue"


def _account(params: Raw) -> Iterator[str]:
    catalog = params.get("CatalogId")
    if isinstance(catalog, str) and not _ACCOUNT.fullmatch(catalog):
        yield f"CatalogId: {catalog!r} is no account of 12 digits"


def _create_database(params: Raw) -> Iterator[str]:
    made = params.get("DatabaseInput") or {}
    name = made.get("Name", "")
    if not rules.DATABASE.fullmatch(name):
        yield f"DatabaseInput.Name: {name!r} is not of lower case letters, digits and underscores"
    place = made.get("LocationUri")
    if place and not place.startswith("s3://"):
        yield f"DatabaseInput.LocationUri: {place!r} is not in S3"


def _create_table(params: Raw) -> Iterator[str]:
    made = params.get("TableInput") or {}
    yield from rules.created(made)
    yield from rules.indexes(params.get("PartitionIndexes") or [], made.get("PartitionKeys") or [])


def _update_table(params: Raw) -> Iterator[str]:
    if not params.get("VersionId"):
        yield "VersionId: missing; without it the change of another is lost"
    if "SkipArchive" not in params:
        yield "SkipArchive: missing; every write would keep an old version"
    yield from rules.written(params.get("TableInput") or {})


def _partitions(items: str, of: Callable[[Raw], Raw]) -> Callable[[Raw], Iterator[str]]:
    def check(params: Raw) -> Iterator[str]:
        partitions = [of(one) for one in params.get(items) or []]
        values = [tuple(one.get("Values") or ()) for one in partitions]
        if not partitions:
            yield f"{items}: empty"
        if len({len(one) for one in values}) > 1:
            yield f"{items}: some have more values than others"
        if len(set(values)) != len(values):
            yield f"{items}: a partition twice"
        if any(not one or not all(one) for one in values):
            yield f"{items}: a partition without a value"
        for number, one in enumerate(partitions):
            if one.get("StorageDescriptor"):
                path = f"{items}[{number}].StorageDescriptor"
                if not one["StorageDescriptor"].get("Location"):
                    yield f"{path}.Location: missing"
                yield from rules.storage_faults(one["StorageDescriptor"], path)
            else:
                yield f"{items}[{number}]: no StorageDescriptor, and Glue does not take the table's"

    return check


def _update_entries(params: Raw) -> Iterator[str]:
    for number, entry in enumerate(params.get("Entries") or []):
        if list(entry.get("PartitionValueList") or []) != list(
            (entry.get("PartitionInput") or {}).get("Values") or []
        ):
            yield f"Entries[{number}]: renames a partition"
    yield from _UPDATE(params)


_UPDATE = _partitions("Entries", lambda one: one.get("PartitionInput") or {})

# Operation -> what AWS keeps to itself about its request.
RULES: dict[str, Rule] = {
    "CreateDatabase": _create_database,
    "CreateTable": _create_table,
    "UpdateTable": _update_table,
    "BatchCreatePartition": _partitions("PartitionInputList", lambda one: one),
    "BatchUpdatePartition": _update_entries,
    "CreatePartitionIndex": lambda params: rules.indexes([params.get("PartitionIndex") or {}], None),
}
