"""Partition indexes in Glue, by which partitions are found without reading all of them.

What a contract asks for stands in the table's parameter `dq.partition-indexes`; what there is, Glue alone
knows, so tables with that parameter are asked for it. Source: AWS, "Creating partition indexes".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from dq.contracts.shared.errors import DqError
from dq.registry.glue.client import Connection
from dq.registry.glue.errors import THERE, unless
from dq.registry.table import PARTITION_INDEXES, TableSpec, index_keys, index_text

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
        _keys(one)
        for one in _listed(connection, raw)
        if one["IndexStatus"] in _THERE and (_keys(one) in asked or one["IndexName"].startswith(_PREFIX))
    ]
    return {**raw, "Parameters": {**raw["Parameters"], PARTITION_INDEXES: index_text(live)}}


def sync(connection: Connection, raw: dict[str, Any], after: TableSpec) -> None:
    """Makes the missing indexes of a table, and deletes ours that are not wanted any more.

    Raises DqError for one that Glue could not fill.
    """
    wanted = index_keys(after.parameter(PARTITION_INDEXES))
    if index_text(wanted) == raw["Parameters"].get(PARTITION_INDEXES, ""):
        return
    live = list(_listed(connection, raw))
    table = {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}
    for one in live:
        if one["IndexName"].startswith(_PREFIX) and _keys(one) not in wanted:
            # First, for there can be three.
            connection.client.delete_partition_index(IndexName=one["IndexName"], **table)
    there = {_keys(one): one for one in live}
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


def _listed(connection: Connection, raw: dict[str, Any]) -> Iterator[Index]:
    pages = connection.client.get_paginator("get_partition_indexes")
    asked = {"DatabaseName": raw["DatabaseName"], "TableName": raw["Name"], **connection.catalog}
    for page in pages.paginate(**asked):
        yield from page.get("PartitionIndexDescriptorList") or []


def _keys(index: Index) -> tuple[str, ...]:
    return tuple(key["Name"].lower() for key in index["Keys"])


def _index(keys: tuple[str, ...]) -> Index:
    name = _PREFIX + "_".join(keys)
    if len(name) > _LONGEST:
        name = _PREFIX + hashlib.sha256(name.encode()).hexdigest()
    return {"IndexName": name, "Keys": list(keys)}
