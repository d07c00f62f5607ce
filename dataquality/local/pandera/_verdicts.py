"""The results of all clauses of a frame, measured once for all checks of a schema."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dq.contracts.shared.outcome import CheckResult, Status, Unreadable
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.memory import measure
from dq.dataquality.answers.rows import Rows
from dq.dataquality.clauses.clause import Clause, Extent
from dq.dataquality.clauses.kind import answered, metrics_of, second_of
from dq.dataquality.clauses.preparation import asked_of
from dq.dataquality.local.pandera.export import Export
from dq.dataquality.model.predicate import Compare, In, Length, Not, Path
from dq.dataquality.model.run_context import NOWHEN
from dq.dataquality.report import Violated

Results = Mapping[str, CheckResult]
Measured = tuple[Results, Any]
"""The results by clause, and what a backend keeps to show the rows."""


class NotMeasured(Unreadable):
    """A clause could not be measured on this frame: neither kept nor broken."""


class FrameBroken(Violated):
    """A clause about the whole of a frame is broken."""


class Verdicts:
    """Remembers the last frame that was measured, because pandera runs one check after the other.

    A frame may be changed between two validations: the first check of a schema always measures anew.
    """

    def __init__(self, measured: Callable[[Any], Measured]) -> None:
        self._measured = measured
        self._last: tuple[Callable[[], Any], Measured] | None = None

    def of(self, frame: Any, *, first: bool) -> Measured:
        """The results of this frame."""
        if first or self._last is None or self._last[0]() is not frame:
            self._last = weakref.ref(frame), self._measured(frame)
        return self._last[1]


def kept(result: CheckResult) -> bool:
    """Whether a clause is kept. Raises NotMeasured, with the reason, for one without an answer."""
    if result.status is Status.ERROR:
        raise NotMeasured(result.message)
    return result.status is not Status.FAIL


def in_memory(export: Export, rows_of: Callable[[Any, DataType], Rows]) -> Verdicts:
    """The results of clauses on rows in memory, judged as those of Spark are, and the rows."""
    promised, kinds = row_type(export.one), export.kinds

    def measured(frame: Any) -> Measured:
        rows = rows_of(frame, promised)
        asked = asked_of(rows.schema, export.clauses, NOWHEN)
        answers = measure(rows, metrics_of(asked, kinds))
        answers |= measure(rows, second_of(asked, answers, kinds))
        return {clause.path: answered(clause, answers, kinds) for clause in asked}, rows

    return Verdicts(measured)


def parts(
    column: Callable[..., Any],
    check: Callable[..., Any],
    export: Export,
    test: Callable[[Clause, bool, Any], Any],
    *,
    built_in: bool = False,
) -> dict[str, Any]:
    """What a schema of any backend is made of, from its own Column and Check.

    With `built_in`, clauses that pandera has a check for are checks of its own on their column, which it can
    write down (`to_yaml`) and whose failure cases name the values. `test` is asked for each of the others
    with whether it is the first of the schema, and with the frame.
    """
    whole = {column.name for column in export.columns if column.type in _WHOLE}
    own = {
        clause.path: _built_in_check(check, export, clause, *said)
        for clause in export.clauses
        if built_in and (said := _built_in(clause, clause.property in whole))
    }
    others = [clause for clause in export.clauses if clause.path not in own]
    return {
        "columns": {
            one.name: column(
                nullable=one.nullable,
                title=one.title,
                description=one.description,
                metadata={"type": one.type},
                checks=[
                    own[clause.path]
                    for clause in export.clauses
                    if clause.property == one.name and clause.path in own
                ],
            )
            for one in export.columns
        },
        "checks": [
            _check(check, export, clause, partial(test, clause, at == 0)) for at, clause in enumerate(others)
        ],
        "name": export.one.name,
        "description": export.one.description,
        "metadata": export.metadata,
    }


# A comparison of values that break a clause -> pandera's check of those that keep it.
_BOUNDS = {
    "<": "greater_than_or_equal_to",
    "<=": "greater_than",
    ">": "less_than_or_equal_to",
    ">=": "less_than",
}
_WHOLE = ("tinyint", "smallint", "int", "bigint", "integer")
_LENGTHS = {"<": "min_value", ">": "max_value"}


def _built_in(clause: Clause, whole: bool) -> tuple[str, dict[str, object]] | None:
    """Pandera's check that means the same as a clause, and its arguments; None where there is none.

    Lists of texts, lengths of texts, and of a column of whole numbers lists and bounds have one. Floats have
    none, as pandera takes NaN for NULL; nor do decimals, whose bounds Arrow compares in 38 digits.
    """
    if clause.limit is not None or clause.extent != Extent():
        return None
    match clause.breaks:
        case Not(In(Path((_,)), values)) if _texts(values) or (whole and all(map(_fits, values))):
            return "isin", {"allowed_values": [*values]}
        case Compare(Path((_,)), operator, bound) if whole and operator in _BOUNDS and _fits(bound):
            return _BOUNDS[operator], {"max_value" if operator.startswith(">") else "min_value": bound}
        case Compare(Length(Path((_,))), operator, int(length)) if operator in _LENGTHS:
            return "str_length", {_LENGTHS[operator]: length}
    return None


def _texts(values: tuple[object, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _fits(value: object) -> bool:
    """Whether a value is a whole number that a column of them can hold."""
    return type(value) is int and -(2**63) <= value < 2**63


def _built_in_check(
    check: Callable[..., Any], export: Export, clause: Clause, name: str, arguments: dict[str, object]
) -> Any:
    return getattr(check, name)(**arguments, **_words(export, clause), ignore_na=True)


def _check(check: Callable[..., Any], export: Export, clause: Clause, function: Callable[[Any], Any]) -> Any:
    return check(function, **_words(export, clause), ignore_na=False)


def _words(export: Export, clause: Clause) -> dict[str, Any]:
    """What a check says of itself: called as its clause's path, a warning where the clause is no more."""
    subject = f"{clause.object}.{clause.property}" if clause.property else clause.object
    return {
        "name": clause.path,
        "error": f"{subject}: {clause.check}, allowed: {clause.allowed} ({clause.path} at {clause.at})",
        "title": clause.check,
        "description": export.kinds[clause.check].summary,
        "raise_warning": not clause.severity.blocks,
    }
