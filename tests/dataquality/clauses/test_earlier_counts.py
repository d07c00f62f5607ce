"""Row counts of earlier runs, and the usual range that follows from them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.metrics import Against
from dq.contracts.outcome import Location, Severity
from dq.dataquality import results as check_runs
from dq.dataquality import results as earlier_runs
from dq.dataquality.clauses.quality_rule import PastCount, comparable_counts, partition_time, usual_range
from dq.dataquality.model.run_context import Partition, PastRowCount, RunContext
from dq.store.engine import open_store

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)  # a Saturday
DAY = dt.timedelta(days=1)


PATH = "schema[0].quality[0]"


def counted(rows: int) -> CheckResult:
    at = Location("shop.odcs.yaml", 1, 1)
    return CheckResult(
        "row_count", PATH, "orders", "", Status.PASS, Severity.ERROR, f"{rows} rows", "", "", at, float(rows)
    )


def partition(**pairs: str) -> Partition:
    return tuple(sorted(pairs.items()))


TIMES = {
    "a date": (partition(dt="2026-11-20"), "2026-11-20"),
    "an hour": (partition(dt="2026-11-20-07"), "2026-11-20"),
    "three columns": (partition(year="2026", month="02", day="3"), "2026-02-03"),
    "beside others": (partition(region="eu", dt="2026-11-20"), "2026-11-20"),
    "no such day": (partition(dt="2026-02-30"), None),
    "no date": (partition(region="eu"), None),
}


@pytest.mark.parametrize(("given_partition", "expected"), TIMES.values(), ids=TIMES)
def test_the_day_of_a_partition_is_read_from_its_values(
    given_partition: Partition, expected: str | None
) -> None:
    found = partition_time(given_partition)

    assert (found and found.date().isoformat()) == expected


def test_partitions_are_compared_with_those_that_differ_in_the_date_alone() -> None:
    def earlier(rows: int, hours: int, **pairs: str) -> PastRowCount:
        return PastRowCount("c", "p", NOON - dt.timedelta(hours=hours), rows, partition(**pairs))

    known = (
        earlier(1, 50, dt="2026-11-18", region="eu"),
        earlier(2, 40, dt="2026-11-18", region="eu"),
        earlier(3, 30, dt="2026-11-19", region="eu"),
        earlier(4, 30, dt="2026-11-19", region="us"),
        earlier(5, 20, dt="2026-11-20", region="eu"),
        earlier(6, 10, dt="2026-11-21", region="eu"),
        earlier(7, 9),
        PastRowCount("c", "another", NOON, 8, partition(dt="2026-11-18", region="eu")),
        PastRowCount("other", "p", NOON, 9, partition(dt="2026-11-18", region="eu")),
    )

    def counts(*partitions: Partition) -> list[int]:
        return [one.rows for one in comparable_counts(RunContext(NOON, partitions, known), "c", "p")]

    assert counts(partition(dt="2026-11-20", region="eu")) == [2, 3]
    assert counts(partition(dt="2026-11-22", region="eu")) == [2, 3, 5, 6]
    assert counts() == [7]
    assert counts(partition(dt="2026-11-20"), partition(dt="2026-11-21")) == []


MANY = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


def band(counts: Sequence[int]) -> tuple[int, int]:
    runs = [PastCount(NOON - DAY * 7 * (len(counts) - index), rows) for index, rows in enumerate(counts)]
    made = usual_range(runs, NOON, Against("usual", runs=60))
    assert made.minimum is not None
    assert made.maximum is not None
    return made.minimum, made.maximum


@given(MANY)
def test_the_band_holds_most_of_its_history_and_never_a_negative_number(counts: list[int]) -> None:
    least, most = band(counts)

    inside = sum(least <= rows <= most for rows in counts)
    assert least >= 0
    assert 2 * inside >= len(counts) - 1


@given(MANY, st.randoms(use_true_random=False))
def test_the_order_of_the_history_does_not_matter(counts: list[int], draw) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(counts)
    draw.shuffle(shuffled)

    assert band(shuffled) == band(counts)


@given(st.lists(st.integers(900, 1100), min_size=7, max_size=40), st.integers(0, 10**12))
def test_one_wild_run_hardly_moves_the_band(counts: list[int], wild: int) -> None:
    least, most = band([*counts, wild])

    assert least >= 100
    assert most <= 1_900


def test_counts_come_from_the_store_with_their_partitions(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/dq.db")
    with store.write() as tx:
        for scope, rows, hours in (
            ("table", 3, 1),
            ("dt=2026-11-20/region=eu", 7, 2),
            ("dt=2026-11-19", None, 3),
        ):
            check_runs.save_run(
                tx,
                contract="shop",
                object="orders",
                version="1.0.0",
                scope=scope,
                results=[] if rows is None else [counted(rows)],
                jobs=1,
                now=NOON - dt.timedelta(hours=hours),
            )

    with store.read() as tx:
        found = earlier_runs.earlier_counts(tx, "shop", "orders")
        others = earlier_runs.earlier_counts(tx, "shop", "lines")

    assert found == (
        PastRowCount("row_count", PATH, NOON - dt.timedelta(hours=1), 3),
        PastRowCount(
            "row_count", PATH, NOON - dt.timedelta(hours=2), 7, partition(dt="2026-11-20", region="eu")
        ),
    )
    assert others == ()
