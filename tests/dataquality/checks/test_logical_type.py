"""A logical type that the column's type does not imply is tested on the values, by every way to the data."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dq
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality import sample
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import EnforcementState, clause_coverage
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.request import Request
from dq.operations.gate import unenforced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = (
    "{name: amount, logicalType: integer, physicalType: string}",
    "{name: day, logicalType: date, physicalType: varchar(40)}",
    "{name: flag, logicalType: boolean, physicalType: string}",
    "{name: at, logicalType: timestamp, physicalType: string}",
    "{name: price, logicalType: number, physicalType: string}",
    "{name: opens, logicalType: time, physicalType: string}",
)
GOOD = ("12", "2024-02-29", "true", "2024-02-29T12:00:00Z", "1.5", "09:30")
BAD = ("twelve", "2023-02-29", "maybe", "yesterday", "1,5", "early")
COLUMNS = ("amount", "day", "flag", "at", "price", "opens")


def contract(*properties: str, version: str = "3.2.0") -> Contract:
    text = (
        f"apiVersion: v{version}\nkind: DataContract\nid: shop\nversion: 1.0.0\nschema:\n  - name: orders\n"
    )
    text += "    properties:\n" + "".join(f"      - {one}\n" for one in properties)
    made = parse(text.encode(), "shop.odcs.yaml").contract
    assert isinstance(made, Contract)
    return made


def states(made: Contract) -> dict[str, tuple[str, str]]:
    one = made.objects[0]
    found = clause_coverage(made, one, clauses_of(made, one, built_in()))
    return {each.property: (each.state, each.reason) for each in found if each.clause == "logicalType"}


@pytest.mark.spark
def test_spark_fails_each_logical_type_with_the_rows_that_are_none(spark: SparkSession) -> None:
    frame = spark.createDataFrame([GOOD, BAD, (None,) * 6], ", ".join(f"{one} string" for one in COLUMNS))

    report = check(Request(contract(*TYPES), frame, rules=["logical_type"]))

    assert [(one.property, one.status, one.observed, one.samples) for one in report.results] == [
        (name, "fail", "1 of 3 rows", ({name: bad},)) for name, bad in zip(COLUMNS, BAD, strict=True)
    ]


def test_the_sample_says_the_same_without_spark(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    quoted = [",".join(f'"{value}"' for value in row) for row in (GOOD, BAD)]
    file.write_text("\n".join([",".join(COLUMNS), *quoted]) + "\n")

    made = contract(*TYPES)
    one = made.objects[0]
    report = sample.check(made, one, sample.read(file, one))

    told = {one.property: (one.status, one.observed) for one in report.results if one.check == "logical_type"}
    assert told == dict.fromkeys(COLUMNS, ("fail", "1 of 2 rows"))


def test_pandera_says_the_same() -> None:
    import pandas as pd
    from pandera.errors import SchemaErrors

    schema = dq.schema(contract(*TYPES), backend="pandas")

    assert len(schema.validate(pd.DataFrame([GOOD], columns=list(COLUMNS)))) == 1
    with pytest.raises(SchemaErrors) as raised:
        schema.validate(pd.DataFrame([GOOD, BAD], columns=list(COLUMNS)), lazy=True)
    broken = {str(one).partition(":")[0] for one in raised.value.failure_cases["check"]}
    assert broken == {f"orders.{name}" for name in COLUMNS}


def test_explain_names_what_tests_it() -> None:
    made = contract(
        *TYPES,
        "{name: id, logicalType: integer, physicalType: bigint}",
        "{name: due, logicalType: date, physicalType: string, logicalTypeOptions: {format: dd.MM.yyyy}}",
        "{name: key, logicalType: date, physicalType: bigint}",
        "{name: body, logicalType: object, physicalType: string}",
        "{name: week, logicalType: date, physicalType: string, logicalTypeOptions: {format: YYYY}}",
    )

    told = states(made)

    assert {told.pop(name) for name in COLUMNS} == {(EnforcementState.ENFORCED, "logical_type")}
    assert told["id"] == (EnforcementState.ENFORCED, "columns")
    assert told["due"] == (EnforcementState.ENFORCED, "format")
    assert {
        name: state for name, (state, _) in told.items() if state is EnforcementState.NOT_EVALUATED
    } == dict.fromkeys(("key", "body", "week"), EnforcementState.NOT_EVALUATED)


def test_the_gate_says_which_logical_type_nobody_tests() -> None:
    made = contract("{name: key, logicalType: date, physicalType: bigint}")

    assert [(one.at.line, one.message) for one in unenforced(made)] == [
        (8, "logicalType is not evaluated: values of bigint cannot be tested for the logical type"
            " date.")
    ]  # fmt: skip


def test_before_timestamps_had_a_name_a_date_may_be_one() -> None:
    held = "{name: at, logicalType: date, physicalType: timestamp}"

    assert states(contract(held, version="3.0.2"))["at"] == (EnforcementState.ENFORCED, "columns")
    assert states(contract(held))["at"][0] is EnforcementState.NOT_EVALUATED


@pytest.mark.parametrize(("api", "status"), [("v3.0.2", "pass"), ("v3.1.0", "fail")])
def test_t64_a_table_of_timestamps_keeps_the_dates_of_3_0(tmp_path: Path, api: str, status: str) -> None:
    at = pa.array([dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    (tmp_path / "orders").mkdir()
    pq.write_table(pa.table({"at": at}), tmp_path / "orders" / "a.parquet")
    file = tmp_path / "shop.odcs.yaml"
    file.write_text(
        f"apiVersion: {api}\nkind: DataContract\nid: shop\nversion: 1.0.0\nstatus: active\n"
        f"servers: [{{server: lake, type: local, path: '{tmp_path}/orders', format: parquet}}]\n"
        "schema: [{name: orders, properties: [{name: at, logicalType: date}]}]\n"
    )

    report = dq.check(file)

    (columns,) = (one for one in report.results if one.check == "columns")
    assert columns.status == status


@pytest.mark.spark
def test_a_column_of_another_type_is_told_once_as_such_and_tests_no_text(spark: SparkSession) -> None:
    report = check(Request(contract(TYPES[0]), spark.range(2).toDF("amount")))

    told = {one.check: one.status for one in report.results}
    assert told["columns"] == "fail"
    assert told["logical_type"] == "error"
