"""Partitions in Glue, by pages and batches, and the indexes by which they are found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from dq.contracts.shared.outcome import DqError, Unreadable, UsageError
from dq.registry.catalog import Partition, Values, moved_partition
from dq.registry.glue.client import ABSENT, THERE, Connection, unless
from dq.registry.glue.conversion import Raw, at_s3, live_table
from dq.registry.table import PARTITION_INDEXES, TableSpec, fold_location, index_keys, index_text

# Partitions in Glue: listed by pages, added and changed by batches, each with the table's own storage.

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
        inputs = [_partition_input(raw, one) for one in batch]
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


def _partition_input(raw: Raw, one: Partition) -> dict[str, Any]:
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


# Partition indexes in Glue, by which partitions are found without reading all of them.
#
# What a contract asks for stands in the table's parameter `dq.partition-indexes`; what there is, Glue alone
# knows, so tables with that parameter are asked for it. Source: AWS, "Creating partition indexes".

Index = dict[str, Any]

_PREFIX = "dq_"
_LONGEST = 255
_THERE = ("ACTIVE", "CREATING")


def wanted_indexes(spec: TableSpec) -> list[Index]:
    """The indexes of a new table, as Glue takes them."""
    return [_index(keys) for keys in index_keys(spec.parameter(PARTITION_INDEXES))]


def with_indexes(connection: Connection, raw: dict[str, Any]) -> dict[str, Any]:
    """The table, its parameter saying which of our indexes are there."""
    told = (raw.get("Parameters") or {}).get(PARTITION_INDEXES)
    if told is None:
        return raw
    asked = set(index_keys(told))
    live = [
        _index_keys(one)
        for one in _listed_indexes(connection, raw)
        if one["IndexStatus"] in _THERE
        and (_index_keys(one) in asked or one["IndexName"].startswith(_PREFIX))
    ]
    return {**raw, "Parameters": {**raw["Parameters"], PARTITION_INDEXES: index_text(live)}}


def sync_indexes(connection: Connection, raw: dict[str, Any], after: TableSpec) -> None:
    """Makes the missing indexes of a table, and deletes ours that are not wanted any more.

    Raises DqError for one that Glue could not fill.
    """
    wanted = index_keys(after.parameter(PARTITION_INDEXES))
    if index_text(wanted) == raw["Parameters"].get(PARTITION_INDEXES, ""):
        return
    live = list(_listed_indexes(connection, raw))
    table = {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}
    for one in live:
        if one["IndexName"].startswith(_PREFIX) and _index_keys(one) not in wanted:
            # First, for there can be three.
            connection.client.delete_partition_index(IndexName=one["IndexName"], **table)
    there = {_index_keys(one): one for one in live}
    for keys in wanted:
        if keys not in there:
            # One that is there is of another process, or of our own first try.
            create = connection.client.create_partition_index
            unless(THERE, create, PartitionIndex=_index(keys), **table)
        elif there[keys]["IndexStatus"] == "FAILED":
            codes = sorted({one.get("Code", "") for one in there[keys].get("BackfillErrors") or []})
            raise DqError(
                f"{raw['DatabaseName']}.{raw['Name']}: Glue could not fill the index over {', '.join(keys)}: "
                f"{', '.join(codes) or 'it says no more'}.",
                "Mend the partitions, delete the index, and run again.",
            )


def _listed_indexes(connection: Connection, raw: dict[str, Any]) -> Iterator[Index]:
    pages = connection.client.get_paginator("get_partition_indexes")
    asked = {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}
    for page in pages.paginate(**asked):
        yield from page.get("PartitionIndexDescriptorList") or []


def _index_keys(index: Index) -> tuple[str, ...]:
    return tuple(key["Name"].lower() for key in index["Keys"])


def _index(keys: tuple[str, ...]) -> Index:
    name = _PREFIX + "_".join(keys)
    if len(name) > _LONGEST:
        name = _PREFIX + hashlib.sha256(name.encode()).hexdigest()
    return {"IndexName": name, "Keys": list(keys)}
