"""Examples of the check `agrees_in_sum`: columns, or rows, of one object that should have the same sums."""

from __future__ import annotations

from decimal import Decimal

from fakes.examples import Example

_COLUMNS = """
properties:
  - {name: g, logicalType: string}
  - {name: h, logicalType: string}
  - {name: n, logicalType: integer}
  - {name: m, logicalType: integer}
  - {name: d, logicalType: number, physicalType: "decimal(38,2)"}
  - {name: x, logicalType: number, physicalType: double}
"""
_DDL = "g string, h string, n bigint, m bigint, d decimal(38,2), x double"
_NAN, _INFINITE = float("nan"), float("inf")


def _rule(arguments: str, bounds: str = "", scope: str = "", side: str = "{object: t}") -> str:
    implementation = f"{{check: agreesInSum, arguments: {{with: {side}, {arguments}}}{bounds}}}"
    extension = f", customProperties: [{{property: scope, vendor: dq, value: {scope}}}]" if scope else ""
    return f"{_COLUMNS}quality: [{{type: custom, engine: dq, implementation: {implementation}{extension}}}]"


def _row(
    g: str | None = "a",
    h: str | None = "a",
    n: int | None = 1,
    m: int | None = 1,
    d: str | None = "1.00",
    x: float | None = 1.0,
) -> tuple[object, ...]:
    return (g, h, n, m, None if d is None else Decimal(d), x)


