"""Examples of the check `missing_values`."""

from __future__ import annotations

from fakes.examples import Example


def _rule(values: str, rest: str = "mustBe: 0", kind: str = "string") -> str:
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality: "
        f"[{{metric: missingValues, arguments: {{missingValues: [{values}]}}, {rest}}}]}}]"
    )


_SOME = (("a",), ("",), ("N/A",), (None,))
EXAMPLES = (
    Example("none", _rule("null, 'N/A'"), "v string", (("a",), ("n/a",)), "pass", ("0 of 2 rows",)),
    Example("texts and NULL", _rule("null, '', 'N/A'"), "v string", _SOME, "fail", ("3 of 4 rows",)),
    Example("NULL unlisted", _rule("'N/A'"), "v string", _SOME, "fail", ("2 of 4 rows",)),
    Example("numbers", _rule("-999", kind="integer"), "v int", ((-999,), (1,)), "fail", ("1 of 2 rows",)),
    Example("percent", _rule("''", "mustBe: 50, unit: percent"), "v string", _SOME, "pass"),
    Example("percent of nothing", _rule("''", "mustBe: 0, unit: percent"), "v string", (), "skipped"),
    Example(
        "floats and NaN",
        _rule("-99.9", kind="number"),
        "v float",
        ((-99.9,), (float("nan"),), (99.9,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "items of an array",
        "properties: [{name: v, logicalType: array, items: {logicalType: string, quality:"
        " [{metric: missingValues, arguments: {missingValues: ['']}, mustBe: 0}]}}]",
        "v array<string>",
        ((["a", ""],), ([None],), (["a"],), ([],), (None,)),
        "fail",
        ("2 of 5 rows",),
    ),
    Example("text in a number", _rule("'N/A'", kind="integer"), "v int", ((1,),), "error"),
)
