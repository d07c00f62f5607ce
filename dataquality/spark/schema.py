"""Schemas between Spark and the types of contracts, and what a reader saw of a column beside its type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dq.contracts.model import SchemaObject
from dq.contracts.outcome import CheckResult, Status
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import MASK, classified, field
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType


# Schemas between Spark and the types that contracts speak of: from Spark's JSON, to Spark's DDL.

# The later one holds every value of the earlier one, and Spark reads the one as the other since 4.0.
_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))

Leaf = Callable[[DataType, DataType], DataType]
"""Which of two types a column is to have."""


def struct_type(struct: DataType) -> StructType:
    """The columns of a struct type as Spark's own, for a reader."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    made = _parse_datatype_string(f"struct<{', '.join(_fields(struct))}>")
    assert isinstance(made, StructType)
    return made


def spark_type(kind: DataType) -> SparkType:
    """A type as Spark's own."""
    return struct_type(DataType("struct", (), (kind,), ("value",))).fields[0].dataType


def ddl(struct: DataType) -> str:
    """The columns of a struct type as a schema for Spark, every name quoted."""
    pairs = zip(struct.names, struct.parts, strict=True)
    return ", ".join(f"{sql.name(name)} {type_ddl(part)}" for name, part in pairs)


def type_ddl(kind: DataType) -> str:
    """A type as Spark reads it, every name of a field quoted."""
    if kind.name == "struct":
        return f"struct<{', '.join(_fields(kind))}>"
    if kind.parts:
        return f"{kind.name}<{', '.join(type_ddl(part) for part in kind.parts)}>"
    return str(kind)


def _fields(struct: DataType) -> list[str]:
    pairs = zip(struct.names, struct.parts, strict=True)
    return [f"{sql.name(name)}: {type_ddl(part)}" for name, part in pairs]


def own(first: DataType, _second: DataType) -> DataType:
    """Of two types that differ, the first."""
    return first


def widening(spark: str) -> Leaf:
    """Of two numbers the one that both fit into, if this version of Spark reads both so; else the first."""
    orders = _WIDER if int(spark.split(".")[0]) >= 4 else ()

    def wider(first: DataType, second: DataType) -> DataType:
        if first.name == second.name == "decimal" and first.numbers[1:] == second.numbers[1:]:
            return max(first, second, key=lambda kind: kind.numbers)
        order = next((each for each in orders if first.name in each and second.name in each), None)
        return first if order is None else max(first, second, key=lambda kind: order.index(kind.name))

    return wider


def joined(first: DataType, second: DataType, leaf: Leaf) -> DataType:
    """The first type with the fields that only the second has; `leaf` chooses where both have another type.

    Names of fields are compared without case.
    """
    if first.name == second.name == "struct":
        kept = [
            joined(part, field(second, name) or part, leaf)
            for name, part in zip(first.names, first.parts, strict=True)
        ]
        others = zip(second.names, second.parts, strict=True)
        more = {name: part for name, part in others if field(first, name) is None}
        return DataType("struct", (), (*kept, *more.values()), (*first.names, *more))
    if first.parts and first.name == second.name:
        parts = (joined(*pair, leaf) for pair in zip(first.parts, second.parts, strict=True))
        return DataType(first.name, (), tuple(parts))
    return first if first == second else leaf(first, second)


def holds(whole: DataType, part: DataType) -> bool:
    """Whether a type has every field of another one, each of the same type."""
    if whole.name != part.name or whole.numbers != part.numbers:
        return False
    if part.name == "struct":
        pairs = ((field(whole, name), kind) for name, kind in zip(part.names, part.parts, strict=True))
        return all(held is not None and holds(held, kind) for held, kind in pairs)
    return all(holds(*pair) for pair in zip(whole.parts, part.parts, strict=True))


# What a reader saw of a column beside its type, kept in the frame's schema until the result is told.

BySchema = Callable[[DataType], Mapping[str, CheckResult]]
"""The results of the clauses that ask only for columns and types, by path, for a schema."""

_KEY = "dq"
MOST_CHARACTERS = 200


def unfit(count: int, rows: int, kind: DataType, first: list[tuple[object, str]]) -> dict[str, Any]:
    """Metadata of a column that stays text: some values are none of its type, the first by their files."""
    return _metadata(
        {
            "observed": f"{count} of {rows} values",
            "said": f"{count} of {rows} values are no {kind}",
            "count": count,
            "first": [[str(place), text[:MOST_CHARACTERS]] for place, text in first],
        }
    )


