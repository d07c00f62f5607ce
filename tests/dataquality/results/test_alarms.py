"""The accepted false alarms of a day, spent on the tests as they come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.metrics import UNUSUAL
from dq.contracts.outcome import Location, Severity
from dq.dataquality import results
from dq.dataquality.alarms import AlarmSpan, alarm_counts, level_of_test, next_test_level, save_answer
from dq.store.engine import Store, open_store

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path}/dq.db")


def run(store: Store, at: datetime, p: float | None = 0.5, table: str = "t", scope: str = "table",
        status: Status = Status.PASS) -> None:  # fmt: skip
    """A stored run with one result of the check."""
    result = CheckResult(UNUSUAL, "schema[0].quality[0]", table, "", status, Severity.WARNING, "", "", "",
                         Location("x"), p)  # fmt: skip
    with store.write() as tx:
        results.save_run(tx, contract="shop", object=table, version="1.0.0", scope=scope, results=[result],
                         jobs=1, now=at)  # fmt: skip


@pytest.mark.parametrize("usual", [0, 1, 7, 2_000])
@pytest.mark.parametrize("tests", [1, 7, 2_000, 50_000])
def test_the_levels_of_a_day_add_up_to_at_most_the_accepted_number(usual: int, tests: int) -> None:
    levels = [level_of_test(2.0, usual, number) for number in range(1, tests + 1)]

    assert sum(levels) <= 2.0
    assert min(levels) > 0
    if tests >= usual > 0:
        assert sum(levels[:usual]) == pytest.approx(1.8)


def test_the_level_is_by_the_tests_of_the_day_and_of_the_last_seven(store: Store) -> None:
    for back, tests in ((0, 2), (1, 3), (3, 5), (7, 4), (8, 90)):
        for number in range(tests):
            run(store, NOW - back * DAY - timedelta(minutes=number + 1))
    run(store, NOW - DAY, p=None)

    with store.read() as tx:
        found = [next_test_level(tx, 1.0, tests, NOW) for tests in (1, 3, 4)]

    assert found == [level_of_test(1.0, 5, number) for number in (3, 5, 6)]


def test_an_answer_is_about_the_alarms_of_its_incident(store: Store) -> None:
    for day in range(4):
        run(store, NOW + day * DAY, status=Status.FAIL)
    run(store, NOW, table="u", status=Status.FAIL)
    with store.write() as tx:
        spans = [AlarmSpan("table", NOW + DAY, NOW + 3 * DAY)]
        first = save_answer(tx, "shop", "t", spans, real=True, by="ana", now=NOW + 3 * DAY)
        later = save_answer(tx, "shop", "t", spans[:1], real=False, by="ben", now=NOW + 5 * DAY)
        counts = alarm_counts(tx)
        before = alarm_counts(tx, NOW + 2 * DAY)
        recent = alarm_counts(tx, since=NOW + 2 * DAY)

    assert (first, later) == (2, 2)
    assert counts["shop", "t"].as_dict() == {
        "alarms": 4, "real": 0, "not_real": 2, "unanswered": 2, "precision": 0.0,
    }  # fmt: skip
    assert counts["shop", "u"].unanswered == 1
    assert before["shop", "t"].as_dict()["alarms"] == 3
    assert {key: counts.total for key, counts in recent.items()} == {("shop", "t"): 2}


def test_a_partition_that_was_checked_again_counts_once(store: Store) -> None:
    for hour in range(3):
        run(store, NOW + timedelta(hours=hour), scope="day=2026-05-19", status=Status.FAIL)
    with store.read() as tx:
        assert alarm_counts(tx)["shop", "t"].total == 1
