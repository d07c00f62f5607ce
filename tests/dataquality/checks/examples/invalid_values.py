"""Examples of the check `invalid_values`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(given: str, rest: str = "mustBe: 0") -> str:
    return (
        "properties: [{name: v, logicalType: string, quality: "
        f"[{{metric: invalidValues, arguments: {{{given}}}, {rest}}}]}}]"
    )


_SOME = (("kg",), ("lb",), ("pounds",), (None,))
EXAMPLES = (
    Example("listed", _rule("validValues: [kg, lb]"), "v string", _SOME[:2], "pass", ("0 of 2 rows",)),
    Example("not listed", _rule("validValues: [kg, lb]"), "v string", _SOME, "fail", ("1 of 4 rows",)),
    Example("within", _rule("validValues: [kg]", "mustBeLessThan: 3"), "v string", _SOME, "pass"),
    Example("percent", _rule("validValues: [kg]", "mustBe: 50, unit: percent"), "v string", _SOME, "pass"),
    Example(
        "percent of nothing",
        _rule("validValues: [kg]", "mustBe: 0, unit: percent"),
        "v string",
        (),
        "skipped",
    ),
    Example("pattern", _rule("pattern: '^[a-z]{2}$'"), "v string", _SOME, "fail", ("1 of 4 rows",)),
    Example(
        "both",
        _rule("pattern: '^[a-z]{2}$', validValues: [kg, pounds]"),
        "v string",
        _SOME,
        "fail",
        ("2 of 4 rows",),
    ),
    Example(
        "items of an array",
        "properties: [{name: v, logicalType: array, items: {logicalType: string, quality:"
        " [{metric: invalidValues, arguments: {validValues: [a]}, mustBeLessThan: 2}]}}]",
        "v array<string>",
        ((["a", None],), (["a", "b", "c"],), ([],), (None,)),
        "pass",
        ("1 of 4 rows",),
    ),
    Example("no rows", _rule("validValues: [kg]"), "v string", (), "pass", ("0 of 0 rows",)),
    Example(
        "nothing left of",
        _rule(
            "validValues: [kg]",
            "mustBe: 0, unit: percent,"
            " customProperties: [{property: scope, vendor: dq, value: {where: \"v = 'x'\"}}]",
        ),
        "v string",
        _SOME,
        "skipped",
    ),
    Example("neither", _rule(""), "v string", _SOME, "error"),
    Example(
        "as in ODCS 3.0",
        "properties: [{name: v, logicalType: string,"
        " quality: [{rule: validValues, validValues: [kg], mustBe: 0}]}]",
        "v string",
        _SOME,
        "fail",
        ("2 of 4 rows",),
    ),
)