def of_files(number: int, files: int, others: Sequence[tuple[object, int]] = ()) -> dict[str, Any]:
    """Metadata of a column that only so many files have, being NULL in the rest.

    `others` are types that it has in some of them and that the frame's does not hold, as Spark's JSON, and in
    how many.
    """
    lacking = {"note": f"in {number} of {files} files, NULL in the others"} if number < files else {}
    own = number - sum(count for _, count in others)
    differing = {"others": others, "own": f"in {own} of {files} files", "files": files} if others else {}
    return _metadata({**lacking, **differing}) if lacking or differing else {}


def unreadable(reason: str) -> dict[str, Any]:
    """Metadata of a column that Spark does not read: every clause about it is an error, for this reason."""
    return _metadata({"unreadable": reason})


def unreadable_columns(frame: DataFrame) -> tuple[str, ...]:
    """Return the names of the columns that Spark does not read."""
    fields = frame.schema.jsonValue()["fields"]
    notes = {str(field["name"]): field.get("metadata", {}).get(_KEY) for field in fields}
    return tuple(name for name, note in notes.items() if note and "unreadable" in json.loads(note))


def _metadata(note: dict[str, Any]) -> dict[str, Any]:
    # Spark knows no lists of lists there.
    return {_KEY: json.dumps(note)}


def with_notes(
    results: Mapping[str, CheckResult], frame: DataFrame, one: SchemaObject, by_schema: BySchema
) -> dict[str, CheckResult]:
    """The results of the check `columns` with what the reader saw of their columns.

    Where files differ in the type of a column, each type must keep what is promised of it.
    """
    notes = {
        str(field["name"]).lower(): json.loads(note)
        for field in frame.schema.jsonValue()["fields"]
        if (note := field.get("metadata", {}).get(_KEY)) is not None
    }
    # A row that is shifted by a column puts what is classified where it is not looked for.
    masked = bool(notes and classified(one))
    seen = {path: _noted(result, notes, masked) for path, result in results.items()}
    schema = from_spark_json(frame.schema.jsonValue())
    wider = widening(frame.sparkSession.version)
    for name, note in notes.items():
        for other, count in note.get("others", ()):
            where = f"in {count} of {note['files']} files"
            seen |= _of_another_type(seen, schema, name, from_spark_json(other), where, by_schema, wider)
    return seen


def _of_another_type(
    results: Mapping[str, CheckResult],
    schema: DataType,
    name: str,
    kind: DataType,
    where: str,
    by_schema: BySchema,
    wider: Leaf,
) -> Iterator[tuple[str, CheckResult]]:
    """The results that are others, because a column has this type in some files."""
    at = [each.lower() for each in schema.names].index(name)
    whole = schema.parts[at]
    parts = (*schema.parts[:at], joined(kind, whole, own), *schema.parts[at + 1 :])
    judged = by_schema(replace(schema, parts=parts))
    readable = holds(whole, joined(kind, whole, wider))
    for path, result in results.items():
        if _top(result) != name:
            continue
        if path not in judged:
            if not readable:
                yield path, _unreadable(result, f"the column is {kind} {where}, and {whole} in others")
            continue
        other = judged[path]
        # What is skipped has been told with its holder.
        if result.status is Status.PASS and other.status is not Status.SKIPPED and other != result:
            yield path, _where(other, where)


def _where(result: CheckResult, where: str) -> CheckResult:
    return replace(result, observed=f"{result.observed}, {where}", message=f"{result.message}, {where}")


def _top(result: CheckResult) -> str:
    """The column that a result is about, or that holds it, in lower case; empty for the whole object."""
    return re.split(r"[.\[{]", result.property.lower(), maxsplit=1)[0]


def _unreadable(result: CheckResult, reason: str) -> CheckResult:
    message = f"{result.message.split(':', 1)[0]}: {reason}"
    shown = replace(result, status=Status.ERROR, observed="not readable", message=message)
    # What statistics had counted is of no use, and was not counted on every way.
    return replace(shown, value=None, samples=(), rows=None, failed_rows=None, unit="")


def _noted(result: CheckResult, notes: Mapping[str, Any], masked: bool) -> CheckResult:
    note = notes.get(_top(result))
    if note is not None and "unreadable" in note:
        return _unreadable(result, note["unreadable"])
    if note is None or result.check != "columns":
        return result
    if "note" in note:
        result = _where(result, note["note"])
    if "others" in note and result.status is Status.FAIL:
        return _where(result, note["own"])
    if "first" not in note or result.status not in (Status.PASS, Status.FAIL):
        return result
    shown = tuple({"file": place, result.property: MASK if masked else text} for place, text in note["first"])
    subject = result.message.split(":", 1)[0]
    return replace(
        result,
        # A text may hold any value, and still the file has other values than were promised.
        status=Status.FAIL,
        observed=note["observed"],
        message=f"{subject}: {note['said']}",
        value=float(note["count"]),
        samples=shown,
    )
