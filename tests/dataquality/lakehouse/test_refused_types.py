"""Types of Iceberg with which Spark opens no table: every command says so, and none passes its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from fakes.desk import Desk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS


@pytest.mark.parametrize("kind", ["time", "timestamp_ns"])
def test_import_tables_and_check_say_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "at", "type": kind, "required": False},
    ]
    table = {
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": f"{tmp_path}/t", "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 2,
        "next-row-id": 0,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
    }  # fmt: skip
    (tmp_path / "t/metadata").mkdir(parents=True)
    (tmp_path / "t/metadata/v1.metadata.json").write_text(json.dumps(table))
    (tmp_path / "t/metadata/version-hint.text").write_text("1")

    imported = desk.dq("import", "iceberg", f"{tmp_path}/t", "-o", "t.odcs.yaml")
    text = (tmp_path / "t.odcs.yaml").read_text()
    desk.write("t.odcs.yaml", text.replace("status: draft", "status: active"))
    tables = desk.dq("tables", "t.odcs.yaml")
    checked = desk.dq("check", "t.odcs.yaml", "--all")

    assert (imported.code, tables.code, checked.code) == (0, 3, 3), checked.all
    assert f"at: type {kind}; Spark cannot open a table with such a column" in imported.err
    assert f"column at has the type {kind}; Spark cannot open such a table" in tables.all
    assert "cannot be opened" in checked.all
    assert "Store the column as a type that Spark supports." in checked.all
