"""Examples of the check `agrees`: the two columns of one object, which should agree."""

from __future__ import annotations

import datetime as dt

from fakes.examples import Example

from dq.contracts.agreement import Agreement, OtherSide
from dq.dataquality.model.run_context import PastComparison

_COLUMNS = """
properties:
  - {name: id, logicalType: integer, primaryKey: true}
  - {name: a, logicalType: number}
  - {name: b, logicalType: number}
"""
_DDL = "id int, a double, b double"
_NAN = float("nan")


def _rule(arguments: str = "", bounds: str = "") -> str:
    implementation = (
        f"{{check: agrees, arguments: {{with: {{object: t}}, rename: {{a: b, b: a}}{arguments}}}{bounds}}}"
    )
    return f"{_COLUMNS}quality: [{{type: custom, engine: dq, implementation: {implementation}}}]"


_NOW = dt.datetime(2026, 11, 20, 6, tzinfo=dt.UTC)


def _earlier(agrees: bool) -> tuple[PastComparison, ...]:
    rule = Agreement(OtherSide("t"), ("id",), renamed=(("a", "b"), ("b", "a")))
    yesterday = _NOW - dt.timedelta(days=1)
    return (PastComparison("schema[0].quality[0]", rule.definition, yesterday, agrees),)


_SAME = ((1, 1.0, 1.0), (2, None, None), (3, _NAN, _NAN), (4, -0.0, 0.0))
EXAMPLES = (
    Example("the same, NULL, NaN and zero", _rule(), _DDL, _SAME, "pass", ("0 rows",)),
    Example("no rows", _rule(), _DDL, (), "pass", ("0 rows",)),
    Example("a changed row", _rule(), _DDL, (*_SAME, (5, 1.0, 2.0)), "fail", ("1 row",)),
    Example("NULL is not zero", _rule(), _DDL, ((1, None, 0.0),), "fail", ("1 row",)),
    Example("within the tolerance", _rule(", tolerance: {a: 1, b: 1}"), _DDL, ((1, 1.0, 2.0),), "pass"),
    Example("above it", _rule(", tolerance: {a: 0.9, b: 0.9}"), _DDL, ((1, 1.0, 2.0),), "fail"),
    Example("only a column that agrees", _rule(", columns: [id]"), _DDL, ((1, 1.0, 2.0),), "pass"),
    Example(
        "in percent",
        _rule(bounds=", mustBeLessOrEqualTo: 25, unit: percent"),
        _DDL,
        (*_SAME[:3], (5, 1.0, 2.0)),
        "pass",
        ("25 % (1 of 4 rows)",),
    ),
    Example(
        "no rows in percent",
        _rule(", mustBeLessOrEqualTo: 25, unit: percent"),
        _DDL,
        (),
        "pass",
        ("0 % (0 of 0 rows)",),
    ),
    Example("cycles, without history", _rule(", cycles: 2"), _DDL, _SAME, "pass", ("0 rows",)),
    Example("the first cycle", _rule(", cycles: 2"), _DDL, _SAME, "pass", ("0 rows",), "", _NOW, ()),
    Example(
        "an earlier cycle agrees",
        _rule(", cycles: 2"),
        _DDL,
        _SAME,
        "pass",
        ("0 rows",),
        "",
        _NOW,
        _earlier(True),
    ),
    Example(
        "an earlier cycle disagrees",
        _rule(", cycles: 2"),
        _DDL,
        _SAME,
        "fail",
        ("0 rows; 2026-11-19 disagrees",),
        "",
        _NOW,
        _earlier(False),
    ),
    Example(
        "the same before the last cycles",
        _rule(", cycles: 1"),
        _DDL,
        _SAME,
        "pass",
        (),
        "",
        _NOW,
        _earlier(False),
    ),
    Example("no such number", _rule(", cycles: 0"), _DDL, _SAME, "error"),
    Example("a column on neither side", _rule(), "id int, a double", ((1, 1.0),), "error"),
    Example("an unknown column", _rule(", key: [nr]"), _DDL, (), "error"),
    Example("data that is not given", _rule().replace("object: t", "server: us"), _DDL, (), "error"),
)
