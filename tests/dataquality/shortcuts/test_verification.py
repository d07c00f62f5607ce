"""Statistics that lie, and what becomes of them: no proof, or a lie that the verification tells."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer as footer
from fakes.reach import anywhere

import dq
from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE
from dq.dataquality.check import check
from dq.dataquality.model.metric import Tally
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${LAKE}', format: parquet}]
schema:
  - name: orders
"""
_NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def promised(column: str) -> Contract:
    parsed = parse((HEAD + f"    properties: [{{name: v, {column}}}]\n").encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def checked(spark: SparkSession, contract: Contract, lake: Path, **more: Any) -> Report:
    data = locate(contract, contract.objects[0], None, anywhere(LAKE=str(lake)))
    return check(Request(contract, data, spark=spark, now=_NOW, **more))


def whole(value: int) -> footer.Node:
    return footer.raw(struct.pack("<q", value))


Told = dict[int, footer.Node]


def every(change: Callable[[Told], None]) -> Callable[[Told], None]:
    """The change to the statistics of the first column, in every row group."""

    def changed(fields: Told) -> None:
        for told in footer.statistics(fields):
            change(told)

    return changed


def bounds(low: footer.Node, high: footer.Node) -> Callable[[Told], None]:
    def change(told: Told) -> None:
        told |= {footer.MIN: low, footer.OLD_MIN: low, footer.MAX: high, footer.OLD_MAX: high}

    return every(change)


def without_groups(fields: Told) -> None:
    del footer.chunks(fields)[0][footer.STATISTICS]


def given_up(fields: Told) -> None:
    """The first row group's dictionary for all of them: pages of the others are said to use it, too."""
    for chunk in footer.chunks(fields):
        kind, (inner, pages) = chunk[footer.ENCODING_STATS]
        for page in pages:
            page[2] = (5, 2)
        chunk[footer.ENCODING_STATS] = (kind, (inner, pages))


_INTEGERS = pa.array([1, 5, 99, None], pa.int64())
_MAXIMUM = "logicalType: integer, logicalTypeOptions: {maximum: 9}"
_NAN = float("nan")
_DECIMAL = "logicalType: number, physicalType: 'decimal(9,2)', logicalTypeOptions: {maximum: 9}"
_PRICES = pa.array([Decimal("1.00"), Decimal("99.99")], pa.decimal128(9, 2))
_FEW = ["a"] * 200 + ["b"] * 200 + [f"x{number}" for number in range(200)]
# What the column promises, its values, the lie, how the file is written, and what becomes of the lie.
REFUSED, CAUGHT = "proof refused", "caught"
LIARS: dict[str, tuple[str, pa.Array, Callable[[Told], None], dict[str, Any], str]] = {
    "too narrow bounds, in order": (_MAXIMUM, _INTEGERS, bounds(whole(1), whole(5)), {}, CAUGHT),
    "swapped bounds": (_MAXIMUM, _INTEGERS, bounds(whole(9), whole(1)), {}, REFUSED),
    "no NULL, though there is one": (
        "logicalType: integer, required: true",
        _INTEGERS,
        every(lambda told: told.update({footer.NULLS: footer.whole(0)})),
        {},
        CAUGHT,
    ),
    "fewer than no NULL": (
        "logicalType: integer, required: true",
        _INTEGERS,
        every(lambda told: told.update({footer.NULLS: footer.whole(-1)})),
        {},
        REFUSED,
    ),
    "a row group without statistics": (
        _MAXIMUM,
        pa.array([99, 1, 2, 3], pa.int64()),
        without_groups,
        {"row_group_size": 2},
        REFUSED,
    ),
    "bounds of a decimal, cut": (
        _DECIMAL,
        _PRICES,
        bounds(footer.raw(struct.pack("<i", 100)), footer.raw(struct.pack("<i", 899))),
        {"store_decimal_as_integer": True},
        CAUGHT,
    ),
    "bounds of a decimal in bytes, cut": (
        _DECIMAL,
        _PRICES,
        bounds(footer.raw(b"\x00"), footer.raw(b"\x01")),
        {},
        REFUSED,
    ),
    "bounds of texts, cut": (
        "logicalType: string, enum: [{value: aa}]",
        pa.array(["aa", "ab"]),
        bounds(footer.raw(b"aa"), footer.raw(b"aa")),
        {"use_dictionary": False},
        REFUSED,
    ),
    "a dictionary that misses values": (
        "logicalType: string, logicalTypeOptions: {maxLength: 1}",
        pa.array(_FEW),
        given_up,
        {"dictionary_pagesize_limit": 8, "data_page_size": 8, "write_batch_size": 200},
        CAUGHT,
    ),
    "NaN as a bound": (
        "logicalType: number, logicalTypeOptions: {maximum: 9}",
        pa.array([1.0, 99.0, _NAN]),
        bounds(footer.raw(struct.pack("<d", _NAN)), footer.raw(struct.pack("<d", _NAN))),
        {},
        REFUSED,
    ),
    "NaN left out of the bounds": (
        "logicalType: number, logicalTypeOptions: {maximum: 9}",
        pa.array([1.0, 2.0, _NAN]),
        lambda fields: None,
        {},
        REFUSED,
    ),
    "another number of rows than its row groups": (
        "logicalType: integer, logicalTypeOptions: {maximum: 9}",
        _INTEGERS,
        lambda fields: fields.update({footer.ROWS: footer.whole(9)}),
        {},
        REFUSED,
    ),
}


@pytest.mark.parametrize(("column", "values", "lie", "options", "fate"), LIARS.values(), ids=LIARS)
def test_a_lie_proves_nothing_or_is_caught(
    spark: SparkSession,
    tmp_path: Path,
    column: str,
    values: pa.Array,
    lie: Callable[[Told], None],
    options: dict[str, Any],
    fate: str,
) -> None:
    pq.write_table(pa.table({"v": values}), tmp_path / "liar.parquet", **options)
    pq.write_table(pa.table({"v": values.slice(0, 1)}), tmp_path / "honest.parquet", **options)
    footer.rewritten(tmp_path / "liar.parquet", lie)
    contract = promised(column)

    scanned = checked(spark, contract, tmp_path, optimizations=NONE)
    found = checked(spark, contract, tmp_path, verify_statistics=1.0)

    # Whatever the statistics say, the verdicts are those of the rows.
    assert [one for one in found.results if one.check != "statistics"] == list(scanned.results)
    assert scanned.failed
    assert found.verification is not None
    assert bool(found.verification.disagreements) is (fate == CAUGHT)
    if fate == CAUGHT:
        (said,) = found.verification.disagreements
        assert [file.path.rpartition("/")[2] for file in said.files] == ["liar.parquet"]
        assert found.exit_code == 3
        assert found.from_statistics == 0
    else:
        assert found.exit_code == 1


def honest(lake: Path, rows: int = 3) -> Path:
    values = pa.array(range(1, rows + 1), pa.int64())
    pq.write_table(pa.table({"v": values}), lake / "honest.parquet")
    return lake


def test_statistics_that_hold_are_counted_again_and_still_prove(spark: SparkSession, tmp_path: Path) -> None:
    contract = promised("logicalType: integer, required: true, logicalTypeOptions: {maximum: 9, minimum: 1}")
    lake = honest(tmp_path)

    plain = checked(spark, contract, lake)
    verified = checked(spark, contract, lake, verify_statistics=1.0)

    assert plain.verification is None
    assert verified.results == plain.results
    assert (verified.from_statistics, verified.passes, plain.passes) == (plain.from_statistics, 1, 0)
    assert verified.verification is not None
    # The number of rows, the NULLs, and a count beyond each bound.
    assert verified.verification.tally == Tally(proofs=4, scans=4, disagreements=0)


def test_a_share_is_drawn_anew_with_each_time_and_the_same_at_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    contract = promised("logicalType: integer, required: true, logicalTypeOptions: {maximum: 9, minimum: 1}")
    data = locate(contract, contract.objects[0], None, anywhere(LAKE=str(honest(tmp_path))))

    def scans(hour: int) -> int:
        at = _NOW + dt.timedelta(hours=hour)
        report = check(Request(contract, data, spark=spark, now=at, verify_statistics=0.5))
        assert report.verification is not None
        return report.verification.tally.scans

    seen = [scans(hour) for hour in range(8)]

    assert scans(0) == seen[0]
    assert len(set(seen)) > 1
    assert 4 < sum(seen) < 28


def test_one_lie_costs_all_proofs_of_the_run(spark: SparkSession, tmp_path: Path) -> None:
    contract = promised("logicalType: integer, required: true, logicalTypeOptions: {maximum: 9, minimum: 1}")
    pq.write_table(pa.table({"v": _INTEGERS}), tmp_path / "liar.parquet")

    def lie(fields: Told) -> None:
        bounds(whole(1), whole(5))(fields)
        every(lambda told: told.update({footer.NULLS: footer.whole(0)}))(fields)

    footer.rewritten(tmp_path / "liar.parquet", lie)
    caught = [
        report
        for minute in range(12)
        if (
            report := checked_at(spark, contract, tmp_path, _NOW + dt.timedelta(minutes=minute), 0.3)
        ).verification.disagreements  # type: ignore[union-attr]
    ]

    assert caught
    for report in caught:
        assert {one.check for one in report.failed} == {"required", "bounds"}
        assert report.from_statistics == 0


def checked_at(spark: SparkSession, contract: Contract, lake: Path, now: dt.datetime, share: float) -> Report:
    data = locate(contract, contract.objects[0], None, anywhere(LAKE=str(lake)))
    return check(Request(contract, data, spark=spark, now=now, verify_statistics=share))


def test_a_lie_is_an_error_of_its_own_with_file_and_writer(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": _INTEGERS}), tmp_path / "a liar.parquet")
    footer.rewritten(tmp_path / "a liar.parquet", bounds(whole(1), whole(5)))
    frame = spark.read.parquet(str(tmp_path))
    text = HEAD.replace("${LAKE}", "lake") + f"    properties: [{{name: v, {_MAXIMUM}}}]\n"

    report = dq.check(text, frame, verify_statistics=1)

    error = next(one for one in report.results if one.check == "statistics")
    assert (error.status, error.observed, error.allowed) == (Status.ERROR, "1", "0")
    assert "a%20liar.parquet (parquet-cpp-arrow version" in error.message
    assert report.as_dict()["verification"]["tally"] == {"proofs": 2, "scans": 2, "disagreements": 1}
    with pytest.raises(ReadError, match="statistics are wrong"):
        report.raise_for_status()


def test_rows_are_counted_in_the_partitions_that_were_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    body = """
    quality: [{metric: rowCount, mustBe: 2}]
    properties:
      - {name: hour, logicalType: integer, partitioned: true, partitionKeyPosition: 1, required: true}
      - {name: v, logicalType: integer, logicalTypeOptions: {minimum: 0}}
"""
    parsed = parse((HEAD + body).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None
    frame = spark.createDataFrame([(1, 5), (1, 6), (2, -1)], "hour int, v int")
    frame.write.partitionBy("hour").parquet(str(tmp_path / "lake"))

    report = checked(
        spark, parsed.contract, tmp_path / "lake", partitions=[{"hour": "1"}], verify_statistics=1.0
    )

    assert report.exit_code == 0
    assert report.verification is not None
    assert report.verification.tally.scans == report.verification.tally.proofs > 2


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_what_is_no_share_is_refused(spark: SparkSession, tmp_path: Path, share: float) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 1"):
        checked(spark, promised(_MAXIMUM), honest(tmp_path), verify_statistics=share)