_SUMS = "sums: [n], rename: {n: m}"
_GROUPS = "by: [g], rename: {g: h}"
_MOST = 2**63 - 1
EXAMPLES = (
    Example(
        "equal sums, NULL is ignored",
        _rule(_SUMS),
        _DDL,
        (_row(n=None, m=0), _row()),
        "pass",
        ("2 rows, the same in t; sum of n 1, the same in t",),
    ),
    Example("no rows", _rule(_SUMS), _DDL, (), "pass", ("0 rows, the same in t; sum of n 0, the same in t",)),
    Example("no rows by group", _rule(_GROUPS), _DDL, (), "pass", ("0 of 0 groups by g agree with t",)),
    Example(
        "another sum",
        _rule(_SUMS),
        _DDL,
        (_row(n=1, m=3), _row(n=2, m=1)),
        "fail",
        ("sum of n 3, 4 in t (-1, -25 %)",),
    ),
    Example("beyond 64 bits", _rule(_SUMS), _DDL, (_row(n=_MOST, m=_MOST), _row(n=_MOST, m=_MOST)), "pass"),
    Example(
        "beyond 64 bits, one less",
        _rule(_SUMS),
        _DDL,
        (_row(n=_MOST, m=_MOST), _row(n=_MOST, m=_MOST - 1)),
        "fail",
        ("sum of n 18,446,744,073,709,551,614, 18,446,744,073,709,551,613 in t (+1, +5.421e-18 %)",),
    ),
    Example(
        "a decimal and an integer",
        _rule("sums: [d], rename: {d: n}"),
        _DDL,
        (_row(d="0.10", n=0), _row(d="0.20", n=0), _row(d="0.70", n=1)),
        "pass",
        ("3 rows, the same in t; sum of d 1, the same in t",),
    ),
    Example(
        "a double next to a decimal, equal but for rounding",
        _rule("sums: [x], rename: {x: d}"),
        _DDL,
        (_row(x=0.1, d="0.10"), _row(x=0.2, d="0.20"), _row(x=1e6, d="1000000.00")),
        "pass",
    ),
    Example(
        "a double next to a decimal, a cent less",
        _rule("sums: [x], rename: {x: d}"),
        _DDL,
        (_row(x=0.1, d="0.11"), _row(x=1e9, d="1000000000.00")),
        "fail",
        ("sum of x 1,000,000,000.1, 1,000,000,000.11 in t (-0.01, -1e-09 %)",),
    ),
    Example(
        "doubles beyond 53 bits", _rule("sums: [x], rename: {x: n}"), _DDL, (_row(x=1e18, n=10**18),), "pass"
    ),
    Example("NaN has no sum", _rule("sums: [x], rename: {x: d}"), _DDL, (_row(x=_NAN),), "error"),
    Example("infinity", _rule("sums: [x], rename: {x: d}"), _DDL, (_row(x=_INFINITE),), "error"),
    Example(
        "more than 38 digits",
        _rule("sums: [d], rename: {d: n}"),
        _DDL,
        (_row(d="9" * 36 + ".99"), _row(d="9" * 36 + ".99")),
        "error",
    ),
    Example("within the tolerance", _rule(f"{_SUMS}, tolerance: {{n: 2}}"), _DDL, (_row(n=1, m=3),), "pass"),
    Example("above it", _rule(f"{_SUMS}, tolerance: {{n: 1.9}}"), _DDL, (_row(n=1, m=3),), "fail"),
    Example(
        "within a percentage",
        _rule(_SUMS, ", mustBeLessOrEqualTo: 0.1, unit: percent"),
        _DDL,
        (_row(n=999, m=1000),),
        "pass",
        ("1 row, the same in t; sum of n 999, 1,000 in t (-1, -0.1 %)",),
    ),
    Example(
        "above a percentage",
        _rule(_SUMS, ", mustBeLessThan: 0.1, unit: percent"),
        _DDL,
        (_row(n=999, m=1000),),
        "fail",
        ("sum of n 999, 1,000 in t (-1, -0.1 %)",),
    ),
    Example(
        "of zero",
        _rule(_SUMS, ", mustBeLessThan: 100, unit: percent"),
        _DDL,
        (_row(n=1, m=0),),
        "fail",
        ("sum of n 1, 0 in t (+1)",),
    ),
    Example(
        "groups, the largest difference first",
        _rule(_GROUPS),
        _DDL,
        (_row("a", "b"), _row("b", "b"), _row("b", "b"), _row(None, "c"), _row("d", "d"), _row("e", "d")),
        "fail",
        (
            "6 of 6 groups by g differ from t: a 1 row, 0 there (+1) · b 2 rows, 3 there (-1, -33.33 %)"
            " · c 0 rows, 1 there (-1, -100 %) · 3 more",
        ),
    ),
    Example(
        "NULL is a group",
        _rule(_GROUPS),
        _DDL,
        (_row(None, "a"), _row("a", None)),
        "pass",
        ("2 of 2 groups by g agree with t",),
    ),
    Example(
        "rows by group", _rule(_GROUPS, ", mustBeLessThan: 2"), _DDL, (_row("a", "b"), _row("b", "c")), "pass"
    ),
    Example(
        "a valid subset",
        _rule("sums: [n]", scope="{where: \"g = 'a'\"}", side="{object: t, where: \"h = 'a'\"}"),
        _DDL,
        (_row("a", "b", 5), _row("b", "a", 5), _row("b", "b", 7)),
        "pass",
        ("1 row, the same in t where h = 'a'; sum of n 5, the same in t where h = 'a'",),
    ),
    Example(
        "one group is NaN, another differs",
        _rule("by: [g], sums: [x], rename: {g: h}"),
        _DDL,
        (_row("a", "b"), _row("b", "b", x=_NAN)),
        "fail",
        (
            "2 of 2 groups by g differ from t: a 1 row, 0 there (+1); sum of x 1, 0 there (+1)"
            " · b 1 row, 2 there (-1, -50 %)",
        ),
    ),
    Example(
        "an unknown column of the condition",
        _rule("sums: [n]", side="{object: t, where: nr > 1}"),
        _DDL,
        (),
        "error",
    ),
    Example("an unknown column", _rule("sums: [nr], rename: {n: m}"), _DDL, (), "error"),
    Example("a column on neither side", _rule(_SUMS), "n bigint", ((1,),), "error"),
    Example("data that is not given", _rule(_SUMS, side="{server: us}"), _DDL, (), "error"),
)
