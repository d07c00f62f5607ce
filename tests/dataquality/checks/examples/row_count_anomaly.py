"""Examples of the check `row_count_anomaly`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example

from dq.dataquality.clauses.quality_rule import ANOMALY
from dq.dataquality.model.run_context import PastRowCount

_CHECK = "row_count_anomaly"


def _rule(more: str = "", rest: str = "") -> str:
    implementation = f"{{check: {ANOMALY}, arguments: {{{more}}}}}" if more else ANOMALY
    return f"quality: [{{type: custom, engine: dq, implementation: {implementation}{rest}}}]"


_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def _history(*counts: int) -> tuple[PastRowCount, ...]:
    return tuple(
        PastRowCount(_CHECK, "schema[0].quality[0]", _NOW - dt.timedelta(days=len(counts) - index), rows)
        for index, rows in enumerate(counts)
    )


_THREE = _history(3, 3, 3, 4, 3, 3, 2)
_SEVEN = (("a",),) * 7
EXAMPLES = (
    Example("as usual", _rule(), "v string", (("a",), (None,), ("a",)), "pass", ("3 rows",), "", _NOW,
            _THREE),
    Example("far more", _rule(), "v string", _SEVEN, "fail", ("7 rows",), "", _NOW, _THREE),
    Example("only fewer matter", _rule("direction: fewer"), "v string", _SEVEN, "pass", (), "", _NOW,
            _THREE),
    Example("no rows", _rule(), "v string", (), "fail", ("0 rows",), "", _NOW, _THREE),
    Example("no rows, as ever", _rule(), "v string", (), "pass", ("0 rows",), "", _NOW, _history(*[0] * 7)),
    Example("learning", _rule(), "v string", _SEVEN, "skipped", ("learning (3 of 7 runs)",), "", _NOW,
            _history(1, 1, 1)),
    Example("learns faster", _rule("minimum: 3"), "v string", _SEVEN, "fail", (), "", _NOW,
            _history(1, 1, 1)),
    Example("no history", _rule(), "v string", _SEVEN, "skipped", ("no history",), "", _NOW),
    Example("no time", _rule(), "v string", _SEVEN, "skipped", ("no time",), "", None, _THREE),
    Example("a mistaken term", _rule("sigma: 3"), "v string", _SEVEN, "error", (), "", _NOW, _THREE),
    Example("a mistaken number", _rule("runs: many"), "v string", _SEVEN, "error", (), "", _NOW, _THREE),
    Example("a mistaken place", _rule().replace(ANOMALY, f"{{check: {ANOMALY}, runs: 5}}"), "v string",
            _SEVEN, "error", (), "", _NOW, _THREE),
    Example("of another engine", _rule().replace("engine: dq", "engine: soda"), "v string", _SEVEN, "", (),
            "", _NOW, _THREE),
    Example(
        "where nothing is left",
        _rule("", ", customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'b'\"}}]"),
        "v string", _SEVEN, "fail", ("0 rows",), "", _NOW, _THREE,
    ),
)  # fmt: skip
