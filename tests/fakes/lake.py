"""A small lake of real Parquet with its contract, written without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from os import utime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: "${DQ_LAKE:-lake}", format: parquet}
schema:
  - name: orders
    properties:
      - name: day
        logicalType: date
        physicalType: date
        partitioned: true
        partitionKeyPosition: 1
        primaryKey: true
        primaryKeyPosition: 1
      - {name: id, logicalType: integer, physicalType: bigint, primaryKey: true, primaryKeyPosition: 2}
      - {name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {minimum: 0}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {partition: {day: "{due - 1d:%F}"}}
"""
DAYS = {"2026-05-10": [1, 2, 3], "2026-05-11": [4, 4, None]}


def write_days(folder: Path) -> None:
    """The contract, and two days that arrived at five in the morning after: one good, one broken."""
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    for day, ids in DAYS.items():
        partition = folder / "lake" / f"day={day}"
        partition.mkdir(parents=True)
        table = pa.table({"id": pa.array(ids, pa.int64()), "amount": [1.0] * len(ids)})
        pq.write_table(table, partition / "part-0.parquet")
        marker = partition / "_SUCCESS"
        marker.touch()
        arrived = datetime.fromisoformat(day).replace(hour=5, tzinfo=UTC).timestamp() + 86_400
        utime(marker, (arrived, arrived))
