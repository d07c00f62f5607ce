"""A text of a million characters costs one clause at most its own verdict, and never the session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality import sample
from dq.dataquality.check import check
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = r"""
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    quality:
      - {type: sql, query: "SELECT count(*) FROM {object} WHERE NOT a RLIKE '^(a|b)*$'", mustBe: 0}
      - {type: sql, query: "SELECT count(*) FROM {object} WHERE NOT c RLIKE '^([ab]-|[ab])*$'", mustBe: 0}
    properties:
      - {name: id, logicalType: integer, unique: true}
      - {name: a, logicalType: string, logicalTypeOptions: {pattern: '^(a|b)*$'}}
      - {name: b, logicalType: string, logicalTypeOptions: {pattern: '^[a-z]+(?:-[a-z]+)*$'}}
      - {name: c, logicalType: string, logicalTypeOptions: {pattern: '^([ab]-|[ab])*$', minLength: 1}}
"""
TOLD = "a text is too long for a pattern with a repeated group, which Java matches recursively"


def contract() -> Contract:
    made = parse(CONTRACT.encode(), "shop.odcs.yaml").contract
    assert isinstance(made, Contract)
    return made


@pytest.mark.spark
def test_it_costs_no_other_clause_and_the_session_works_afterwards(spark: SparkSession) -> None:
    rows = [
        (1, "ab" * 3_000, "a-" * 2_999 + "a", "ab" * 3_000),
        (2, "ab" * 500_000, "a-" * 499_999 + "a", "a"),
    ]

    report = check(
        Request(contract(), spark.createDataFrame(rows, "id bigint, a string, b string, c string"))
    )

    told = {(one.check, one.property): one.status for one in report.results if one.check != "columns"}
    assert told == {
        ("additional_columns", ""): "pass",
        ("sql_rule", ""): "error",
        ("unique", "id"): "pass",
        ("pattern", "a"): "pass",
        ("pattern", "b"): "pass",
        ("pattern", "c"): "error",
        ("lengths", "c"): "pass",
    }
    queries = [one for one in report.results if one.check == "sql_rule"]
    assert [(one.status, TOLD in one.message) for one in queries] == [("pass", False), ("error", True)]
    (message,) = [one.message for one in report.results if (one.check, one.property) == ("pattern", "c")]
    assert TOLD in message
    assert "abab" not in message
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_a_long_text_that_breaks_the_pattern_is_told_as_any_other(spark: SparkSession) -> None:
    rows = [(1, "ab" * 500_000 + "c", "a", "a"), (2, "a", "a", "a-" * 100)]

    report = check(
        Request(
            contract(),
            spark.createDataFrame(rows, "id bigint, a string, b string, c string"),
            rules=["pattern"],
        )
    )

    assert [(one.property, one.status, one.value) for one in report.results] == [
        ("a", "fail", 1.0),
        ("b", "pass", 0.0),
        ("c", "pass", 0.0),
    ]


def test_the_sample_says_what_spark_would(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text(f"id,a,b,c\n1,{'ab' * 3_000},a,{'ab' * 3_000}\n")
    made = contract()

    report = sample.check(made, made.objects[0], sample.read(file, made.objects[0]))

    told = {one.property: one.status for one in report.results if one.check == "pattern"}
    assert told == {"a": "pass", "b": "pass", "c": "error"}
