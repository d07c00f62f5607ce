"""`dq.publish` in a pipeline, after its gate."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dq
from dq.contracts.outcome import DeliveryError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAY = {"day": date(2026, 5, 10)}


@pytest.fixture
def lake(dq, folder: Path) -> Path:  # type: ignore[no-untyped-def]
    assert dq("register", "--apply").code == 0
    place = folder / "lake" / "day=2026-05-10"
    place.mkdir(parents=True)
    return place


def heard(folder: Path) -> list[dict[str, object]]:
    lines = (folder / ".dq" / "published.jsonl").read_text().splitlines()
    return [json.loads(line)["data"] for line in lines]


@pytest.mark.spark
def test_rows_are_those_that_the_gate_counted(spark: SparkSession, lake: Path, folder: Path) -> None:
    frame = spark.createDataFrame([(date(2026, 5, 10), n) for n in range(3)], "day date, id bigint")

    report = dq.check("orders.odcs.yaml", frame)
    done = dq.publish("orders.odcs.yaml", partition=DAY, report=report)

    assert report.rows == 3
    assert done.published.steps == ("partition", "marker", "receipt", "notify")
    assert [(one["rows"], one["revision"]) for one in heard(folder)] == [(3, 1)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"rows": 4}, "rows is 4, but the report counted 3"),
        ({"rows_by": {"id": {0: 1, 1: 1}}}, "The counts by id add up to 2, but the delivery has 3 rows"),
        ({"rows_by": {"id": {0: 1.5}}}, "1.5 is not a number of rows"),
        ({"rows_by": {"id": {0: 1, "0": 1}}}, "the group '0' twice"),
    ],
)
def test_other_counts_than_the_report_are_refused(
    spark: SparkSession, lake: Path, arguments: dict[str, Any], problem: str
) -> None:
    frame = spark.createDataFrame([(date(2026, 5, 10), n) for n in range(3)], "day date, id bigint")
    report = dq.check("orders.odcs.yaml", frame, partitions=[{"day": "2026-05-10"}])

    with pytest.raises(UsageError, match=problem):
        dq.publish("orders.odcs.yaml", partition=DAY, report=report, **arguments)


def test_groups_are_texts_and_null(lake: Path) -> None:
    counts = {1: np.int64(2), float("nan"): 1}
    done = dq.publish("orders.odcs.yaml", partition=DAY, rows_by={"id": counts})

    assert done.event.publication.rows == 3
    assert done.as_dict()["rows_by"] == {"id": [{"value": "1", "rows": 2}, {"value": None, "rows": 1}]}


@pytest.mark.spark
def test_rows_of_one_partition_of_a_table_are_its_own(spark: SparkSession, lake: Path, folder: Path) -> None:
    days = [date(2026, 5, 10), date(2026, 5, 10), date(2026, 5, 11)]
    frame = spark.createDataFrame([(day, n) for n, day in enumerate(days)], "day date, id bigint")

    report = dq.check("orders.odcs.yaml", frame, partitions=[{"day": "2026-05-10"}])
    dq.publish("orders.odcs.yaml", partition=DAY, report=report)

    assert heard(folder)[0]["rows"] == 2
    with pytest.raises(UsageError, match="The report is for the partitions"):
        dq.publish("orders.odcs.yaml", partition={"day": "2026-05-11"}, report=report)


@pytest.mark.spark
def test_what_broke_its_contract_is_not_published(spark: SparkSession, lake: Path, folder: Path) -> None:
    report = dq.check("orders.odcs.yaml", spark.createDataFrame([(None, None)], "day date, id bigint"))

    with pytest.raises(dq.Violated):
        dq.publish("orders.odcs.yaml", partition=DAY, report=report)

    assert not (lake / "_SUCCESS").exists()


def test_a_redelivery_and_what_stands_already(lake: Path, folder: Path) -> None:
    contract = dq.load("orders.odcs.yaml")
    calls = [
        dq.publish(contract, partition=DAY, rows=1),
        dq.publish(contract, partition=DAY, rows=1),
        dq.publish(contract, partition=DAY, rows=2),
        dq.publish(contract, partition=DAY, redelivery=True, run="night"),
        dq.publish(contract, partition=DAY, redelivery=True, run="night"),
    ]

    assert [(one.event.revision, bool(one.published.steps)) for one in calls] == [
        (1, True),
        (1, False),
        (2, True),
        (3, True),
        (3, False),
    ]
    assert [one["previous_rows"] for one in heard(folder)] == [None, 1, 2]


def test_consumers_who_cannot_be_told_are_an_error_only_when_asked(lake: Path, folder: Path) -> None:
    (folder / ".dq" / "published.jsonl").mkdir()

    done = dq.publish("orders.odcs.yaml", partition=DAY)

    assert (lake / "_SUCCESS").exists()
    with pytest.raises(DeliveryError, match="consumers were not notified yet"):
        done.raise_for_status()


def test_an_instant_without_a_zone_is_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="has no time zone"):
        dq.publish("orders.odcs.yaml", partition=DAY, cycle=datetime(2026, 5, 10))  # noqa: DTZ001


@pytest.mark.spark
def test_a_report_of_something_else_is_refused(spark: SparkSession, lake: Path, folder: Path) -> None:
    other = (folder / "orders.odcs.yaml").read_text().replace("version: 1.0.0", "version: 1.1.0")
    report = dq.check(other, spark.createDataFrame([(date(2026, 5, 10), 1)], "day date, id bigint"))

    with pytest.raises(UsageError, match=r"The report is for orders 1\.1\.0 orders"):
        dq.publish("orders.odcs.yaml", partition=DAY, report=report)
