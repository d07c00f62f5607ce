"""Which numbers of rows are unusual, told from what earlier runs counted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.metrics import Against
from dq.contracts.model import Contract
from dq.contracts.outcome import CheckResult, Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results as check_runs
from dq.dataquality import results as earlier_runs
from dq.dataquality.checks.row_count_anomaly import CHECK
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.quality_rule import PastCount, comparable_counts, partition_time, usual_range
from dq.dataquality.model.metric import count
from dq.dataquality.model.run_context import Partition, PastRowCount, RunContext
from dq.store.engine import open_store

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)  # a Saturday
DAY = dt.timedelta(days=1)


def contract(terms: str = "", rest: str = "") -> Contract:
    implementation = f"{{check: rowCountAnomaly, arguments: {{{terms}}}}}"
    rule = f"{{type: custom, engine: dq, implementation: {implementation}{rest}}}"
    text = (
        "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
        f"schema: [{{name: orders, quality: [{rule}]}}]\n"
    )
    made = parse(text.encode(), "shop.odcs.yaml").contract
    assert made is not None
    return made


def clause(terms: str = "", rest: str = "") -> Clause:
    made = contract(terms, rest)
    (found,) = clauses_of(made, made.objects[0], {CHECK.id: CHECK})
    return found


def judged(counts: Sequence[int], found: int, terms: str = "") -> CheckResult:
    """Daily runs of the table, the last one yesterday."""
    earlier = tuple(
        PastRowCount(CHECK.id, "schema[0].quality[0]", NOON - DAY * (len(counts) - index), rows)
        for index, rows in enumerate(counts)
    )
    asked = replace(clause(terms), context=RunContext(NOON, (), earlier))
    return CHECK.evaluate(asked, {count(): found})


WORKDAYS = [1000, 1010, 990, 1005, 995, 100, 110]
# Name -> (daily counts up to yesterday, today's count, terms, status, what the message holds).
CASES = {
    "constant, and so today": ([500] * 14, 500, "", "pass", "expected 400 to 600"),
    "constant, and a little more": ([500] * 14, 599, "", "pass", "599 rows"),
    "constant, and a quarter more": ([500] * 14, 625, "", "fail", "the median of the last 14 runs is 500"),
    "constant, without slack": ([500] * 14, 501, "slack: 0", "fail", "expected 500 to 500"),
    "never a row, and none": ([0] * 10, 0, "", "pass", "expected 0 to 0"),
    "never a row, and one": ([0] * 10, 1, "", "fail", "1 row; expected 0 to 0"),
    "always rows, and none": ([900, 950, 1000, 1050, 1100, 980, 1020], 0, "", "fail", "0 rows"),
    "noise": ([900, 950, 1000, 1050, 1100, 980, 1020], 1150, "", "pass", "1,150 rows"),
    "growth by the day": ([1000 + 20 * day for day in range(28)], 1560, "", "pass", "1,560 rows"),
    "growth by a tenth each week": ([round(1000 * 1.1 ** (day / 7)) for day in range(60)], 2280, "",
                                    "pass", ""),
    "a jump to the double": ([1000 + 20 * day for day in range(28)], 3120, "", "fail", ""),
    "one wild run before": ([1000] * 10 + [90_000] + [1000] * 3, 1300, "", "fail", "90,000"),
    "one wild run does not hide a small one": ([1000, 1, *[1000] * 8], 700, "", "fail", ""),
    "two empty runs before": ([1000, 0, 0, 1010, 990, 1005, 995, 1000], 1003, "", "pass", ""),
    "a Saturday among Saturdays": ([*WORKDAYS[6:], *WORKDAYS, *WORKDAYS, *WORKDAYS, *WORKDAYS[:5]], 105, "",
                                   "pass", "the last 3 Saturdays"),
    "a full Saturday": ([*WORKDAYS[6:], *WORKDAYS, *WORKDAYS, *WORKDAYS, *WORKDAYS[:5]], 1000, "",
                        "fail", "the last 3 Saturdays"),
    "a Saturday when two are known": ([*WORKDAYS, *WORKDAYS, *WORKDAYS[:5]], 105, "", "fail", "19 runs"),
    "only more matters": ([500] * 14, 3, "direction: more", "pass", "expected 600 or fewer"),
    "only fewer matter": ([500] * 14, 9000, "direction: fewer", "pass", "expected 400 or more"),
    "six runs of seven": ([500] * 6, 3, "", "skipped", "learning (6 of 7 runs)"),
    "no run": ([], 3, "", "skipped", "learning (0 of 7 runs)"),
    "the last five": ([9] * 9 + [500] * 5, 500, "runs: 5, minimum: 5", "pass", "the last 5 runs"),
}  # fmt: skip


@pytest.mark.parametrize(("counts", "found", "terms", "status", "said"), CASES.values(), ids=CASES)
def test_a_number_of_rows_is_compared_with_its_history(
    counts: list[int], found: int, terms: str, status: str, said: str
) -> None:
    made = judged(counts, found, terms)

    assert (made.status, made.value) == (status, float(found)), made.message
    assert said in made.message


def test_the_message_tells_what_is_usual_and_why() -> None:
    made = judged([800, 850, 812, 845, 790, 860, 830, 845], 312)

    assert made.message == (
        "orders: 312 rows; expected 670 to 1,005: the median of the last 8 runs is 837.5"
        " (the last were 800, 850, 812, 845, 790, 860, 830, 845)"
    )
    assert (made.observed, made.allowed) == ("312 rows", "670 to 1,005 rows, by the last 8 runs")


def test_it_is_a_warning_unless_the_rule_says_more() -> None:
    assert clause().severity is Severity.WARNING
    assert clause(rest=", severity: error").severity is Severity.ERROR


MISTAKES = {
    "sigma: 3": "takes no 'sigma'",
    "run: 3": "did you mean 'runs'?",
    "runs: 2.5": "runs must be a number from 1 to 1,000, not 2.5",
    "slack: true": "slack must be a number",
    "direction: up": "direction must be one of both, fewer, more",
    "runs: 3": "would never end learning",
}


@pytest.mark.parametrize(("terms", "reason"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistaken_term_is_refused_with_its_reason(terms: str, reason: str) -> None:
    assert reason in clause(terms).refusal_reason


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
    learned = judged([], 7)
    failed = judged([500] * 14, 3)
    with store.write() as tx:
        for scope, results, hours in (
            ("table", [failed], 1),
            ("dt=2026-11-20/region=eu", [learned], 2),
            ("dt=2026-11-19", [], 3),
        ):
            check_runs.save_run(
                tx,
                contract="shop",
                object="orders",
                version="1.0.0",
                scope=scope,
                results=results,
                jobs=1,
                now=NOON - dt.timedelta(hours=hours),
            )

    with store.read() as tx:
        found = earlier_runs.earlier_counts(tx, "shop", "orders")
        others = earlier_runs.earlier_counts(tx, "shop", "lines")

    path = "schema[0].quality[0]"
    assert found == (
        PastRowCount(CHECK.id, path, NOON - dt.timedelta(hours=1), 3),
        PastRowCount(
            CHECK.id, path, NOON - dt.timedelta(hours=2), 7, partition(dt="2026-11-20", region="eu")
        ),
    )
    assert others == ()
