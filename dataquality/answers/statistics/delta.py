"""Facts of Delta tables, from the log: what its entries say of the files of the snapshot that is read."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers.statistics.facts import (
    TYPED,
    UNKNOWN,
    Facts,
    File,
    Partitions,
    Scalar,
    Wanted,
    asked,
    certain,
    constant,
    relation,
    within,
)
from dq.dataquality.answers.statistics.writers import believed, counts_rows
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.term import Inside
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


# The entry's statistics as far as they are used; bounds by the physical name of a top-level column, as text.
_STATISTICS = (
    "numRecords BIGINT, tightBounds BOOLEAN, nullCount MAP<STRING, STRING>,"
    " minValues MAP<STRING, STRING>, maxValues MAP<STRING, STRING>"
)
# Some writers hand decimals through a double, which keeps so many digits.
_DIGITS = 15
# The log has milliseconds, cut and not rounded.
_CUT = dt.timedelta(milliseconds=1)
# Before it, zones had offsets with seconds, which the log's texts leave out.
_WHOLE_MINUTES = dt.datetime(1973, 1, 1, tzinfo=dt.UTC)

Steps = tuple[str | Inside, ...]


def files(frame: DataFrame, _: Dataset | None, partitions: Partitions, wanted: Wanted) -> list[File] | None:
    """The data files of the snapshot; None when one of them has no statistics.

    A file with a deletion vector is not whole. Texts have no bounds, because the log cuts them.
    """
    snapshot = _snapshot(frame)
    if snapshot is None:
        return None
    schema = schema_of(frame)
    names = dict(_physical(json.loads(snapshot.metadata().schemaString())))
    columns = {one: names[one.steps] for one in asked(schema, partitions, wanted) if one.steps in names}
    rows = _listed(frame, snapshot, {steps[0] for steps in columns.values()})
    uncounted = {row["path"] for row in rows if row["told"] is None or row["told"]["numRecords"] is None}
    types = {column: resolve(schema, column) for column in columns}
    engines = certain(lambda: _engines(frame, snapshot)) or {}
    found = [_file(row, columns, types, engines.get(row["path"], ("",))) for row in rows]
    chosen = within(found, partitions, schema)
    return None if any(file.path in uncounted for file in chosen) else chosen


def _snapshot(frame: DataFrame) -> Any | None:
    """Delta's own snapshot when the frame is all of it, else None."""
    leaf = relation(frame, "LogicalRelation")
    if leaf is None:
        return None
    # A relation that is not made of files has no location, which is no certain answer either.
    index = leaf.relation().location()
    if index.getClass().getName() != "org.apache.spark.sql.delta.files.TahoeLogFileIndex":
        return None
    return index.getSnapshot() if index.partitionFilters().isEmpty() else None


def _physical(
    struct: Mapping[str, Any], above: Steps = (), below: tuple[str, ...] = ()
) -> Iterator[tuple[Steps, tuple[str, ...]]]:
    """The way to every column and field of a struct as it is now, and as the files and the log know it.

    A column keeps its physical name when it is renamed, and another one that gets the old name has its own.
    """
    for field in struct["fields"]:
        told = field["metadata"]
        # Spark pads what is read of a char column.
        if "__CHAR_VARCHAR_TYPE_STRING" in told:
            continue
        steps = (*above, field["name"])
        stored = (*below, told.get("delta.columnMapping.physicalName", field["name"]))
        yield steps, stored
        if isinstance(field["type"], Mapping) and field["type"]["type"] == "struct":
            yield from _physical(field["type"], steps, stored)


def _listed(frame: DataFrame, snapshot: Any, names: Iterable[str]) -> list[Row]:
    """A row for every file, with what its entry says of the columns of these physical names."""
    from pyspark.sql import DataFrame

    entries = DataFrame(snapshot.allFiles().toDF(), frame.sparkSession)
    wanted = ", ".join(sql.text(name) for name in sorted(names)) or "''"
    kept = (
        f"'{name}', map_filter(told.{name}, (name, _) -> name IN ({wanted}))"
        for name in ("nullCount", "minValues", "maxValues")
    )
    return (
        entries.selectExpr(
            "path",
            "partitionValues",
            "deletionVector IS NOT NULL AS thinned",
            f"from_json(stats, '{_STATISTICS}') AS told",
        )
        .selectExpr(
            "path",
            f"map_filter(partitionValues, (name, _) -> name IN ({wanted})) AS placed",
            "thinned",
            "IF(told IS NULL, NULL, named_struct('numRecords', told.numRecords, 'tightBounds',"
            f" told.tightBounds, {', '.join(kept)})) AS told",
        )
        .collect()
    )


