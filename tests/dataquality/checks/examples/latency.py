"""Examples of the check `latency`."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example

_NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def _ago(**length: float) -> dt.datetime:
    return _NOW - dt.timedelta(**length)


def _seen(kind: str, rest: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{rest}}}]"


def _level(value: object, unit: str, element: str = "t.v", name: str = "latency") -> str:
    return f"[{{property: {name}, value: {value}, unit: {unit}, element: {element}}}]"


_FOUR = _level(4, "h")
_STAMP, _DDL = _seen("timestamp"), "v timestamp"
_NTZ = _seen("timestamp", ", physicalType: timestamp_ntz, logicalTypeOptions: {defaultTimezone: Asia/Tokyo}")
EXAMPLES = (
    Example("fresh, and NULL", _STAMP, _DDL, ((_ago(hours=4),), (None,), (_ago(days=9),)), "pass",
            ("4 h old",), _FOUR, _NOW),
    Example("stale", _STAMP, _DDL, ((_ago(hours=4, seconds=1),),), "fail", ("4 h 1 s old",), _FOUR, _NOW),
    Example("no rows", _STAMP, _DDL, (), "fail", ("no rows",), _FOUR, _NOW),
    Example("only NULL", _STAMP, _DDL, ((None,),), "fail", ("no value",), _FOUR, _NOW),
    Example("no time of the run", _STAMP, _DDL, ((_NOW,),), "error", (), _FOUR),
    Example("the future is left out", _STAMP, _DDL, ((_ago(hours=5),), (_ago(days=-900_000),)), "fail",
            ("5 h old",), _FOUR, _NOW),
    Example("fresh besides the future", _STAMP, _DDL, ((_ago(hours=3),), (_ago(hours=-1),)), "pass",
            ("3 h old",), _FOUR, _NOW),
    Example("nothing but future", _STAMP, _DDL, ((_ago(hours=-1),),), "fail", ("no value",), _FOUR, _NOW),
    Example("freshness, the elder word", _STAMP, _DDL, ((_ago(minutes=29),),), "pass", ("29 min old",),
            _level(30, "min", name="freshness"), _NOW),
    Example("yesterday is 12 hours old", _seen("date"), "v date", ((dt.date(2026, 11, 20),),), "pass",
            ("12 h old",), _level(1, "d"), _NOW),
    Example("the day before is not fresh", _seen("date"), "v date", ((dt.date(2026, 11, 19),),), "fail",
            ("1 d 12 h old",), _level(1, "d"), _NOW),
    Example("today", _seen("date"), "v date", ((dt.date(2026, 11, 21),),), "pass", ("0 s old",),
            _level(1, "d"), _NOW),
    Example("a date in the future", _seen("date"), "v date",
            ((dt.date(2026, 11, 19),), (dt.date(9999, 12, 31),)), "fail", ("1 d 12 h old",),
            _level(1, "d"), _NOW),
    Example("civil time of its zone", _NTZ, "v timestamp_ntz",
            ((dt.datetime(2026, 11, 21, 20, 59, 59, 500_000),),), "pass", ("0 s old",), _level(1, "s"), _NOW),  # noqa: DTZ001
    Example("stale in its zone", _NTZ, "v timestamp_ntz", ((dt.datetime(2026, 11, 21, 12),),), "fail",  # noqa: DTZ001
            ("9 h old",), _FOUR, _NOW),
    Example("by the calendar", _STAMP, _DDL, ((dt.datetime(2026, 8, 21, 12, tzinfo=dt.UTC),),), "pass",
            ("92 d old",), _level(3, "months"), _NOW),
    Example("no column is guessed", _STAMP, _DDL, ((_NOW,),), "", (), _level(4, "h", "t"), _NOW),
    Example("no element", _STAMP, _DDL, ((_NOW,),), "", (), "[{property: latency, value: 4, unit: h}]", _NOW),
    Example("a field of a struct",
            "properties: [{name: s, logicalType: object, properties: [{name: v, logicalType: timestamp}]}]",
            "s struct<v: timestamp>", (((_NOW,),), (None,)), "pass", (), _level(4, "h", "t.s.v"), _NOW),
    Example("two columns", "properties: [{name: v, logicalType: date}, {name: w, logicalType: date}]",
            "v date, w date", ((dt.date(2026, 11, 20), dt.date(2026, 11, 1)),), "pass fail", (),
            _level(1, "d", "'t.v, t.w'"), _NOW),
    Example("which of two?", "properties: [{name: v, logicalType: date}, {name: w, logicalType: date}]",
            "v date, w date", (), "", (), _level(1, "d", "t"), _NOW),
    Example("a number", _seen("integer"), "v int", ((1,),), "", (), _FOUR, _NOW),
    Example("minutes or months", _STAMP, _DDL, ((_NOW,),), "error", (), _level(4, "m"), _NOW),
    Example("a text instead", _STAMP, "v string", (("2026-11-21",),), "error", (), _FOUR, _NOW),
    Example("no such column", _STAMP, "w timestamp", ((_NOW,),), "error", (), _FOUR, _NOW),
)  # fmt: skip
