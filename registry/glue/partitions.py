"""Partitions in Glue: listed by pages, added and changed by batches, each with the table's own storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dq.contracts.shared.errors import DqError, Unreadable, UsageError
from dq.registry.catalog import Partition, Values, moved_partition
from dq.registry.glue.client import Connection
from dq.registry.glue.errors import ABSENT, THERE, unless
from dq.registry.glue.shapes import Raw, at_s3, live_table
from dq.registry.table import TableSpec, fold_location

_BATCH = 100


def place_of(connection: Connection, raw: Raw, values: Values) -> str | None:
    """Where a partition lies, folded; None when there is none. Raises UsageError for other keys."""
    found = _read(connection, raw, ordered(raw, values))
    return None if found is None else _location(found)


def _read(connection: Connection, raw: Raw, values: list[str]) -> Raw | None:
    asked = {"PartitionValues": values, **_table(connection, raw)}
    found = unless(ABSENT, connection.client.get_partition, **asked)
    return None if found is None else found["Partition"]


def ordered(raw: Raw, values: Values) -> list[str]:
    """The values in the order of the table's keys. Raises UsageError unless each key has one."""
    keys = _keys(raw)
    given = dict(values)
    if sorted(given) != sorted(keys) or len(given) != len(values):
        raise UsageError(
            f"{raw['DatabaseName']}.{raw['Name']} has the partition keys {', '.join(keys) or 'none'}, "
            f"not {', '.join(given) or 'none'}.",
            "Give each key one value.",
        )
    return [given[key] for key in keys]


def each(connection: Connection, raw: Raw) -> Iterator[Partition]:
    """Every partition, page by page."""
    keys = _keys(raw)
    for one in _listed(connection, raw, ExcludeColumnSchema=True):
        yield Partition(tuple(zip(keys, one["Values"], strict=True)), _location(one))


def add(connection: Connection, raw: Raw, wanted: Sequence[Partition]) -> int:
    """Adds partitions by a hundred, and gives how many were not there yet.

    Raises DqError for one that lies at another place, and for those that Glue refused.
    """
    new = 0
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        inputs = [_input(raw, one) for one in batch]
        answer = connection.client.batch_create_partition(
            PartitionInputList=inputs, **_table(connection, raw)
        )
        # Errors of single partitions come in an answer that says all is well.
        errors = {tuple(one["PartitionValues"]): one["ErrorDetail"] for one in answer.get("Errors") or []}
        for one in batch:
            error = errors.get(tuple(ordered(raw, one.values)))
            if error is None:
                new += 1
            elif error["ErrorCode"] != THERE:
                raise _refused(raw, f"{error['ErrorCode']}: {error.get('ErrorMessage', '')}")
            else:
                there = place_of(connection, raw, one.values)
                if there is not None and there != fold_location(one.location):
                    raise moved_partition(raw["DatabaseName"], raw["Name"], one.values, there, one.location)
    return new


def move(connection: Connection, raw: Raw, one: Partition) -> bool:
    """Gives a partition another place, and keeps all else that it says; False where there is none."""
    values = ordered(raw, one.values)
    found = _read(connection, raw, values)
    if found is None:
        return False
    kept = {key: found[key] for key in ("Values", "Parameters") if found.get(key)}
    storage = {**(found.get("StorageDescriptor") or {}), "Location": f"{fold_location(one.location)}/"}
    entry = {"PartitionValueList": values, "PartitionInput": {**kept, "StorageDescriptor": storage}}
    _update(connection, raw, [entry])
    return True


def fits(raw: Raw, after: TableSpec) -> bool:
    """Whether the partition keys stay what they are, names and types."""
    live = live_table(raw).spec
    return [(key.name, key.type) for key in live.partitions] == [
        (key.name, key.type) for key in after.partitions
    ]


def follow(connection: Connection, raw: Raw, table: Raw, *, reader: bool) -> None:
    """Gives every partition the types of this storage, which Athena compares; with `reader` its SerDe too."""
    types = {column["Name"]: column["Type"] for column in table["Columns"]}
    serde = {"SerdeInfo": table["SerdeInfo"]} if reader else {}
    entries: list[dict[str, Any]] = []
    for one in _listed(connection, raw):
        storage = dict(one.get("StorageDescriptor") or {})
        changed = [
            {**column, "Type": types.get(column["Name"], column["Type"])}
            for column in storage.get("Columns") or []
        ]
        wanted = storage | {"Columns": changed} | serde
        if wanted == storage:
            continue
        storage = at_s3(wanted)
        made = {key: one[key] for key in ("Values", "Parameters") if one.get(key)}
        entries.append(
            {"PartitionValueList": one["Values"], "PartitionInput": made | {"StorageDescriptor": storage}}
        )
    _update(connection, raw, entries)


def _update(connection: Connection, raw: Raw, entries: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(entries), _BATCH):
        answer = connection.client.batch_update_partition(
            Entries=entries[start : start + _BATCH], **_table(connection, raw)
        )
        for error in answer.get("Errors") or []:
            detail = error.get("ErrorDetail", {})
            raise _refused(raw, f"{detail.get('ErrorCode')}: {detail.get('ErrorMessage', '')}")


def _listed(connection: Connection, raw: Raw, **options: Any) -> Iterator[dict[str, Any]]:
    pages = connection.client.get_paginator("get_partitions")
    for page in pages.paginate(**_table(connection, raw), **options):
        yield from page["Partitions"]


def _input(raw: Raw, one: Partition) -> dict[str, Any]:
    storage = {**(raw.get("StorageDescriptor") or {}), "Location": f"{fold_location(one.location)}/"}
    return {"Values": ordered(raw, one.values), "StorageDescriptor": storage}


def _table(connection: Connection, raw: Raw) -> dict[str, str]:
    return {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}


def _keys(raw: Raw) -> list[str]:
    return [key["Name"].lower() for key in raw.get("PartitionKeys") or []]


def _location(raw: Raw) -> str:
    return fold_location((raw.get("StorageDescriptor") or {}).get("Location") or "")


def _refused(raw: Raw, why: str) -> DqError:
    return Unreadable(f"Glue refused partitions of {raw['DatabaseName']}.{raw['Name']}: {why}")