def _engines(frame: DataFrame, snapshot: Any) -> dict[str, tuple[str, ...]]:
    """Who added each file, by its path, as the commits say that the log still has.

    A file of an older commit is nobody's: checkpoints do not keep the names.
    """
    place = snapshot.deltaLog().logPath().toString()
    lines = frame.sparkSession.read.option("pathGlobFilter", "*.json").text(place)
    said = lines.selectExpr(
        "_metadata.file_name AS commit",
        "get_json_object(value, '$.commitInfo.engineInfo') AS engine",
        "get_json_object(value, '$.add.path') AS path",
    ).where("engine IS NOT NULL OR path IS NOT NULL")
    rows = said.collect()
    engines = {row["commit"]: row["engine"] for row in rows if row["engine"]}
    found: dict[str, set[str]] = {}
    for row in rows:
        if row["path"]:
            found.setdefault(row["path"], set()).add(engines.get(row["commit"], ""))
    return {path: tuple(sorted(names)) for path, names in found.items()}


def _file(
    row: Row,
    columns: Mapping[Column, tuple[str, ...]],
    types: Mapping[Column, DataType | str],
    writers: tuple[str, ...],
) -> File:
    told = row["told"]
    counted = told is not None and told["numRecords"] is not None
    # One row stands for those of a file without a count, so that its partition can be told all the same.
    rows = told["numRecords"] if counted else 1
    facts = {}
    for column, steps in columns.items():
        kind = types[column]
        if not isinstance(kind, DataType):
            continue
        if len(steps) == 1 and steps[0] in row["placed"]:
            facts[column] = _placed(row["placed"][steps[0]], kind, rows)
        elif counted:
            stated = _facts(told, steps, kind, exact=not row["thinned"])
            facts[column] = believed(stated, writers, kind.name, nested=len(steps) > 1)
    whole = counted and not row["thinned"] and counts_rows(writers)
    return File(row["path"], rows, whole, facts, writers)


def _placed(text: str | None, kind: DataType, rows: int) -> Facts:
    """The facts of a partition column, whose one value stands in the entry."""
    if text == "":
        # NULL by the protocol; delta-rs means the empty text, and so does Delta on Spark 4.
        return UNKNOWN
    if text is None:
        return constant(None, rows)
    try:
        return constant(TYPED[kind.name](text), rows)
    except (KeyError, ValueError, ArithmeticError):
        return UNKNOWN


def _facts(told: Row, steps: tuple[str, ...], kind: DataType, *, exact: bool) -> Facts:
    """`exact` says that no row was deleted since; with deleted ones, only a count of no NULLs still holds."""
    nulls = _number(_below(told["nullCount"], steps))
    tight = exact and told["tightBounds"] is True
    if not exact or told["tightBounds"] is False:
        nulls = 0 if nulls == 0 else None
    read = _READ.get(kind.name)
    least, greatest = _below(told["minValues"], steps), _below(told["maxValues"], steps)
    if read is None or least is None or greatest is None:
        return Facts(nulls)
    if kind.name == "decimal" and (not kind.numbers or kind.numbers[0] > _DIGITS):
        return Facts(nulls)
    try:
        lower, upper = read(least), read(greatest)
        bounds: tuple[Any, Any] = lower, upper + _CUT if isinstance(upper, dt.datetime) else upper
    except (ValueError, ArithmeticError):
        return Facts(nulls)
    if bounds[0] > bounds[1]:
        return Facts(nulls)
    return Facts(nulls, *bounds, attained=tight and not isinstance(lower, dt.datetime))


def _below(texts: Mapping[str, str] | None, steps: tuple[str, ...]) -> str | None:
    """What stands at a column or a field of a struct, as text."""
    found: Any = (texts or {}).get(steps[0])
    for step in steps[1:]:
        if isinstance(found, str):
            try:
                found = json.loads(found, parse_float=str)
            except ValueError:
                return None
        found = found.get(step) if isinstance(found, Mapping) else None
    return None if found is None or isinstance(found, Mapping) else str(found)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _instant(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None or (found < _WHOLE_MINUTES and not text.endswith("Z")):
        raise ValueError(text)
    return found.astimezone(dt.UTC)


def _local(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if "T" not in text or found.tzinfo is not None:
        raise ValueError(text)
    return found


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text):
        raise ValueError(text)
    return int(text)


_READ: dict[str, Callable[[str], Scalar]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _integer),
    "decimal": Decimal,
    "date": dt.date.fromisoformat,
    "timestamp": _instant,
    "timestamp_ntz": _local,
}
