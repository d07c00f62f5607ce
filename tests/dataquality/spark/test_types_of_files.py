"""Files of one table whose column types differ, under rules whose arguments are lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: '{lake}', format: parquet}}]
schema:
  - name: orders
    quality: [{{metric: rowCount, mustBeBetween: [1, 5]}}]
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        quality:
          - {{metric: nullValues, mustBeBetween: [0, 5]}}
          - {{type: custom, engine: dq, implementation: {{check: mean, mustBeBetween: [1, 40]}}}}
          - {{type: custom, engine: dq, implementation: {{check: mean, mustBeBetween: [7, 40]}}}}
"""


@pytest.mark.spark
def test_t23_a_rule_with_a_list_is_judged_where_the_types_of_files_differ(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([3], pa.int64())}), tmp_path / "b.parquet")
    contract = parse(CONTRACT.format(lake=tmp_path).encode(), "orders.odcs.yaml").contract
    assert contract is not None

    report = check(Request(contract, locate(contract, contract.objects[0], None, anywhere()), spark=spark))

    (columns,) = (result for result in report.results if result.check == "columns")
    others = [(result.check, result.status.value) for result in report.results if result is not columns]
    assert columns.message.endswith("in 1 of 2 files")
    assert others == [
        ("row_count", "pass"), ("additional_columns", "pass"),
        ("null_values", "pass"), ("mean", "pass"), ("mean", "fail"),
    ]  # fmt: skip
