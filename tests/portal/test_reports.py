"""Reports over many products: deliveries by day, incidents over time, objectives and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dq.alerts.incident import Incident, IncidentState
from dq.contracts.incident import CycleStatus, IncidentKey
from dq.contracts.outcome import Severity
from dq.contracts.schedule.clock import DstNote
from dq.dataquality.alarms import AlarmCounts
from dq.dataquality.delivery.cycle import Cycle, CycleRecord
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.results import GROUP
from dq.portal.contracts import ContractCard
from dq.portal.daily import DAYS, DayCounts, days_of, encode_days, total
from dq.portal.lists import ProductRow
from dq.portal.product import ProductState, ProductSummary
from dq.portal.reports import (
    RecentAlarms,
    coverage_over_time,
    domain_report,
    incidents_over_time,
    incidents_page,
    today_report,
)
from dq.portal.store_queries import IncidentFacts, Watcher
from dq.registry.table_coverage import Coverage, DiscoveryRun, last_runs, record_run
from dq.store.engine import open_store

NOW = datetime(2026, 5, 31, 9, tzinfo=UTC)
WATCHER = Watcher(NOW, NOW, timedelta(minutes=15))
GOOD, LATE, UNKNOWN, EXCUSED = (
    CycleStatus.ON_TIME, CycleStatus.LATE, CycleStatus.UNKNOWN, CycleStatus.EXCUSED,
)  # fmt: skip


def cycles(*statuses: CycleStatus | None, hour: int = 6) -> list[CycleRecord]:
    """One cycle a day, the last one today; None for a day without."""
    records = []
    for ago, status in enumerate(reversed(statuses)):
        due = NOW.replace(hour=hour) - timedelta(days=ago)
        cycle = Cycle("shop", "orders", "daily", due, due, due.replace(tzinfo=None), DstNote.NORMAL, ())
        if status is not None:
            records.append(CycleRecord(ago, cycle, status, "", None, None, notified=False))
    return records[::-1]


def product(
    title: str, domain: str, days: str = "", slos: Sequence[tuple[str, float, int, int]] = ()
) -> ProductRow:
    card = ContractCard(f"{title}.yaml", "digest", title, title, title, title=title, domain=domain)
    summary = ProductSummary(ProductState.FINE.value, days=days, slos=tuple(slos))
    return ProductRow(card, summary)


def incident(contract: str, group: str, opened: timedelta, lasted: timedelta | None = None) -> IncidentFacts:
    opened_at = NOW - opened
    return IncidentFacts(
        Incident(
            f"{contract}-{group}-{opened}", IncidentKey(contract, "orders", group), Severity.ERROR, "title",
            IncidentState.OPEN if lasted is None else IncidentState.RESOLVED, opened_at,
            resolved_at=None if lasted is None else opened_at + lasted,
        )
    )  # fmt: skip


def test_days_are_the_same_after_they_were_encoded() -> None:
    text = encode_days([cycles(LATE, None, GOOD, UNKNOWN), cycles(GOOD, GOOD, hour=7)], NOW)

    days = days_of([text], NOW)
    assert len(days) == DAYS
    assert days[-5:] == (DayCounts(), DayCounts(bad=1), DayCounts(), DayCounts(good=2), DayCounts(1, 0, 1))


def test_what_is_excused_or_older_than_thirty_days_does_not_count() -> None:
    statuses = [LATE, *[GOOD] * (DAYS - 1), EXCUSED]

    days = days_of([encode_days([cycles(*statuses)], NOW)], NOW)
    assert total(days) == DayCounts(good=DAYS - 1)
    assert days[-1] == DayCounts()
    assert encode_days([[]], NOW) == encode_days([], NOW) == ""


def test_days_that_were_encoded_yesterday_are_not_today() -> None:
    text = encode_days([cycles(LATE, GOOD)], NOW)

    tomorrow = days_of([text, text], NOW + timedelta(days=1))
    assert tomorrow[-3:] == (DayCounts(bad=2), DayCounts(good=2), DayCounts())


def test_unknown_days_are_not_full_and_misses_are_counted_in_the_cell() -> None:
    days = encode_days([cycles(GOOD, UNKNOWN, LATE)], NOW)
    values = today_report([product("a", "sales", days)], [], WATCHER)

    heat = values["heat"]
    assert heat.heads == ["Day", "All", "sales"]
    assert [row[1:] for row in heat.rows[:4]] == [
        ["0 of 1", "0 of 1"], ["1 unknown", "1 unknown"], ["1 of 1", "1 of 1"], ["-", "-"],
    ]  # fmt: skip
    assert heat.chart.count("<title>") == 4
    assert values["figures"][0] == ("On time today", "0.0%", "0 of 1; yesterday -")


def test_the_worst_domains_are_first_and_the_others_are_counted() -> None:
    fine, late = encode_days([cycles(GOOD)], NOW), encode_days([cycles(LATE)], NOW)
    rows = [product(f"p{number}", f"domain {number:02}", fine) for number in range(12)]

    values = today_report([*rows, product("bad", "zoo", late), product("none", "empty")], [], WATCHER)
    assert values["heat"].heads[1:4] == ["All", "zoo", "domain 00"]
    assert (len(values["heat"].heads), values["heat_more"]) == (12, 3)


def test_without_deliveries_no_strip_is_drawn() -> None:
    values = today_report([product("a", "sales")], [], WATCHER)

    assert values["heat"] is None
    assert values["figures"][0][1:] == ("-", "-; yesterday -")
    assert today_report([], [], WATCHER)["heat"] is None


def test_open_incidents_are_compared_with_those_of_yesterday() -> None:
    hour, day = timedelta(hours=1), timedelta(days=1)
    incidents = [
        incident("a", "daily", hour), incident("b", "daily", 3 * day),
        incident("c", "daily", 3 * day, 2 * day + hour), incident("d", "daily", 9 * day, day),
    ]  # fmt: skip

    figure = today_report([product("a", "sales")], incidents, WATCHER)["figures"][2]
    assert figure == ("Open incidents", "2", "+0 since yesterday; 2 not acknowledged")


def test_incidents_are_counted_by_week_and_kind() -> None:
    day = timedelta(days=1)
    incidents = [
        incident("a", "daily", day), incident("a", GROUP, 8 * day), incident("a", "daily:budget", 8 * day),
        incident(PLATFORM, "sight", day), incident("a", "daily", 100 * day),
    ]  # fmt: skip

    values = incidents_over_time(incidents, NOW)
    assert values is not None
    assert values["heads"] == ["7 days from", "Deliveries", "Data checks", "Error budgets", "Monitoring"]
    assert values["rows"][:3] == [
        ["2026-05-24", "1", "0", "0", "1"],
        ["2026-05-17", "0", "1", "1", "0"],
        ["2026-05-10", "0", "0", "0", "0"],
    ]
    assert incidents_over_time(incidents[-1:], NOW) is None


def test_a_domain_shows_its_slos_furthest_below_their_objective_first() -> None:
    rows = [
        product("good", "sales", slos=[("daily", 0.9, 10, 0)]),
        product("bad", "sales", slos=[("daily", 0.95, 18, 2), ("weekly", 0.5, 1, 1)]),
    ]

    objectives = domain_report("sales", rows, [], WATCHER, [])["objectives"]
    assert objectives["summary"] == "2 of 3 SLOs met"
    assert objectives["rows"] == [
        ["bad: daily", "95%", "90.0%", "18 of 20", "missed"],
        ["bad: weekly", "50%", "50.0%", "1 of 2", "met"],
        ["good", "90%", "100.0%", "10 of 10", "met"],
    ]


def test_the_times_of_a_domain_are_median_and_mean() -> None:
    hour = timedelta(hours=1)
    incidents = [incident("a", "daily", 100 * hour, hours * hour) for hours in (1, 2, 9)]

    figures = {
        name: (value, note) for name, value, note in domain_report("", [], incidents, WATCHER, [])["figures"]
    }
    assert figures["Time to resolve"] == ("2 h", "median of 3 incidents, mean 4 h")
    assert figures["Time to acknowledge"] == ("-", "no incidents acknowledged")


def run(days: int, *domains: Coverage) -> DiscoveryRun:
    return DiscoveryRun(NOW - timedelta(days=days), ("lake",), 0, domains, (), (), ())


def test_coverage_over_time_is_that_of_the_domain_and_of_all() -> None:
    runs = [run(9, Coverage("sales", 10, 2, 1), Coverage("hr", 5)), run(2, Coverage("sales", 10, 4, 0))]

    sales, every = coverage_over_time(runs, "sales"), coverage_over_time(runs, None)
    assert sales is not None
    assert every is not None
    assert sales["rows"] == [["2026-05-29", "4", "0", "6", "40.0%"], ["2026-05-22", "2", "1", "7", "20.0%"]]
    assert every["rows"][1] == ["2026-05-22", "2", "1", "12", "13.3%"]
    assert coverage_over_time(runs, "hr") is None
    assert coverage_over_time([], None) is None


@pytest.mark.parametrize(("limit", "days"), [(1, [1]), (2, [2, 1]), (9, [3, 2, 1])])
def test_the_newest_runs_come_oldest_first_and_later_ones_are_left_out(
    tmp_path: Path, limit: int, days: list[int]
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/dq.db")
    for ago in (3, 2, 1, -1):
        record_run(store, run(ago, Coverage("sales", 10, ago + 1)))

    with store.read() as tx:
        assert [found.at for found in last_runs(tx, NOW, limit)] == [
            NOW - timedelta(days=ago) for ago in days
        ]


@pytest.mark.parametrize(
    ("alarms", "figure"),
    [
        (RecentAlarms(), None),
        (
            RecentAlarms(AlarmCounts(5, 9, 1), AlarmCounts(2, 6, 1), 0.5),
            ("0.2", "at most 0.5 a day accepted; last 30 days: 6 not real, 2 real, 1 without an answer"),
        ),
        (
            RecentAlarms(AlarmCounts(1), AlarmCounts()),
            ("0", "no limit for all tables; last 30 days: 0 not real, 0 real, 0 without an answer"),
        ),
        (
            RecentAlarms(accepted=2),
            ("0", "at most 2 a day accepted; last 30 days: 0 not real, 0 real, 0 without an answer"),
        ),
    ],
)
def test_false_alarms_a_day_are_beside_those_that_are_accepted(
    alarms: RecentAlarms, figure: tuple[str, str] | None
) -> None:
    figures = {name: texts for name, *texts in incidents_page([], {}, WATCHER, alarms)["figures"]}

    assert tuple(figures.get("False alarms a day", [])) == (figure or ())
