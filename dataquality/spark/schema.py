"""Conversion between Spark schemas and contract types, and notes of readers on columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import MASK, classified, struct_field
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType


# Conversion of contract types to Spark's schemas and DDL.

# Each type holds every value of the types before it, and Spark 4.0 and later can widen them when reading.
_WIDENING_ORDERS = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))

ChooseType = Callable[[DataType, DataType], DataType]
"""Chooses one of two types for a column."""


def struct_type(struct: DataType) -> StructType:
    """Return a struct type as Spark's StructType."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    parsed = _parse_datatype_string(f"struct<{', '.join(_fields(struct))}>")
    assert isinstance(parsed, StructType)
    return parsed


def spark_type(kind: DataType) -> SparkType:
    """Return a type as Spark's DataType."""
    return struct_type(DataType("struct", (), (kind,), ("value",))).fields[0].dataType


def ddl(struct: DataType) -> str:
    """Return the columns of a struct type as Spark DDL, every name quoted."""
    pairs = zip(struct.names, struct.parts, strict=True)
    return ", ".join(f"{sql.name(name)} {type_ddl(part)}" for name, part in pairs)


def type_ddl(kind: DataType) -> str:
    """Return a type as Spark DDL, every field name quoted."""
    if kind.name == "struct":
        return f"struct<{', '.join(_fields(kind))}>"
    if kind.parts:
        return f"{kind.name}<{', '.join(type_ddl(part) for part in kind.parts)}>"
    return str(kind)


def _fields(struct: DataType) -> list[str]:
    pairs = zip(struct.names, struct.parts, strict=True)
    return [f"{sql.name(name)}: {type_ddl(part)}" for name, part in pairs]


def prefer_first(first: DataType, _second: DataType) -> DataType:
    """Return the first of two types."""
    return first


def prefer_wider(spark_version: str) -> ChooseType:
    """Return a function that chooses the wider of two number types, if this Spark can widen; else the
    first.
    """
    orders = _WIDENING_ORDERS if int(spark_version.split(".")[0]) >= 4 else ()

    def wider(first: DataType, second: DataType) -> DataType:
        if first.name == second.name == "decimal" and first.numbers[1:] == second.numbers[1:]:
            return max(first, second, key=lambda kind: kind.numbers)
        order = next((chain for chain in orders if first.name in chain and second.name in chain), None)
        return first if order is None else max(first, second, key=lambda kind: order.index(kind.name))

    return wider


def merge_types(first: DataType, second: DataType, choose_type: ChooseType) -> DataType:
    """Merge two types: the first with the additional fields of the second; `choose_type` resolves
    differences.

    Field names are compared case-insensitively.
    """
    if first.name == second.name == "struct":
        merged = [
            merge_types(part, struct_field(second, name) or part, choose_type)
            for name, part in zip(first.names, first.parts, strict=True)
        ]
        second_fields = zip(second.names, second.parts, strict=True)
        added = {name: part for name, part in second_fields if struct_field(first, name) is None}
        return DataType("struct", (), (*merged, *added.values()), (*first.names, *added))
    if first.parts and first.name == second.name:
        parts = (merge_types(*pair, choose_type) for pair in zip(first.parts, second.parts, strict=True))
        return DataType(first.name, (), tuple(parts))
    return first if first == second else choose_type(first, second)


def contains_type(outer: DataType, inner: DataType) -> bool:
    """Return True if a type has every field of another one, with the same types."""
    if outer.name != inner.name or outer.numbers != inner.numbers:
        return False
    if inner.name == "struct":
        pairs = (
            (struct_field(outer, name), kind) for name, kind in zip(inner.names, inner.parts, strict=True)
        )
        return all(outer_type is not None and contains_type(outer_type, kind) for outer_type, kind in pairs)
    return all(contains_type(*pair) for pair in zip(outer.parts, inner.parts, strict=True))


# Notes of readers on columns, stored in the metadata of the frame's schema until the results are built.

EvaluateSchema = Callable[[DataType], Mapping[str, CheckResult]]
"""Returns the results of the clauses that only need a schema, by path."""

_KEY = "dq"
MOST_CHARACTERS = 200


def invalid_values_note(
    count: int, rows: int, kind: DataType, examples: list[tuple[object, str]]
) -> dict[str, Any]:
    """Return metadata of a column that stays a string column, with the first invalid values and their
    files.
    """
    return _metadata(
        {
            "observed": f"{count} of {rows} values",
            "said": f"{count} of {rows} values are not of type {kind}",
            "count": count,
            "first": [[str(place), text[:MOST_CHARACTERS]] for place, text in examples],
        }
    )


def partial_column_note(
    present_files: int, files: int, other_types: Sequence[tuple[object, int]] = ()
) -> dict[str, Any]:
    """Return metadata of a column that some files lack (it is NULL there) or have with another type.

    `other_types` are the types that the frame's type does not include, as Spark's JSON, with the numbers of
    files.
    """
    lacking = (
        {"note": f"in {present_files} of {files} files, NULL in the others"} if present_files < files else {}
    )
    own_files = present_files - sum(count for _, count in other_types)
    differing = (
        {"others": other_types, "own": f"in {own_files} of {files} files", "files": files}
        if other_types
        else {}
    )
    return _metadata({**lacking, **differing}) if lacking or differing else {}


