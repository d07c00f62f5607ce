"""Examples of the check `null_values`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(rest: str) -> str:
    return f"properties: [{{name: v, logicalType: string, quality: [{{metric: nullValues, {rest}}}]}}]"


_SOME = (("a",), ("",), (None,), (None,))
_ALL_FILTERED = _rule(
    "mustBe: 0, unit: percent, customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'x'\"}}]"
)
EXAMPLES = (
    Example("within", _rule("mustBeLessOrEqualTo: 2"), "v string", _SOME, "pass", ("2 of 4 rows",)),
    Example("too many", _rule("mustBe: 0"), "v string", _SOME, "fail", ("2 of 4 rows",)),
    Example(
        "percent at the bound",
        _rule("mustBeBetween: [50, 60], unit: percent"),
        "v string",
        _SOME,
        "pass",
        ("50 % (2 of 4 rows)",),
    ),
    Example("percent of nothing", _rule("mustBe: 0, unit: percent"), "v string", (), "skipped", ("no rows",)),
    Example("none of nothing", _rule("mustBe: 0"), "v string", (), "pass", ("0 of 0 rows",)),
    Example(
        "a third, exactly",
        _rule("mustBeLessThan: 33.33, unit: percent"),
        "v string",
        (("a",), ("b",), (None,)),
        "fail",
        ("33.33 % (1 of 3 rows)",),
    ),
    Example(
        "a field of a struct, and of a NULL struct",
        "properties: [{name: s, logicalType: object, properties: [{name: v, logicalType: number,"
        " quality: [{metric: nullValues, mustBe: 1}]}]}]",
        "s struct<v: double>",
        (((1.0,),), ((None,),), ((float("nan"),),), (None,)),
        "pass",
        ("1 of 4 rows",),
    ),
    Example("nothing left of", _ALL_FILTERED, "v string", _SOME, "skipped", ("no rows",)),
    Example("unknown unit", _rule("mustBe: 0, unit: bytes"), "v string", _SOME, "error"),
    Example("unknown argument", _rule("mustBe: 0, arguments: {period: 1}"), "v string", _SOME, "error"),
)
