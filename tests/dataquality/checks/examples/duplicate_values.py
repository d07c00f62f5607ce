"""Examples of the check `duplicate_values`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(rest: str) -> str:
    return f"properties: [{{name: v, logicalType: string, quality: [{{metric: duplicateValues, {rest}}}]}}]"


def _pair(names: str) -> str:
    return (
        "{properties: [{name: a, logicalType: string}, {name: b, physicalName: b_id, logicalType: string}],"
        f" quality: [{{metric: duplicateValues, mustBe: 0, arguments: {{properties: [{names}]}}}}]}}"
    )


_SOME = (("a",), ("a",), ("a",), ("b",), (None,), (None,))
EXAMPLES = (
    Example("rows beyond the first", _rule("mustBe: 2"), "v string", _SOME, "pass", ("2 rows",)),
    Example("too many", _rule("mustBeLessThan: 2"), "v string", _SOME, "fail", ("2 rows",)),
    Example(
        "percent of all rows",
        _rule("mustBeLessThan: 33, unit: percent"),
        "v string",
        _SOME,
        "fail",
        ("33.33 % (2 of 6 rows)",),
    ),
    Example("percent of nothing", _rule("mustBe: 0, unit: percent"), "v string", (), "skipped"),
    Example("no rows", _rule("mustBe: 0"), "v string", (), "pass"),
    Example(
        "a pair",
        _pair("a, b"),
        "a string, b_id string",
        (("x", "1"), ("x", "2"), ("x", "2")),
        "fail",
        ("1 row",),
    ),
    Example("a pair with NULL", _pair("a, b"), "a string, b_id string", (("x", None), ("x", None)), "pass"),
    Example(
        "NaN, zeros and a field of a struct",
        "properties: [{name: s, logicalType: object, properties: [{name: v, logicalType: number, quality:"
        " [{metric: duplicateValues, mustBe: 2}]}]}]",
        "s struct<v: double>",
        (((float("nan"),),), ((float("nan"),),), ((0.0,),), ((-0.0,),), ((None,),), (None,)),
        "pass",
        ("2 rows",),
    ),
    Example(
        "nothing left of",
        _rule("mustBe: 0, customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'x'\"}}]"),
        "v string",
        _SOME,
        "pass",
        ("0 rows",),
    ),
    Example("an unknown name", _pair("a, c"), "a string, b_id string", (("x", "1"),), "error"),
)
