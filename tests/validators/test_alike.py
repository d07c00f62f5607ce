"""Columns of one object with the same fault are one finding, with how many there are and the first names."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.outcome import Finding
from dq.operations.gate import unenforced
from dq.validators.lint import lint, load_rules

HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: s3, location: 's3://bucket/orders', format: parquet}]
schema:
"""
MINIMUM = "logicalTypeOptions: {minimum: 0}"
SODA = "quality: [{type: custom, engine: soda, implementation: x}]"


def found(*objects: tuple[str, list[str]]) -> list[Finding]:
    text = HEAD
    for name, columns in objects:
        text += f"  - name: {name}\n    properties:\n" + "".join(f"      - {{{one}}}\n" for one in columns)
    return lint(
        text.encode(), "orders.odcs.yaml", rules=load_rules(), today=date(2026, 11, 21), unenforced=unenforced
    )


def columns(keys: str, count: int, name: str = "c") -> list[str]:
    return [f"name: {name}{number}, {keys}" for number in range(count)]


def test_t65_an_unknown_type_of_many_columns_is_one_finding_that_nothing_repeats() -> None:
    (finding,) = found(("t", columns(f"logicalType: integer, physicalType: int64, {MINIMUM}", 8)))

    assert (finding.rule, finding.at.line, finding.path) == (
        "physical-type-unknown", 10, "schema[0].properties[0].physicalType",
    )  # fmt: skip
    assert finding.message == (
        "physicalType 'int64': 'int64' is not a type."
        " The same holds for 7 other columns of 't': c1, c2, c3, c4, c5 and 2 more."
    )
    assert finding.hint == "Write 'bigint'."


def test_t65_names_that_catalogs_change_are_one_finding_per_object() -> None:
    camel = columns("logicalType: integer", 3, "orderNo")

    told = [
        (one.at.line, one.message.partition(". ")[2], one.hint) for one in found(("t", camel), ("u", camel))
    ]

    assert told == [
        (
            line,
            f"The same holds for 2 other columns of '{name}': orderNo1, orderNo2.",
            "Write 'order_no0', and do the same for the others.",
        )
        for line, name in ((10, "t"), (15, "u"))
    ]


@pytest.mark.parametrize(
    ("listed", "ending"),
    [
        (columns(SODA, 3), "The same holds for 2 other columns of 't': c1, c2."),
        (columns(SODA, 2), "The same holds for 1 other column of 't': c1."),
        (columns(SODA, 1), "rules of the engine 'soda' are not run."),
        # Two rules of one column are two places, and still one reason.
        (["name: c, quality: [{type: custom, engine: soda, implementation: x}, {type: custom, engine: soda,"
          " implementation: y}]"], "rules of the engine 'soda' are not run."),
    ],
    ids=["three", "two", "one", "twice in one"],
)  # fmt: skip
def test_t65_what_is_not_evaluated_of_many_columns_is_one_finding(listed: list[str], ending: str) -> None:
    (finding,) = found(("t", listed))

    assert finding.rule == "unenforced"
    assert finding.message.endswith(ending)


def test_t65_other_reasons_are_findings_of_their_own() -> None:
    listed = ["name: a, physicalType: int64", "name: b, physicalType: uuid", "name: c, physicalType: int64"]

    assert [(one.at.line, one.message.count("The same holds")) for one in found(("t", listed))] == [
        (10, 1),
        (11, 0),
    ]


def test_t65_nested_columns_are_named_too() -> None:
    nested = "name: place, logicalType: object, properties: [{name: zipCode, logicalType: string}]"

    (finding,) = found(("t", ["name: orderNo", nested]))

    assert finding.message.endswith("The same holds for 1 other column of 't': zipCode.")


def test_t65_an_error_is_told_where_its_explanation_is_a_warning() -> None:
    text = HEAD + f"  - name: t\n    properties:\n      - {{name: a, physicalType: int64, {SODA}}}\n"

    rules = {one.rule for one in lint(
        text.encode(), "orders.odcs.yaml", rules=load_rules(), today=date(2026, 11, 21), unenforced=unenforced
    )}  # fmt: skip

    assert rules == {"physical-type-unknown", "unenforced"}
