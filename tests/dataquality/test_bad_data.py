"""One thing is wrong with the data or the contract: its clause says so, and all others keep their answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true, unique: true}
      - name: price
        logicalType: number
        logicalTypeOptions: {minimum: 0}
        quality: [{metric: nullValues, mustBe: 0, unit: percent}]
      - {name: at, logicalType: timestamp}
      - {name: tags, logicalType: array, items: {logicalType: string, logicalTypeOptions: {minLength: 1}}}
    quality:
      - {metric: rowCount, mustBe: 2}
      - metric: rowCount
        mustBe: 2
        customProperties: [{property: scope, vendor: dq, value: {where: %s}}]
      - {type: sql, query: "SELECT max(id) FROM {object}", mustBe: 2}
slaProperties:
  - {property: latency, value: 4, unit: h, element: orders.at}
"""
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
# The columns of two good rows.
GOOD = {
    "id": "id",
    "price": "IF(id = 1, 1.5D, 0D)",
    "at": "IF(id = 1, TIMESTAMP'2026-11-21 09:00:00Z', TIMESTAMP'2026-11-20 09:00:00Z')",
    "tags": "IF(id = 1, array('a'), array())",
}


def rows(**other: str | None) -> dict[str, str]:
    """The good columns with others in their place; None leaves one out."""
    return {name: value for name, value in {**GOOD, **other}.items() if value is not None}


EMPTY = rows()
# The end of every clause on good data, by check and property.
ENDS = {
    "columns id": "pass",
    "columns price": "pass",
    "columns at": "pass",
    "columns tags": "pass",
    "columns tags[]": "pass",
    "additional_columns ": "pass",
    "required id": "pass",
    "unique id": "pass",
    "bounds price": "pass",
    "null_values price": "pass",
    "lengths tags[]": "pass",
    "row_count ": "pass",
    "row_count  where": "pass",
    "sql_rule ": "pass",
    "latency at": "pass",
}
# What is wrong -> (the predicate, the rows, what ends otherwise, and what one of its messages says).
CASES = {
    "nothing": ("id > 0", rows(), {}, ""),
    "a broken predicate": ("id >", rows(), {"row_count  where": "error"}, "its scope: where is refused"),
    "a predicate on a missing column": (
        "no_such > 0",
        rows(),
        {"row_count  where": "error"},
        "its scope: column 'no_such' is missing",
    ),
    "an overflow": (
        "id + 9223372036854775806 > 0",
        rows(),
        {"row_count  where": "error"},
        "ARITHMETIC_OVERFLOW",
    ),
    "a division by zero": ("id / (id - 1) > 0", rows(), {"row_count  where": "error"}, "DIVIDE_BY_ZERO"),
    "a refused function": ("reflect(id) = 1", rows(), {"row_count  where": "error"}, "not allowed"),
    "a missing column": (
        "id > 0",
        rows(price=None),
        {"columns price": "fail", "bounds price": "error", "null_values price": "error"},
        "column 'price' is missing",
    ),
    "a missing key": (
        "price >= 0",
        rows(id=None),
        {"columns id": "fail", "required id": "error", "unique id": "error", "sql_rule ": "error"},
        "column 'id' is missing",
    ),
    "a wrong type": (
        "id > 0",
        rows(price="'1.5'"),
        {"columns price": "fail", "bounds price": "error"},
        "type string cannot hold number",
    ),
    "a text for a time": (
        "id > 0",
        rows(at="'2026-11-21'"),
        {"columns at": "fail", "latency at": "error"},
        "column 'at' is string",
    ),
    "a text for an array": (
        "id > 0",
        rows(tags="'a'"),
        {"columns tags": "fail", "columns tags[]": "skipped", "lengths tags[]": "error"},
        "type string cannot hold array",
    ),
    "a column more": (
        "id > 0",
        rows(more="1"),
        {"additional_columns ": "fail"},
        "not in the contract: more",
    ),
    "an empty table": (
        "id > 0",
        EMPTY,
        {
            "row_count ": "fail",
            "row_count  where": "fail",
            "null_values price": "skipped",
            "sql_rule ": "error",
            "latency at": "fail",
        },
        "the table is empty, so no data is fresh",
    ),
    "nothing but NULL": (
        "id IS NULL",
        rows(
            id="CAST(NULL AS BIGINT)",
            price="CAST(NULL AS DOUBLE)",
            at="CAST(NULL AS TIMESTAMP)",
            tags="CAST(NULL AS ARRAY<STRING>)",
        ),
        {
            "required id": "fail",
            "null_values price": "fail",
            "sql_rule ": "error",
            "latency at": "fail",
        },
        "no row has a value",
    ),
    "a value that cannot be read": (
        "id > 0",
        rows(price="CAST(IF(id = 1, 'dear', '1') AS DOUBLE)"),
        {"bounds price": "error", "null_values price": "error"},
        "CAST_INVALID_INPUT",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def ansi(spark: SparkSession) -> Iterator[None]:
    """As Spark 4 has it by default, on 3.5 too."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "false")


@pytest.mark.parametrize(("where", "columns", "otherwise", "said"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_told_by_its_clause_alone(
    spark: SparkSession, where: str, columns: dict[str, str], otherwise: dict[str, str], said: str
) -> None:
    contract = parse((CONTRACT % where).encode(), "shop.odcs.yaml").contract
    assert contract is not None

    frame = spark.range(1, 1 if columns is EMPTY else 3).selectExpr(
        *(f"{value} AS {name}" for name, value in columns.items())
    )

    results = check(Request(contract, frame, now=NOW)).results

    ends = {
        f"{one.check} {one.property}{' where' if one.clause.endswith('quality[1]') else ''}": one.status.value
        for one in results
    }
    assert ends == {**ENDS, **otherwise}, "\n".join(one.message for one in results)
    odd = [one.message for one in results if one.status != "pass"]
    assert any(said in message for message in odd) or not otherwise
    assert all("\n" not in message and "Exception" not in message for message in odd)
