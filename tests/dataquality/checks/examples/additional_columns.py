"""Examples of the check `additional_columns`."""

from __future__ import annotations

from fakes.examples import Example


def _policy(word: str) -> str:
    return (
        "{properties: [{name: a, logicalType: object, properties: [{name: b, logicalType: string}]}],"
        f" customProperties: [{{property: dataset, vendor: dq, value: {{additionalColumns: {word}}}}}]}}"
    )


_ONE = "properties: [{name: a, logicalType: string}]"
EXAMPLES = (
    Example("none", _policy("forbid"), "A struct<b: string>", (), "pass", ("none",)),
    Example("forbidden", _policy("forbid"), "a struct<b: string, c: int>, d int", (), "fail", ("a.c, d",)),
    Example(
        "forbidden in items and values",
        "{properties: [{name: a, logicalType: array, items: {logicalType: object, properties: [{name: b}]}},"
        " {name: m, logicalType: map, map: {key: {logicalType: string},"
        " value: {logicalType: object, properties: [{name: b}]}}}]}",
        "a array<struct<b: string, c: int>>, m map<string, struct<b: string, d: int>>",
        (),
        "fail",
        ("a[].c, m{value}.d",),
    ),
    Example("allowed", _policy("allow"), "a struct<b: string>, d int", (), ""),
    Example("a warning by default", _ONE, "a string, b string", (), "fail", ("b",)),
    Example("a mistaken policy", _policy("maybe"), "a struct<b: string>", (), "error"),
)
