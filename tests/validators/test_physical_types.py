"""What the gate says of a physicalType that is no type of Spark, or not one of its logical type."""

from __future__ import annotations

import pytest

NAMES = "properties: [{name: x, logicalType: string}, {name: y, logicalType: integer}]"
DECLARED = "Write 'struct<x:string,y:bigint>' to match its nested elements, or omit physicalType."
STRUCT = "Include the nested types, e.g. 'struct<name:string,amount:bigint>'."
ARRAY = "Include the nested types, e.g. 'array<struct<name:string,amount:bigint>>'."


@pytest.mark.parametrize(
    ("column", "message", "hint"),
    [
        (f"logicalType: object, physicalType: object, {NAMES}", "'object' is not a type.", DECLARED),
        ("logicalType: string, physicalType: object", "'object' is not a type.", STRUCT),
        ("logicalType: string, physicalType: RECORD", "'record' is not a type.", STRUCT),
        ("logicalType: string, physicalType: array", "'<' is missing.", ARRAY),
        (
            f"logicalType: array, physicalType: array<object>, items: {{logicalType: object, {NAMES}}}",
            "'object' is not a type.",
            "Write 'array<struct<x:string,y:bigint>>' to match its nested elements, or omit physicalType.",
        ),
        (
            "logicalType: map, physicalType: map,"
            " map: {key: {logicalType: string}, value: {logicalType: integer}}",
            "'<' is missing.",
            "Write 'map<string,bigint>' to match its nested elements, or omit physicalType.",
        ),
        ("logicalType: integer, physicalType: int64", "'int64' is not a type.", "Write 'bigint'."),
        (
            "logicalType: string, physicalType: money",
            "'money' is not a type.",
            "Write it in Spark SQL syntax.",
        ),
    ],
)
def test_t62_an_unknown_type_says_what_to_write(lint_fragment, column: str, message: str, hint: str) -> None:
    found = lint_fragment(f"schema: [{{name: t, properties: [{{name: c, {column}}}]}}]\n")

    (unknown,) = (one for one in found if one.rule == "physical-type-unknown")
    assert unknown.message.endswith(message)
    assert unknown.hint == hint


@pytest.mark.parametrize(
    ("logical", "physical", "hint"),
    [
        ("date", "boolean", "Write date, or correct logicalType."),
        ("timestamp", "date", "Write one of timestamp, timestamp_ntz, or correct logicalType."),
    ],
)
def test_t62_a_contradiction_lists_the_types_that_fit(
    lint_fragment, logical: str, physical: str, hint: str
) -> None:
    column = f"{{name: c, logicalType: {logical}, physicalType: {physical}}}"

    found = lint_fragment(f"schema: [{{name: t, properties: [{column}]}}]\n")

    assert [one.hint for one in found if one.rule == "physical-type-contradicts"] == [hint]
