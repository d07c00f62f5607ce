"""Both ways of counting repeated keys give one number, and a key inside of a key saves the counting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import FEW_KEYS, clauses_of
from dq.dataquality.model.metric import MetricExecution
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"


def contract(schema: str) -> Contract:
    parsed = parse((HEAD + schema).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def repeated(*rules: str, scope: str = "") -> Contract:
    custom = (
        f", customProperties: [{{property: scope, vendor: dq, value: {{where: '{scope}'}}}}]" if scope else ""
    )
    lines = "".join(
        f"      - {{metric: duplicateValues, arguments: {{properties: [a, b]}}, {rule}{custom}}}\n"
        for rule in rules
    )
    return contract(
        "schema:\n  - name: t\n    properties:\n"
        "      - {name: a, logicalType: number}\n      - {name: b, logicalType: string}\n    quality:\n"
        + lines
    )


MANY = f"mustBeLessOrEqualTo: {FEW_KEYS}, unit: percent"
# Rule -> how its keys are counted.
RULES = [
    ("mustBe: 0", MetricExecution.DUPLICATES),
    ("mustBe: 0, unit: percent", MetricExecution.DUPLICATES),
    ("mustBeLessThan: 5, unit: percent", MetricExecution.DUPLICATES),
    ("mustBeLessThan: 1000", MetricExecution.DUPLICATES),
    ("mustBeGreaterThan: 0", MetricExecution.DUPLICATES),
    ("mustNotBe: 99, unit: percent", MetricExecution.DUPLICATES),
    ("mustNotBeBetween: [0, 99], unit: percent", MetricExecution.DUPLICATES),
    (MANY, MetricExecution.DISTINCT),
    ("mustBe: 98, unit: percent", MetricExecution.DISTINCT),
    ("mustBeBetween: [1, 99], unit: percent", MetricExecution.DISTINCT),
    ("mustBeGreaterThan: 90, unit: percent", MetricExecution.DISTINCT),
]


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_the_bound_says_how_keys_are_counted(rule: str, kind: MetricExecution) -> None:
    made = repeated(rule)
    shelf = built_in()["duplicate_values"]

    (clause,) = clauses_of(made, made.objects[0], {"duplicate_values": shelf})

    assert shelf.metrics(clause)[0].kind is kind


FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan])
ROWS = st.lists(st.tuples(FLOATS, st.none() | st.sampled_from(["", "x"])), max_size=12)


@pytest.mark.spark
@pytest.mark.slow
def test_both_ways_give_the_same_number(spark: SparkSession) -> None:
    plain = repeated("mustBeLessThan: 49, unit: percent", MANY)
    scoped = repeated("mustBeLessThan: 49, unit: percent", MANY, scope="a > 0")

    @settings(max_examples=8, database=None)
    @given(ROWS, st.sampled_from([plain, scoped]))
    def the_same(rows: list[tuple[object, ...]], made: Contract) -> None:
        # Not cached: a filter on a cached column of floats loses NaN (Spark 3.5 and 4.0).
        frame = spark.createDataFrame(rows, "a double, b string").coalesce(1)

        sorted_, grouped = [
            one for one in check(Request(made, frame)).results if one.check == "duplicate_values"
        ]

        assert (grouped.observed, grouped.value) == (sorted_.observed, sorted_.value)

    the_same()


KEYS = contract("""
schema:
  - name: lines
    properties:
      - {name: id, logicalType: integer, unique: true}
      - {name: line, logicalType: integer}
    quality:
      - {metric: duplicateValues, mustBe: 0, arguments: {properties: [line, id]}}
      - metric: duplicateValues
        mustBe: 0
        arguments: {properties: [id, line]}
        customProperties: [{property: scope, vendor: dq, value: {where: line > 0}}]
""")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rows", "ends", "jobs"),
    [
        ([(1, 1), (2, 1), (None, 1), (None, 1)], ["pass", "pass", "pass"], 1),
        ([(1, 1), (1, 2), (1, 2)], ["fail", "fail", "fail"], 3),
        ([(1, 0), (1, 0), (2, 1)], ["fail", "fail", "pass"], 3),
    ],
    ids=["once", "twice", "twice outside of a scope"],
)
def test_a_key_that_holds_a_key_without_duplicates_takes_no_job(
    spark: SparkSession, rows: list[tuple[object, ...]], ends: list[str], jobs: int
) -> None:
    report = check(Request(KEYS, spark.createDataFrame(rows, "id int, line int")))

    found = [one for one in report.results if one.check in ("unique", "duplicate_values")]
    assert [str(one.status) for one in found] == ends
    assert report.passes == jobs
