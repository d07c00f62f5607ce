"""Examples of the check `row_count`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example

from dq.dataquality.model.run_context import PastRowCount

_CHECK = "row_count"


def _rule(operator: str) -> str:
    return f"quality: [{{metric: rowCount, {operator}}}]"


_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
_GROWTH = _rule("mustBeGreaterOrEqualTo: 0, unit: percent, arguments: {period: 24, unit: h}")


def _seen(hours: int, rows: int) -> tuple[PastRowCount, ...]:
    return (PastRowCount(_CHECK, "schema[0].quality[0]", _NOW - dt.timedelta(hours=hours), rows),)


_WEEK = (
    "{properties: [{name: d, logicalType: date}], quality: [{metric: rowCount, mustBe: 2,"
    " customProperties: [{property: scope, vendor: dq, value: {rows: window, window: 7d, time: d}}]}]}"
)
_SOME = (("a",), (None,), ("a",))
EXAMPLES = (
    Example("as many as promised", _rule("mustBe: 3"), "v string", _SOME, "pass", ("3 rows",)),
    Example("none", _rule("mustBeGreaterThan: 0"), "v string", (), "fail", ("0 rows",)),
    Example("at the bound", _rule("mustBeBetween: [1, 3]"), "v string", _SOME, "pass"),
    Example("over the bound", _rule("mustBeLessThan: 3"), "v string", _SOME, "fail"),
    Example("in a forbidden range", _rule("mustNotBeBetween: [3, 4]"), "v string", _SOME, "fail"),
    Example("two operators", _rule("mustBeLessThan: 3, mustBeGreaterThan: 1"), "v string", _SOME, "error"),
    Example("relative to what?", _rule("mustBeLessThan: 3, unit: percent"), "v string", _SOME, "error"),
    Example("half as many again", _GROWTH, "v string", _SOME, "pass", ("+50 %",), "", _NOW, _seen(24, 2)),
    Example("too few", _GROWTH, "v string", _SOME, "fail", ("-25 %",), "", _NOW, _seen(23, 4)),
    Example("the nearest run", _GROWTH, "v string", _SOME, "pass", ("+0 %",), "", _NOW,
            (*_seen(2, 9), *_seen(26, 3), *_seen(35, 9))),
    Example("no run then", _GROWTH, "v string", _SOME, "skipped", (), "", _NOW, _seen(11, 2)),
    Example("none then", _GROWTH, "v string", _SOME, "skipped", ("no rows 24h before",), "", _NOW,
            _seen(24, 0)),
    Example("no history", _GROWTH, "v string", _SOME, "skipped", (), "", _NOW),
    Example(
        "where nothing is left",
        "quality: [{metric: rowCount, mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {where: \"v = 'b'\"}}]}]",
        "v string",
        _SOME,
        "pass",
        ("0 rows",),
    ),
    Example(
        "of the last week",
        _WEEK,
        "d date",
        ((dt.date(2026, 11, 21),), (dt.date(2026, 11, 14),), (dt.date(2026, 11, 13),), (None,)),
        "pass",
        ("2 rows",),
        "",
        _NOW,
    ),
    Example("of a week by nobody's birthday", _WEEK.replace(", time: d", ""), "d date", (), "error"),
    Example("of a week by a number", _WEEK.replace("Type: date", "Type: integer"), "d int", (), "error"),
    Example("of a week by nothing that is there", _WEEK.replace("time: d", "time: e"), "d date", (), "error"),
    Example(
        "of a week, but when?",
        _WEEK,
        "d date",
        (),
        "error",
    ),
    Example(
        "a window without a column",
        "quality: [{metric: rowCount, mustBe: 0, customProperties:"
        " [{property: scope, vendor: dq, value: {rows: window, window: 7d}}]}]",
        "v string",
        (),
        "error",
        (),
        "",
        _NOW,
    ),
)  # fmt: skip
