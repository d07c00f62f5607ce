"""Manifests of Iceberg that lie: no proof, or a lie that the verification tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes import avro_file, lakehouse
from fakes.reach import anywhere

from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${PLACE}', format: iceberg}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeLessThan: 3}]
    properties:
      - {name: v, logicalType: integer, required: true, logicalTypeOptions: {maximum: 9}}
      - {name: price, logicalType: number, physicalType: 'decimal(9,2)', logicalTypeOptions: {maximum: 9}}
      - {name: wide, logicalType: number, physicalType: 'decimal(30,2)', logicalTypeOptions: {maximum: 9}}
      - {name: state, logicalType: string, enum: [{value: aa}]}
      - {name: share, logicalType: number, logicalTypeOptions: {maximum: 9}}
"""
# Every promise is broken by the last of three rows.
ROWS = """
    SELECT /*+ COALESCE(1) */ * FROM VALUES
    (1, 1.00BD, 1.00BD, 'aa', 1D), (5, 5.00BD, 5.00BD, 'aa', 5D), (NULL, 99.00BD, 99.00BD, 'ab', 99D)
"""
CASTS = "v, CAST(price AS DECIMAL(9,2)) price, CAST(wide AS DECIMAL(30,2)) wide, state, share"


def both(spark: SparkSession, path: str) -> tuple[Report, Report]:
    """The report of a scan, and one with all of what statistics prove verified."""
    parsed = parse(HEAD.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(PLACE=path))
    scanned = check(Request(parsed.contract, data, spark=spark, optimizations=NONE))
    found = check(Request(parsed.contract, data, spark=spark, verify_statistics=1.0))
    return scanned, found


def caught(spark: SparkSession, path: str) -> set[str]:
    """The columns ("": the table) of which statistics were caught, after all verdicts were those of rows."""
    scanned, found = both(spark, path)
    assert [one for one in found.results if one.check != "statistics"] == list(scanned.results)
    assert len(scanned.failed) == 6
    assert found.verification is not None
    lies = [one for one in found.results if one.check == "statistics"]
    assert len(lies) == len(found.verification.disagreements)
    assert all(one.files and one.files[0].writer for one in found.verification.disagreements)
    assert found.exit_code == (3 if lies else 1)
    return {one.property for one in lies}


Entry = dict[str, Any]
# The ids of the columns, in their order.
V, PRICE, WIDE, STATE, SHARE = range(1, 6)


def put(entry: Entry, name: str, column: int, value: object) -> None:
    """Another value for a column in one of the maps of a manifest's entry."""
    # The map is one of a union with NULL.
    for pair in entry["data_file"][name][1]:
        if pair["key"] == column:
            pair["value"] = value


def without(entry: Entry) -> None:
    for name in ("lower_bounds", "upper_bounds", "null_value_counts", "value_counts"):
        entry["data_file"][name] = (1, [])


def bounded(entry: Entry) -> None:
    """Too narrow in order, cut, cut to the same, and NaN; and a NULL that is not counted."""
    put(entry, "upper_bounds", PRICE, (500).to_bytes(2, "big"))
    put(entry, "upper_bounds", WIDE, (800).to_bytes(2, "big"))
    put(entry, "upper_bounds", STATE, b"aa")
    put(entry, "upper_bounds", SHARE, b"\x00\x00\x00\x00\x00\x00\xf8\x7f")
    put(entry, "null_value_counts", V, 0)


def swapped(entry: Entry) -> None:
    put(entry, "lower_bounds", PRICE, (900).to_bytes(2, "big"))
    put(entry, "upper_bounds", PRICE, (100).to_bytes(2, "big"))
    put(entry, "upper_bounds", STATE, b"ac")


LIES: dict[str, tuple[Callable[[Entry], object], set[str]]] = {
    "bounds in order, and NULLs": (bounded, {"price", "wide", "state", "v"}),
    "swapped bounds, and a text that was cut": (swapped, set()),
    "no statistics": (without, set()),
    "fewer rows": (lambda entry: entry["data_file"].update(record_count=2), {""}),
}


@pytest.mark.parametrize(("lie", "told"), LIES.values(), ids=LIES)
def test_a_lie_in_a_manifest_of_iceberg_proves_nothing_or_is_caught(
    spark: SparkSession, tmp_path: Path, lie: Callable[[Entry], object], told: set[str]
) -> None:
    name = f"{lakehouse.CATALOG}.shop.liar{tmp_path.name.replace('-', '_')}"
    spark.sql(
        f"CREATE TABLE {name} (v INT, price DECIMAL(9,2), wide DECIMAL(30,2), state STRING, share DOUBLE)"
        " USING iceberg"
    )
    frame = spark.sql(ROWS).toDF("v", "price", "wide", "state", "share").selectExpr(*CASTS.split(", "))
    frame.writeTo(name).append()
    home = Path(str(lakehouse.loaded(spark, name).location()))
    (manifest,) = (path for path in (home / "metadata").glob("*-m0.avro"))
    avro_file.rewritten(manifest, lie)
    (listed,) = (home / "metadata").glob("snap-*.avro")
    avro_file.rewritten(listed, lambda one: one.update(manifest_length=manifest.stat().st_size))
    spark.sql(f"REFRESH TABLE {name}")

    assert caught(spark, str(home)) == told
