"""The results of all clauses of a frame, measured once for all checks of a schema."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dq.contracts.shared.outcome import CheckResult, Status, Unreadable
from dq.contracts.types import DataType, row_type
from dq.dataquality.answers.by_rows import measure
from dq.dataquality.answers.rows import Rows
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import answered, metrics_of, second_of
from dq.dataquality.clauses.preparation import asked_of
from dq.dataquality.local.pandera.export import Export
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
) -> dict[str, Any]:
    """What a schema of any backend is made of, from its own Column and Check.

    `test` is asked for each clause with whether it is the first of the schema, and with the frame.
    """
    return {
        "columns": {
            one.name: column(
                nullable=one.nullable,
                title=one.title,
                description=one.description,
                metadata={"type": one.type},
            )
            for one in export.columns
        },
        "checks": [
            _check(check, export, clause, partial(test, clause, at == 0))
            for at, clause in enumerate(export.clauses)
        ],
        "name": export.one.name,
        "description": export.one.description,
        "metadata": export.metadata,
    }


def _check(check: Callable[..., Any], export: Export, clause: Clause, function: Callable[[Any], Any]) -> Any:
    """A check of pandera for a clause: called as its path, a warning where the clause is no more."""
    subject = f"{clause.object}.{clause.property}" if clause.property else clause.object
    return check(
        function,
        name=clause.path,
        error=f"{subject}: {clause.check}, allowed: {clause.allowed} ({clause.path} at {clause.at})",
        title=clause.check,
        description=export.kinds[clause.check].summary,
        raise_warning=not clause.severity.blocks,
        ignore_na=False,
    )
