"""Examples of the check `compare_columns`."""

from __future__ import annotations

from fakes.examples import Example


def _of(
    rest: str = "", arguments: str = 'operator: "<=", property: w', kind: str = "number", other: str = ""
) -> str:
    implementation = f"{{check: compareColumns, arguments: {{{arguments}}}{', ' if rest else ''}{rest}}}"
    return (
        f"properties: [{{name: v, logicalType: {kind}, quality: [{{type: custom, engine: dq, implementation:"
        f" {implementation}}}]}}, {{name: w, logicalType: {other or kind}}},"
        " {name: g, logicalType: string}]"
    )


def _pair(names: str, operator: str = '">="') -> str:
    return (
        "{properties: [{name: v, logicalType: date}, {name: w, logicalType: date}], quality: [{type: custom,"
        f" engine: dq, implementation: {{check: compareColumns, arguments: {{properties: [{names}],"
        f" operator: {operator}}}}}}}]}}"
    )


_DDL, _NAN = "v double, w double, g string", float("nan")
_SOME = ((1.0, 1.0, "a"), (2.0, 1.0, "a"), (None, 1.0, "b"), (1.0, None, None))
_BY = 'operator: "<=", property: w, by: [g]'
EXAMPLES = (
    Example("kept", _of(), _DDL, _SOME[:1], "pass", ("0 of 1 row",)),
    Example("broken", _of(), _DDL, _SOME, "fail", ("1 of 4 rows",)),
    Example(
        "tolerated", _of("mustBeLessThan: 30, unit: percent"), _DDL, _SOME, "pass", ("25 % (1 of 4 rows)",)
    ),
    Example("one is allowed", _of("mustBe: 1, unit: rows"), _DDL, _SOME, "pass"),
    Example("no rows", _of(), _DDL, (), "pass"),
    Example("percent of no rows", _of("mustBe: 0, unit: percent"), _DDL, (), "skipped"),
    Example(
        "NaN above all",
        _of(),
        _DDL,
        ((1.0, _NAN, ""), (_NAN, _NAN, ""), (_NAN, 1.0, "")),
        "fail",
        ("1 of 3 rows",),
    ),
    Example("groups", _of("mustBe: 0", _BY), _DDL, _SOME, "fail", ("1 of 3 groups",)),
    Example(
        "groups, in percent",
        _of("mustBeLessThan: 51, unit: percent", _BY),
        _DDL,
        _SOME,
        "pass",
        ("3 of 3 groups",),
    ),
    Example(
        "an integer and a decimal", _of(other="integer"), "v decimal(38,0), w bigint, g string", (), "pass"
    ),
    Example(
        "texts, byte by byte", _of(kind="string"), "v string, w string, g string", (("Z", "a", ""),), "pass"
    ),
    Example(
        "a date before a text", _of(kind="date", other="string"), "v date, w string, g string", (), "error"
    ),
    Example("a date that is a text in the data", _of(kind="date"), "v date, w string, g string", (), "error"),
    Example("no operator", _of("", "property: w"), _DDL, (), "error"),
    Example("an operator that is none", _of("", 'property: w, operator: "=>"'), _DDL, (), "error"),
    Example("with what?", _of("", 'operator: "<"'), _DDL, (), "error"),
    Example("with what is not there", _of("", 'operator: "<", property: x'), _DDL, (), "error"),
    Example(
        "against no history",
        _of("mustBe: 0", 'operator: "<", property: w, against: previous'),
        _DDL,
        _SOME,
        "skipped",
    ),
    Example("on the object", _pair("v, w"), "v date, w date", (), "pass"),
    Example("three columns", _pair("v, w, v"), "v date, w date", (), "error"),
)
