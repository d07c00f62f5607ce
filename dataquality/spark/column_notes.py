"""What a reader saw of a column beside its type, kept in the frame's schema until the result is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dq.contracts.model import SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.types import DataType
from dq.dataquality.model.classification import MASK, classified
from dq.dataquality.spark.schema import Leaf, data_type, holds, joined, own, widening

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    schema = data_type(frame.schema.jsonValue())
    wider = widening(frame.sparkSession.version)
    for name, note in notes.items():
        for other, count in note.get("others", ()):
            where = f"in {count} of {note['files']} files"
            seen |= _of_another_type(seen, schema, name, data_type(other), where, by_schema, wider)
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
