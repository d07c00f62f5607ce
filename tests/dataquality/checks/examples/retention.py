"""Examples of the check `retention`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example

_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def _seen(kind: str, rest: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{rest}}}]"


def _level(value: int, unit: str) -> str:
    return f"[{{property: retention, value: {value}, unit: {unit}, element: t.v}}]"


_YEARS = _level(3, "y")
_DDL = "v date"
EXAMPLES = (
    Example("within, and NULL", _seen("date"), _DDL, ((dt.date(2023, 11, 21),), (None,)), "pass",
            (), _YEARS, _NOW),
    Example("the day itself ends within", _seen("date"), _DDL, ((dt.date(2023, 11, 20),),), "fail",
            ("oldest 1,096 d 12 h",), _YEARS, _NOW),
    Example("no rows", _seen("date"), _DDL, (), "pass", ("no value",), _YEARS, _NOW),
    Example("only NULL", _seen("date"), _DDL, ((None,),), "pass", ("no value",), _YEARS, _NOW),
    Example("a marker of long ago", _seen("date"), _DDL, ((dt.date(1, 1, 1),),), "fail", (), _YEARS, _NOW),
    Example("the future", _seen("date"), _DDL, ((dt.date(9999, 12, 31),),), "pass", ("oldest 0 s",),
            _YEARS, _NOW),
    Example("instants", _seen("timestamp"), "v timestamp",
            ((_NOW - dt.timedelta(days=30),), (_NOW,)), "pass", ("oldest 30 d",), _level(30, "d"), _NOW),
    Example("instants too old", _seen("timestamp"), "v timestamp",
            ((_NOW - dt.timedelta(days=30, microseconds=1),),), "fail", ("oldest 30 d",),
            _level(30, "d"), _NOW),
    Example("civil times", _seen("timestamp", ", physicalType: timestamp_ntz"), "v timestamp_ntz",
            ((dt.datetime(1969, 12, 31, 23, 59, 59, 1),),), "fail", (), _level(30, "d"), _NOW),  # noqa: DTZ001
    Example("no time of the run", _seen("date"), _DDL, (), "error", (), _YEARS),
    Example("no number", _seen("date"), _DDL, (), "error", (),
            "[{property: retention, value: long, unit: y, element: t.v}]", _NOW),
    Example("no element", _seen("date"), _DDL, ((dt.date(1970, 1, 1),),), "", (),
            "[{property: retention, value: 3, unit: y}]", _NOW),
    Example("no column is guessed", _seen("date"), _DDL, ((dt.date(1970, 1, 1),),), "", (),
            "[{property: retention, value: 3, unit: y, element: t}]", _NOW),
    Example("a text instead", _seen("date"), "v string", (("2026-11-21",),), "error", (), _YEARS, _NOW),
)  # fmt: skip
