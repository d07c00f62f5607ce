"""The status of a cycle: every deadline case, and the semantics between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fakes.cases import cases
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import Duration, parse_duration
from dq.contracts.schedule.clock import DstNote, Schedule, parse
from dq.contracts.slo import Cycle, cycles
from dq.dataquality.delivery.cycle import CycleVerdict, Evidence, evaluate_evidence

CASES = cases("cron-cases.yaml")


def utc(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in CASES["deadline_cases"]])
def test_the_deadline_case_has_its_breach_and_status(row: dict[str, Any]) -> None:
    schedule, grace, due_at = (
        parse(row["expr"], timezone=row["tz"]),
        parse_duration(row["grace"]),
        utc(row["due_utc"]),
    )
    assert isinstance(schedule, Schedule)
    assert isinstance(grace, Duration)
    delivered = Evidence("receipt", utc(row["delivered_at"])) if row["delivered_at"] else None

    before = due_at - timedelta(seconds=1)
    (cycle,) = cycles(schedule, before, due_at, contract="c", object="o", slo="s", grace=grace.elapsed)

    assert cycle.due_at == due_at
    assert cycle.breach_at == utc(row["breach_at"])
    assert evaluate_evidence(cycle, delivered, utc(row["now"])).status == row["status"]


DUE, BREACH, GIVE_UP = utc("2026-05-01T06:00"), utc("2026-05-01T07:00"), utc("2026-05-04T07:00")
CYCLE = Cycle("c", "o", "s", DUE, BREACH, datetime.fromisoformat("2026-05-01T06:00"), DstNote.NORMAL)
SECOND = timedelta(seconds=1)


def marker(delivered: str | None, first_seen: str | None = None) -> Evidence:
    return Evidence("marker", delivered and utc(delivered), first_seen and utc(first_seen))


UNREADABLE = Evidence("marker", readable=False, problem="403 from the bucket")
LATER = utc("2026-05-09T00:00")


@pytest.mark.parametrize(
    ("evidence", "now", "expected"),
    [
        pytest.param(None, DUE - SECOND, "scheduled", id="nothing before due"),
        pytest.param(None, DUE, "pending", id="nothing at due"),
        pytest.param(None, BREACH, "pending", id="nothing at breach"),
        pytest.param(None, BREACH + SECOND, "missing", id="nothing after breach"),
        pytest.param(None, GIVE_UP, "missing", id="nothing when giving up"),
        pytest.param(None, GIVE_UP + SECOND, "never", id="nothing after giving up"),
        pytest.param(marker(None), BREACH + SECOND, "missing", id="read and nothing there"),
        pytest.param(UNREADABLE, DUE - SECOND, "scheduled", id="unreadable before due"),
        pytest.param(UNREADABLE, BREACH, "pending", id="unreadable in grace"),
        pytest.param(UNREADABLE, BREACH + SECOND, "unknown", id="unreadable after breach is never missing"),
        pytest.param(UNREADABLE, LATER, "unknown", id="unreadable after giving up is not never"),
        pytest.param(marker("2026-04-28T00:00"), LATER, "on_time", id="early by its partition"),
        pytest.param(marker("2026-05-01T05:00"), DUE - SECOND, "on_time", id="early and judged before due"),
        pytest.param(marker("2026-05-01T06:00"), LATER, "on_time", id="at due"),
        pytest.param(marker("2026-05-01T06:00:00.000001"), LATER, "on_time_in_grace", id="just after due"),
        pytest.param(marker("2026-05-01T07:00"), LATER, "on_time_in_grace", id="at breach"),
        pytest.param(marker("2026-05-01T07:00:00.000001"), LATER, "late", id="just after breach"),
        pytest.param(marker("2026-05-04T07:00"), LATER, "late", id="at giving up"),
        pytest.param(marker("2026-05-04T07:00:01"), LATER, "never", id="after giving up"),
        pytest.param(
            marker("2026-05-01T06:30:02"), utc("2026-05-01T06:30"), "on_time_in_grace", id="2 s ahead"
        ),
        pytest.param(marker("2026-05-01T06:30:03"), utc("2026-05-01T06:30"), "unknown", id="3 s ahead"),
        pytest.param(
            marker("2026-05-01T09:00", "2026-05-01T06:20"),
            utc("2026-05-01T06:30"),
            "on_time_in_grace",
            id="ahead, first seen decides",
        ),
        pytest.param(
            marker("2026-05-01T09:00", "2026-05-01T06:20"),
            LATER,
            "on_time_in_grace",
            id="and for ever",
        ),
        pytest.param(
            marker("2026-05-01T06:10", "2026-05-01T08:00"),
            LATER,
            "on_time_in_grace",
            id="on time, seen late",
        ),
    ],
)
def test_the_status_follows_from_evidence_and_the_instant(
    evidence: Evidence | None, now: datetime, expected: str
) -> None:
    assert evaluate_evidence(CYCLE, evidence, now, give_up_at=GIVE_UP).status == expected


def test_without_giving_up_a_miss_stays_open() -> None:
    assert evaluate_evidence(CYCLE, None, LATER).status is CycleStatus.MISSING


@pytest.mark.parametrize("evidence", [None, UNREADABLE, marker("2026-05-01T09:00")])
def test_an_excused_cycle_is_excused_whatever_arrived(evidence: Evidence | None) -> None:
    found = evaluate_evidence(CYCLE, evidence, LATER, excused="Bank holiday, approved by mesh-team.")

    assert found == CycleVerdict(CycleStatus.EXCUSED, None, "Bank holiday, approved by mesh-team.")


def test_lateness_counts_from_due_and_is_negative_when_early() -> None:
    assert evaluate_evidence(CYCLE, marker("2026-05-01T08:30"), LATER).lateness == timedelta(
        hours=2, minutes=30
    )
    assert evaluate_evidence(CYCLE, marker("2026-05-01T05:30"), LATER).lateness == timedelta(minutes=-30)
    assert evaluate_evidence(CYCLE, None, LATER).lateness is None


def test_a_clock_that_runs_ahead_is_reported_and_first_seen_counts() -> None:
    found = evaluate_evidence(CYCLE, marker("2026-05-01T09:00", "2026-05-01T06:20"), LATER)

    assert found == CycleVerdict(
        CycleStatus.ON_TIME_IN_GRACE,
        timedelta(minutes=20),
        "Delivered 2026-05-01 06:20:00Z by marker, due 2026-05-01 06:00:00Z. "
        "Its own clock says 2026-05-01 09:00:00Z; the time it was first seen counts.",
    )


def test_a_reason_says_what_could_not_be_read() -> None:
    found = evaluate_evidence(CYCLE, UNREADABLE, LATER)

    assert found.reason == "The marker could not be read: 403 from the bucket."


INSTANTS = st.datetimes(
    datetime.fromisoformat("2026-04-30"), datetime.fromisoformat("2026-05-06"), timezones=st.just(UTC)
)


@given(delivered=INSTANTS, instants=st.lists(INSTANTS, min_size=2, max_size=6).map(sorted))
def test_a_cycle_once_delivered_keeps_its_status_for_ever(
    delivered: datetime, instants: list[datetime]
) -> None:
    evidence = Evidence("commit", delivered, first_seen=delivered)
    afterwards = [instant for instant in instants if instant >= delivered]

    found = {evaluate_evidence(CYCLE, evidence, now, give_up_at=GIVE_UP) for now in afterwards}

    assert len(found) <= 1


@given(instants=st.lists(INSTANTS, min_size=2, max_size=6).map(sorted))
def test_waiting_only_ever_moves_forward(instants: list[datetime]) -> None:
    order = [CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING, CycleStatus.NEVER]

    ranks = [order.index(evaluate_evidence(CYCLE, None, now, give_up_at=GIVE_UP).status) for now in instants]

    assert ranks == sorted(ranks)
