"""T51: frames of pandas, polars and Arrow without a Spark session, where PySpark cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import dq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    quality:
      - {metric: rowCount, mustBeGreaterThan: 4}
      - {metric: missingValues, arguments: {properties: [state]}, mustBeLessThan: 30, unit: percent}
      - {id: recent, metric: rowCount, mustBeGreaterThan: 0}
    properties:
      - {name: id, logicalType: integer, required: true, unique: true}
      - {name: state, logicalType: string, logicalTypeOptions: {pattern: '^[a-z]+$'}}
      - {name: mean, logicalType: number, logicalTypeOptions: {minimum: 1}}
      - {name: code, logicalType: string, classification: restricted, enum: [{value: a}]}
      - {name: place, logicalType: object, properties: [{name: zip, logicalType: string}]}
"""
ROWS = {
    # Columns are found whatever their case, as by Spark.
    "ID": [1, 2, 2, None],
    "state": ["open", "OPEN", None, "x"],
    "mean": [0.5, 1.5, float("nan"), 2.0],
    "code": ["a", "a", "secret", "a"],
    "place": [None, None, None, None],
}
PANDAS = 'pd.DataFrame(rows).astype({"ID": "Int64"})'
RELATED = """
  - name: customers
    properties: [{name: id, logicalType: integer, primaryKey: true}]
"""
SQL = "SELECT COUNT(*) FROM {object} o JOIN {object} p ON o.id = p.id"
QUERY = f"      - {{id: pairs, type: sql, query: '{SQL}', mustBe: 3}}\n    properties:\n      - {{name: id"


def alone(code: str, *arguments: object) -> Any:
    """What the code prints as JSON, in a process where PySpark cannot be imported."""
    head = (
        "import json, sys\n"
        "sys.modules['pyspark'] = None\n"
        "import pandas as pd, polars as pl, pyarrow as pa\n"
        "import dq\n"
        "contract, rows, *more = json.loads(sys.argv[1])\n"
    )
    text = json.dumps([CONTRACT, ROWS, *arguments])
    ran = subprocess.run(
        [sys.executable, "-c", head + code, text], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


OUTCOMES = (
    "[[row.clause, str(row.status), row.observed, row.value, row.message, str(row.answered_by)]"
    " for row in report.results]"
)


@pytest.mark.spark
def test_the_results_are_those_of_spark(spark: SparkSession) -> None:
    frames = (pd.DataFrame(ROWS).astype({"ID": "Int64"}), pa.table(ROWS))

    in_memory = alone(
        f"reports = [dq.check(contract, frame) for frame in ({PANDAS}, pa.table(rows))]\n"
        f"print(json.dumps([[{OUTCOMES}, [str(row) for row in report.coverage], report.rows]"
        " for report in reports]))"
    )

    assert in_memory == [
        [
            [
                [
                    row.clause,
                    str(row.status),
                    row.observed,
                    row.value,
                    row.message,
                    str(row.answered_by),
                ]
                for row in report.results
            ],
            [str(row) for row in report.coverage],
            report.rows,
        ]
        for report in (dq.check(CONTRACT, frame, spark=spark) for frame in frames)
    ]


FRAMES = (
    PANDAS,
    "pl.from_pandas(pd.DataFrame(rows))",
    "pl.from_pandas(pd.DataFrame(rows)).lazy()",
    "pa.table(rows)",
)


def test_failing_rows_are_shown_by_their_number_and_classified_values_masked() -> None:
    by_frame = alone(
        f"reports = [dq.check(contract, frame) for frame in ({', '.join(FRAMES)})]\n"
        "print(json.dumps([[[row.property, row.check, row.samples] for row in report.failed if row.samples]"
        " for report in reports]))"
    )

    assert by_frame == [
        [
            ["id", "required", [{"row": 4, "ID": None}]],
            ["id", "unique", [{"row": 3, "ID": number}]],
            ["state", "pattern", [{"row": 2, "state": "OPEN"}]],
            ["mean", "bounds", [{"row": 1, "mean": "0.5"}, *nan]],
            ["code", "enum", [{"row": 3, "code": "***"}]],
        ]
        # In pandas NaN is NULL; in Arrow it is a number that no bound includes.
        for number, nan in (("2", []), ("2.0", []), ("2.0", []), ("2", [{"row": 3, "mean": "nan"}]))
    ]


ERROR = """
try:
    {call}
except dq.DqError as error:
    print(json.dumps([error.message, error.details, error.hint]))
"""


def test_a_clause_that_needs_spark_is_named_and_nothing_is_tested() -> None:
    contract = CONTRACT.replace("    properties:\n      - {name: id", QUERY).replace(
        "{name: mean,", "{name: mean, relationships: [{to: customers.id}],"
    )

    message, details, hint = alone(
        ERROR.format(call=f"dq.check(more[0], {PANDAS}, 'orders')"), contract + RELATED
    )

    assert message == "2 of 16 clauses need a Spark session:"
    assert details == [
        "orders sql_rule: a query needs Spark",
        "orders.mean relationship: it looks up keys in another object",
    ]
    assert hint.startswith("Run pip install ")
    assert hint.endswith("then start a Spark session, or pass it: spark=SparkSession.builder.getOrCreate().")


NEEDS_SESSION = {
    f"dq.split(contract, {PANDAS})": "this pandas.DataFrame needs a Spark session.",
    f"dq.gate({PANDAS}, contract)": "this pandas.DataFrame needs a Spark session.",
    f"dq.check(contract, {PANDAS}, partitions=[{{'state': 'x'}}])": (
        "selecting partitions of a frame needs a Spark session."
    ),
    "dq.check(contract, pa.table({'id': pa.nulls(500_001)}))": (
        "a frame of more than 500,000 rows needs a Spark session."
    ),
    "dq.check(contract, [1])": "builtins.list is not a supported frame type.",
    "dq.check(contract, pd.DataFrame(index=range(3)))": "the frame has no columns.",
}


def test_what_needs_a_session_says_how_to_pass_one() -> None:
    calls = "".join(ERROR.format(call=call) for call in NEEDS_SESSION)
    errors = alone(
        f"errors = []\n{calls.replace('print(json.dumps(', 'errors.append((')}\nprint(json.dumps(errors))"
    )

    assert [message for message, _, _ in errors] == [*NEEDS_SESSION.values()]
    for message, _, hint in errors:
        assert ("SparkSession.builder.getOrCreate()" in hint) is ("session" in message)


def test_a_broken_frame_may_not_be_published() -> None:
    message = alone(
        f"report = dq.check(contract, {PANDAS})\n"
        "try:\n    report.raise_for_status()\nexcept dq.Violated as error:\n    print(json.dumps(str(error)))"
    )

    assert "orders.id: 1 of 4 rows are NULL" in message
