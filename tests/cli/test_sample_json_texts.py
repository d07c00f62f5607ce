"""JSON values in a column of texts: a sample reads the texts that Spark reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.desk import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: {lake}, format: json}}]
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint}}
      - {{name: note, logicalType: string, enum: [{{value: none of these}}]}}
"""
VALUES = [
    "1.50", "1e3", "1e7", "1E+2", "0.001", "0.0001", "123456789.5",
    "-0", "-0.0", "1.0e-7", "3.0", "1234567.0",
    "9007199254740993.0", "1e22", "0.1", "12345678901234567890", "true", '{"b" : "x y", "a":[ ], "n": null}',
    '[1.0, 2, {"z": 1.10, "a": "x/é"}]', '"1.50"',
]  # fmt: skip


@pytest.mark.spark
def test_t27_a_sample_has_the_texts_of_numbers_that_spark_has(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(tmp_path, monkeypatch, capfd)
    lines = [f'{{"id": {number}, "note": {value}}}' for number, value in enumerate(VALUES)]
    file = desk.write("lake/a.jsonl", "\n".join(lines))
    desk.write("orders.odcs.yaml", CONTRACT.format(lake=tmp_path / "lake"))

    def texts(*command: str) -> set[str]:
        (report,) = json.loads(desk.dq(*command, "--format", "json").out)
        return {
            row["note"]
            for result in report["results"]
            if result["check"] == "enum"
            for row in result["samples"]
        }

    sample = texts("sample", "orders.odcs.yaml", str(file))

    assert len(sample) == len(VALUES)
    assert sample == texts("check", "orders.odcs.yaml", "--all", "--channel", "console")