def unreadable_note(reason: str) -> dict[str, Any]:
    """Return metadata of a column that Spark cannot read; every clause about it is an error with this
    reason.
    """
    return _metadata({"unreadable": reason})


def unreadable_columns(frame: DataFrame) -> tuple[str, ...]:
    """Return the names of the columns that Spark does not read."""
    fields = frame.schema.jsonValue()["fields"]
    notes = {str(field["name"]): field.get("metadata", {}).get(_KEY) for field in fields}
    return tuple(name for name, note in notes.items() if note and "unreadable" in json.loads(note))


def _metadata(note: dict[str, Any]) -> dict[str, Any]:
    # Spark's metadata does not support nested lists, hence JSON.
    return {_KEY: json.dumps(note)}


def with_notes(
    results: Mapping[str, CheckResult],
    frame: DataFrame,
    schema_object: SchemaObject,
    evaluate_schema: EvaluateSchema,
) -> dict[str, CheckResult]:
    """Apply the readers' notes to the results of their columns.

    If files differ in the type of a column, each type must pass its clauses.
    """
    notes = {
        str(field["name"]).lower(): json.loads(note)
        for field in frame.schema.jsonValue()["fields"]
        if (note := field.get("metadata", {}).get(_KEY)) is not None
    }
    # In a row shifted by a column, classified values appear in other columns.
    mask_values = bool(notes and classified(schema_object))
    noted_results = {path: _with_note(result, notes, mask_values) for path, result in results.items()}
    schema = from_spark_json(frame.schema.jsonValue())
    choose_wider = prefer_wider(frame.sparkSession.version)
    for name, note in notes.items():
        for other_type, count in note.get("others", ()):
            files_text = f"in {count} of {note['files']} files"
            noted_results |= _results_for_other_type(
                noted_results,
                schema,
                name,
                from_spark_json(other_type),
                files_text,
                evaluate_schema,
                choose_wider,
            )
    return noted_results


def _results_for_other_type(
    results: Mapping[str, CheckResult],
    schema: DataType,
    name: str,
    kind: DataType,
    files_text: str,
    evaluate_schema: EvaluateSchema,
    choose_wider: ChooseType,
) -> Iterator[tuple[str, CheckResult]]:
    """Yield the results that change because a column has this type in some files."""
    index = [column_name.lower() for column_name in schema.names].index(name)
    frame_type = schema.parts[index]
    parts = (*schema.parts[:index], merge_types(kind, frame_type, prefer_first), *schema.parts[index + 1 :])
    other_results = evaluate_schema(replace(schema, parts=parts))
    readable = contains_type(frame_type, merge_types(kind, frame_type, choose_wider))
    for path, result in results.items():
        if _top_level_column(result) != name:
            continue
        if path not in other_results:
            if not readable:
                yield (
                    path,
                    _unreadable_result(
                        result, f"the column is {kind} {files_text}, and {frame_type} in others"
                    ),
                )
            continue
        other_result = other_results[path]
        # A skipped result is already reported for the parent column.
        if (
            result.status is Status.PASS
            and other_result.status is not Status.SKIPPED
            and other_result != result
        ):
            yield path, _with_files_text(other_result, files_text)


def _with_files_text(result: CheckResult, files_text: str) -> CheckResult:
    return replace(
        result, observed=f"{result.observed}, {files_text}", message=f"{result.message}, {files_text}"
    )


def _top_level_column(result: CheckResult) -> str:
    """Return the top-level column of a result in lower case, or "" for the whole object."""
    return re.split(r"[.\[{]", result.property.lower(), maxsplit=1)[0]


def _unreadable_result(result: CheckResult, reason: str) -> CheckResult:
    message = f"{result.message.split(':', 1)[0]}: {reason}"
    unreadable = replace(result, status=Status.ERROR, observed="not readable", message=message)
    # Counts from statistics do not apply, and are not available from every source.
    return replace(unreadable, value=None, samples=(), rows=None, failed_rows=None, unit="")


def _with_note(result: CheckResult, notes: Mapping[str, Any], mask_values: bool) -> CheckResult:
    note = notes.get(_top_level_column(result))
    if note is not None and "unreadable" in note:
        return _unreadable_result(result, note["unreadable"])
    if note is None or result.check != "columns":
        return result
    if "note" in note:
        result = _with_files_text(result, note["note"])
    if "others" in note and result.status is Status.FAIL:
        return _with_files_text(result, note["own"])
    if "first" not in note or result.status not in (Status.PASS, Status.FAIL):
        return result
    samples = tuple(
        {"file": place, result.property: MASK if mask_values else text} for place, text in note["first"]
    )
    subject = result.message.split(":", 1)[0]
    return replace(
        result,
        # Any value fits a string column, but the file has values that do not match the promised type.
        status=Status.FAIL,
        observed=note["observed"],
        message=f"{subject}: {note['said']}",
        value=float(note["count"]),
        samples=samples,
    )
