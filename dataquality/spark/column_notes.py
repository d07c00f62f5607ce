"""What a reader saw of a column beside its type, kept in the frame's schema until the result is told."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dq.contracts.model import SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.types import DataType
from dq.dataquality.model.classification import MASK, classified

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def partly(files: int, all_files: int) -> dict[str, Any]:
    """Metadata of a column that some files lack, where it is NULL."""
    return _metadata({"note": f"in {files} of {all_files} files, NULL in the others"})


def unreadable(reason: str) -> dict[str, Any]:
    """Metadata of a column that Spark does not read: every clause about it is an error, for this reason."""
    return _metadata({"unreadable": reason})


def _metadata(note: dict[str, Any]) -> dict[str, Any]:
    # Spark knows no lists of lists there.
    return {_KEY: json.dumps(note)}


def with_notes(
    results: Mapping[str, CheckResult], frame: DataFrame, one: SchemaObject
) -> dict[str, CheckResult]:
    """The results of the check `columns` with what the reader saw of their columns."""
    notes = {
        str(field["name"]).lower(): json.loads(note)
        for field in frame.schema.jsonValue()["fields"]
        if (note := field.get("metadata", {}).get(_KEY)) is not None
    }
    # A row that is shifted by a column puts what is classified where it is not looked for.
    masked = bool(notes and classified(one))
    return {path: _noted(result, notes, masked) for path, result in results.items()}


def _unreadable(result: CheckResult, reason: str) -> CheckResult:
    message = f"{result.message.split(':', 1)[0]}: {reason}"
    shown = replace(result, status=Status.ERROR, observed="not readable", message=message)
    return replace(shown, value=None, samples=())


def _noted(result: CheckResult, notes: Mapping[str, Any], masked: bool) -> CheckResult:
    note = notes.get(re.split(r"[.\[{]", result.property.lower(), maxsplit=1)[0])
    if note is not None and "unreadable" in note:
        return _unreadable(result, note["unreadable"])
    if note is None or result.check != "columns":
        return result
    if "note" in note:
        return replace(
            result, observed=f"{result.observed}, {note['note']}", message=f"{result.message}, {note['note']}"
        )
    if result.status not in (Status.PASS, Status.FAIL):
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
