"""Examples of the check `enum`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from fakes.examples import Example


def _enum(kind: str, *values: str) -> str:
    listed = ", ".join(f"{{value: {value}}}" for value in values)
    return f"properties: [{{name: v, logicalType: {kind}, enum: [{listed}]}}]"


_TEXT = _enum("string", "open", '"it\'s"', '"a\\\\b"', '"${spark.app.name}"', "žluť")
_ARRAY = "properties: [{name: v, logicalType: array, items: {logicalType: integer, enum: [{value: 1}]}}]"
EXAMPLES = (
    Example(
        "listed, and NULL",
        _TEXT,
        "v string",
        (("open",), ("it's",), ("a\\b",), ("${spark.app.name}",), ("žluť",), (None,)),
        "pass",
        ("0 of 6 rows",),
    ),
    Example("not listed", _TEXT, "v string", (("opened",), ("",), ("OPEN",)), "fail", ("3 of 3 rows",)),
    Example("no rows", _TEXT, "v string", (), "pass"),
    Example("numbers", _enum("number", "0.1", "-2"), "v double", ((0.1,), (-2.0,)), "pass"),
    Example(
        "floats",
        _enum("number", "0.1", "3"),
        "v float",
        ((0.1,), (3.0,), (0.3,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "keys of a map",
        "properties: [{name: v, logicalType: map, map: {value: {logicalType: integer},"
        " key: {logicalType: string, enum: [{value: a}]}}}]",
        "v map<string,int>",
        (({"a": 1},), ({"a": 1, "b": 2},), ({},), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example(
        "a field of a struct",
        "properties: [{name: v, logicalType: object,"
        " properties: [{name: s, logicalType: date, enum: [{value: 2026-01-01}]}]}]",
        "v struct<s: date>",
        (((dt.date(2026, 1, 1),),), ((dt.date(2026, 1, 2),),), ((None,),), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example("NaN", _enum("number", "0.1"), "v double", ((float("nan"),),), "fail"),
    Example("true only", _enum("boolean", "true"), "v boolean", ((True,), (False,)), "fail"),
    Example(
        "a number beyond what fits into 38 digits with the column",
        _enum("number", "100000000000000000000"),
        "v decimal(38,18)",
        ((Decimal("1.5"),),),
        "error",
    ),
    Example(
        "a number that just fits",
        _enum("number", "10000000000000000000", "1.0e-18"),
        "v decimal(38,18)",
        ((Decimal("10000000000000000000"),), (Decimal("1e-18"),), (Decimal("2e-18"),)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example("items", _ARRAY, "v array<int>", (([1, 1],), ([1, 2, 3],), (None,)), "fail", ("1 of 3 rows",)),
    Example("text for a number", _enum("integer", "one"), "v int", ((1,),), "error"),
    Example("a text column instead", _enum("integer", "1"), "v string", (("1",),), "error"),
)
