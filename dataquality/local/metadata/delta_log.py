"""A Delta table by its log.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Per-file Statistics", "Deletion Vectors"
and "Valid Feature Names in Table Features".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dq.dataquality.local.metadata import logged
from dq.dataquality.local.metadata.logged import LoggedTable, unknown
from dq.dataquality.spark.schema import data_type
from dq.lake import delta
from dq.lake.storage import Files

FOLDER = "_delta_log"
# What a reader must understand, and which of it changes nothing here or is understood.
_FEATURES_FROM = 3
_UNDERSTOOD = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview"}
    | {"v2Checkpoint", "vacuumProtocolCheck"}
)
# Somebody else has the newest commits; of some of these only writers must know.
_ELSEWHERE = ("coordinatedCommits", "catalog")
_COLUMNS = (
    *("protocol.minReaderVersion", "protocol.readerFeatures", "protocol.writerFeatures"),
    *("metaData.schemaString", "metaData.partitionColumns", "add.path", "add.partitionValues", "add.size"),
    *("add.modificationTime", "add.stats", "add.deletionVector.cardinality"),
)


def read(files: Files, place: str) -> LoggedTable:
    """The newest version. Raises Unreadable where that is not certain."""
    state = delta.state(files, place, _COLUMNS)
    if state is None:
        raise unknown(place, "has a log of Delta that is cut, or whose checkpoint is not read here")
    version = state.protocol["minReaderVersion"]
    asked = state.protocol.get("readerFeatures") or () if version >= _FEATURES_FROM else ()
    written = state.protocol.get("writerFeatures") or ()
    elsewhere = {one for one in written if one.startswith(_ELSEWHERE)}
    strange = sorted({*asked} - _UNDERSTOOD | elsewhere)
    if version > _FEATURES_FROM or strange:
        what = ", ".join(strange) or f"version {version}"
        raise unknown(place, f"needs what is not known here of Delta's protocol: {what}")
    schema = json.loads(state.metadata["schemaString"])
    keys = frozenset(state.metadata.get("partitionColumns") or ())
    plain = dict(_plain(schema))
    newest = max((one["modificationTime"] for one in state.files.values()), default=None)
    at = None if newest is None else datetime.fromtimestamp(newest / 1000, UTC)
    table = LoggedTable(data_type(schema), dict.fromkeys(plain, 0), at)
    for path, one in state.files.items():
        _add(table, one, state.engines[path], plain, keys)
    return table


def _plain(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """The type of every column without parts, and the name by which the log knows it."""
    for field in schema["fields"]:
        if isinstance(field["type"], str):
            stored = field["metadata"].get("delta.columnMapping.physicalName", field["name"])
            yield field["name"], (field["type"].partition("(")[0], stored)


def _add(
    table: LoggedTable,
    entry: delta.Entry,
    engine: str,
    columns: Mapping[str, tuple[str, str]],
    keys: frozenset[str],
) -> None:
    stats = json.loads(entry.get("stats") or "{}")
    rows, told = stats.get("numRecords"), stats.get("nullCount") or {}
    vector = entry.get("deletionVector")
    deleted = logged.count(vector["cardinality"]) if vector else 0
    placed = dict(entry["partitionValues"])
    tight = stats.get("tightBounds") is not False

    def nulls(name: str, kind: str, stored: str) -> tuple[str, object, bool]:
        if name not in keys:
            return kind, told.get(stored), tight
        value = placed.get(stored, "")
        # Empty, it is NULL by the protocol; some writers mean the empty text.
        return kind, rows if value is None else 0 if value else None, True

    by_column = {name: nulls(name, *both) for name, both in columns.items()}
    table.add(entry["size"], rows, deleted, by_column, (engine,))
