"""Examples of the check `bounds`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from fakes.examples import Example


def _bounded(kind: str, options: str, more: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{more}, logicalTypeOptions: {{{options}}}}}]"


_MOST = "9" * 38
_MIDNIGHT = dt.datetime.combine(dt.date(2026, 1, 1), dt.time())
EXAMPLES = (
    Example(
        "at the bounds",
        _bounded("integer", "minimum: 0, maximum: 5"),
        "v int",
        ((0,), (5,), (None,)),
        "pass pass",
    ),
    Example(
        "beyond",
        _bounded("integer", "minimum: 0, maximum: 5"),
        "v int",
        ((-1,), (6,), (7,)),
        "fail fail",
        ("1 of 3 rows", "2 of 3 rows"),
    ),
    Example(
        "exclusive",
        _bounded("number", "exclusiveMinimum: 0, exclusiveMaximum: 1"),
        "v double",
        ((0.0,), (1.0,), (0.5,)),
        "fail fail",
        ("1 of 3 rows", "1 of 3 rows"),
    ),
    Example("no rows", _bounded("integer", "minimum: 0"), "v int", (), "pass", ("0 of 0 rows",)),
    Example("NaN", _bounded("number", "minimum: 0, maximum: 5"), "v double", ((float("nan"),),), "fail fail"),
    Example("infinite", _bounded("number", "minimum: 0"), "v double", ((float("inf"),),), "pass"),
    Example(
        "a float at its bound",
        _bounded("number", "minimum: 0.1, maximum: 0.1"),
        "v float",
        ((0.1,), (None,), (0.2,)),
        "pass fail",
        ("0 of 3 rows", "1 of 3 rows"),
    ),
    Example(
        "values of a map",
        "properties: [{name: v, logicalType: map, map: {key: {logicalType: string},"
        " value: {logicalType: number, logicalTypeOptions: {maximum: 0.1}}}}]",
        "v map<string,double>",
        (({"a": 0.1, "b": None},), ({"a": 0.0, "b": float("nan")},), ({},), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example(
        "a field of structs in an array",
        "properties: [{name: v, logicalType: array, items: {logicalType: object,"
        " properties: [{name: n, logicalType: integer, logicalTypeOptions: {minimum: 0}}]}}]",
        "v array<struct<n: int>>",
        (([(0,), None],), ([(1,), (-1,)],), ([(None,)],), ([],), (None,)),
        "fail",
        ("1 of 5 rows",),
    ),
    Example("negative zero", _bounded("number", "minimum: 0"), "v double", ((-0.0,),), "pass"),
    Example(
        "largest integers",
        _bounded("integer", "minimum: -9223372036854775808, maximum: 9223372036854775807"),
        "v bigint",
        ((-(2**63),), (2**63 - 1,)),
        "pass pass",
    ),
    Example(
        "dates before 1582",
        _bounded("date", "minimum: 1000-01-01, maximum: '1582-10-10'"),
        "v date",
        ((dt.date(999, 12, 31),), (dt.date(1582, 10, 10),), (dt.date(1582, 10, 11),)),
        "fail fail",
        ("1 of 3 rows", "1 of 3 rows"),
    ),
    Example(
        "instants",
        _bounded("timestamp", "minimum: 2026-01-01T00:00:00+01:00"),
        "v timestamp",
        (
            (dt.datetime(2025, 12, 31, 22, 59, tzinfo=dt.UTC),),
            (dt.datetime(2025, 12, 31, 23, 0, tzinfo=dt.UTC),),
        ),
        "fail",
        ("1 of 2 rows",),
    ),
    Example(
        "without a zone",
        _bounded("timestamp", "timezone: false, maximum: '2026-01-01'"),
        "v timestamp_ntz",
        ((_MIDNIGHT,), (_MIDNIGHT + dt.timedelta(days=1),)),
        "fail",
        ("1 of 2 rows",),
    ),
    Example(
        "decimals at the limit",
        _bounded("number", f"maximum: {_MOST}", ", physicalType: 'decimal(38,0)'"),
        "v decimal(38,0)",
        ((Decimal(_MOST),),),
        "pass",
    ),
    Example(
        "a bound that does not fit into 38 digits with the column",
        _bounded("number", "minimum: 1.0e+20, maximum: 1.0e-19"),
        "v decimal(38,18)",
        ((Decimal(1),),),
        "error error",
    ),
    Example(
        "bounds that no bigint can hold",
        _bounded("integer", "minimum: 100000000000000000000, exclusiveMaximum: -100000000000000000000"),
        "v bigint",
        ((None,), (5,)),
        "fail fail",
        ("1 of 2 rows", "1 of 2 rows"),
    ),
    Example("a text column instead", _bounded("integer", "minimum: 0"), "v string", (("1",),), "error"),
    Example("text as a bound", _bounded("integer", "minimum: zero"), "v int", ((1,),), "error"),
)
