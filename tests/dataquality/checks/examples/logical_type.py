"""Examples of the check `logical_type`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

from fakes.examples import Example


def _as(logical: str, physical: str, more: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {logical}, physicalType: '{physical}'{more}}}]"


def _texts(logical: str, good: tuple[str, ...], bad: tuple[str, ...]) -> Iterator[Example]:
    contract = _as(logical, "string")
    kept = tuple((text,) for text in (*good, None))
    yield Example(f"{logical} as text, kept", contract, "v string", kept, "pass")
    rows = tuple((text,) for text in (*good, *bad, None))
    yield Example(
        f"{logical} as text, broken", contract, "v string", rows, "fail", (f"{len(bad)} of {len(rows)} rows",)
    )


_NAN, _INF = float("nan"), float("inf")
EXAMPLES = (
    *_texts("integer", ("0", "-7", "+12", "9" * 40), ("", "12a", "1.0", "1e3", " 1", "1\n", "NaN", "٣")),
    *_texts("number", ("0", "-7.50", ".5", "1e-9", "NaN", "-Infinity"), ("", "1,5", "x", "0x1", "1 ", "e3")),
    *_texts("boolean", ("true", "FALSE", "t", "No", "1", "0"), ("", "2", "ja", "true ", "on")),
    *_texts("date", ("2024-02-29", "0001-01-01"), ("", "2023-02-29", "24-01-01", "2024-01-01T00:00")),
    *_texts(
        "timestamp",
        ("2024-02-29", "2024-02-29T23:59:60Z", "2024-02-29 01:02:03.5+01:00", "2024-01-01 00:00"),
        ("", "2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00 CET", "1704067200"),
    ),
    *_texts("time", ("23:59", "T00:00:00Z", "12:30:00.25"), ("", "24:00", "7:30", "noon", "12:60:00")),
    Example(
        "a time without physicalType",
        "properties: [{name: v, logicalType: time}]",
        "v string",
        (("07:30",), ("half past seven",)),
        "fail",
        ("1 of 2 rows",),
    ),
    Example(
        "whole floats",
        _as("integer", "double"),
        "v double",
        ((1.0,), (-0.0,), (1e300,), (9007199254740993.0,), (None,)),
        "pass",
    ),
    Example(
        "floats with a fraction",
        _as("integer", "double"),
        "v double",
        ((1.5,), (1e-30,), (_NAN,), (_INF,), (-_INF,), (4503599627370495.5,), (2.0,)),
        "fail",
        ("6 of 7 rows",),
    ),
    Example(
        "floats of 32 bits",
        _as("integer", "float"),
        "v float",
        ((1.5,), (16777216.0,), (_NAN,)),
        "fail",
        ("2 of 3 rows",),
    ),
    Example(
        "decimals",
        _as("integer", "decimal(10,2)"),
        "v decimal(10,2)",
        ((Decimal("1.00"),), (Decimal("1.50"),), (None,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example("whole by type", _as("integer", "decimal(10,0)"), "v decimal(10,0)", ((Decimal(1),),), ""),
    Example("flags as numbers", _as("boolean", "int"), "v int", ((0,), (1,), (None,)), "pass"),
    Example("no flags", _as("boolean", "int"), "v int", ((0,), (2,), (-1,)), "fail", ("2 of 3 rows",)),
    Example("no rows", _as("integer", "string"), "v string", (), "pass", ("0 of 0 rows",)),
    Example("only NULL", _as("date", "string"), "v string", ((None,),), "pass", ("0 of 1 row",)),
    Example("the type says all", _as("integer", "int"), "v int", ((1,),), ""),
    Example("a day as a number", _as("date", "bigint"), "v bigint", ((20240101,),), ""),
    Example("an object in a text", _as("object", "string"), "v string", (("{}",),), ""),
    Example("a date with a time", _as("date", "timestamp"), "v timestamp",
            ((dt.datetime(2024, 1, 1, tzinfo=dt.UTC),),), ""),
    Example(
        "its format tells it",
        _as("date", "string", ", logicalTypeOptions: {format: dd.MM.yyyy}"),
        "v string",
        (("31.12.2024",),),
        "",
    ),
    Example("a number instead", _as("integer", "string"), "v bigint", ((1,),), "error"),
    Example(
        "items",
        "properties: [{name: v, logicalType: array, items: {logicalType: integer, physicalType: string}}]",
        "v array<string>",
        ((["1"],), (["1", "x"],), ([],), ([None],), (None,)),
        "fail",
        ("1 of 5 rows",),
    ),
    Example(
        "in a struct",
        "properties: [{name: s, logicalType: object, properties:"
        " [{name: v, logicalType: integer, physicalType: string}]}]",
        "s struct<v: string>",
        ((("1",),), (("x",),), ((None,),), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
)  # fmt: skip
