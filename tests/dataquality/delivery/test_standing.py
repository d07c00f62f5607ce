"""How promises stand: burn rules, the time that data was there, runs, trends and usual times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from fakes.watcher import CONTRACT

from dq.contracts import slo as promise
from dq.contracts.incident import CycleStatus
from dq.contracts.schedule.clock import DstNote
from dq.contracts.slo import Cycle, Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery.budget import RULES, firing_rules
from dq.dataquality.delivery.compliance import Streak, availability, group_compliance, slo_compliance
from dq.dataquality.delivery.cycle import CycleRecord

FIRST = datetime(2026, 5, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
GOOD, BAD, UNKNOWN = CycleStatus.ON_TIME, CycleStatus.NEVER, CycleStatus.UNKNOWN


@pytest.fixture(scope="module")
def slo() -> Slo:
    parsed = parse(CONTRACT.replace(", __MORE__", "").encode(), "orders.odcs.yaml")
    assert parsed.contract is not None
    (one,), findings = promise.read_slos(parsed.contract)
    assert findings == []
    return one


def history(*ends: CycleStatus | float) -> list[CycleRecord]:
    """Daily cycles: a number is the delivery, in hours after it was due."""
    made = []
    for number, end in enumerate(ends):
        due = FIRST + timedelta(days=number)
        status = end if isinstance(end, CycleStatus) else GOOD if end <= 0 else CycleStatus.LATE
        came = None if isinstance(end, CycleStatus) else due + end * HOUR
        cycle = Cycle("orders", "orders", "daily", due, due, due.replace(tzinfo=None), DstNote.NORMAL)
        made.append(CycleRecord(number, cycle, status, "", came, None, notified=False))
    return made


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        # The numbers that the rules are documented with, for a product of every 15 minutes.
        (Fraction(99, 100), {"fast": 3, "slow": 3, "trend": 3}),
        (Fraction(95, 100), {"fast": 8, "slow": 15, "trend": 15}),
        (Fraction(80, 100), {"fast": None, "slow": 58, "trend": 58}),
    ],
)
def test_how_many_misses_a_burn_rule_takes(objective: Fraction, expected: dict[str, int | None]) -> None:
    assert {rule.name: rule.min_misses(objective) for rule in RULES} == expected


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [
        pytest.param([GOOD] * 97 + [BAD] * 3, ("fast", "slow", "trend"), id="three at the end"),
        pytest.param([GOOD] * 96 + [BAD] * 3, (), id="too few cycles to have a rate"),
        pytest.param([GOOD] * 98 + [BAD] * 2, (), id="two"),
        pytest.param([GOOD] * 95 + [BAD] * 3 + [GOOD] * 4, ("slow", "trend"), id="it has stopped"),
        pytest.param([GOOD] * 90 + [BAD] * 3 + [GOOD] * 30, (), id="long ago"),
        pytest.param(
            [GOOD] * 80 + [BAD] * 3 + [UNKNOWN] * 30, (), id="what is expected and unknown is cycles too"
        ),
        pytest.param([BAD] * 3 + [GOOD] * 300 + [BAD], (), id="they are out of all the rules' sight"),
    ],
)
def test_which_rules_fire(cycles: list[CycleStatus], expected: tuple[str, ...]) -> None:
    assert firing_rules(cycles, Fraction(99, 100)) == expected


def test_the_share_of_time_in_which_the_newest_cycle_was_there() -> None:
    # In time; six hours late; never; unknown, which nobody counts; in time.
    cycles = history(-1, 6, BAD, UNKNOWN, 0)

    share = availability(cycles, FIRST - timedelta(days=30), FIRST + timedelta(days=5))

    assert share == Fraction(24 + 18 + 0 + 24, 4 * 24)


def test_time_before_the_window_and_after_now_is_left_out() -> None:
    cycles = history(BAD, -1, 12)

    share = availability(cycles, FIRST + timedelta(days=1, hours=12), FIRST + timedelta(days=2, hours=6))

    assert share == Fraction(12, 18)


def test_nothing_is_known_of_the_time_without_cycles() -> None:
    assert availability([], FIRST, FIRST + HOUR) is None
    assert availability(history(UNKNOWN), FIRST - HOUR, FIRST + HOUR) is None


def test_a_cycle_covers_no_time_after_the_next_delivery_was_due(slo: Slo) -> None:
    # Two days without a tick: the next delivery was due at six in Berlin, and nothing is known of it.
    cycles = history(-1, BAD)

    found = slo_compliance(slo, cycles, FIRST + timedelta(days=4))
    long_after = slo_compliance(slo, cycles, FIRST + timedelta(days=400))

    assert (found.availability, long_after.availability) == (Fraction(24, 24 + 22), None)


def test_a_promise_says_its_run_its_usual_time_and_its_trend(slo: Slo) -> None:
    # The window is 30 days: 30 cycles of which 3 were missed, and then 30 of which none was.
    cycles = history(*[BAD] * 3, *[-1] * 27, *[-2] * 29, 5)

    found = slo_compliance(slo, cycles, FIRST + timedelta(days=59, hours=8))

    assert (found.streak, found.usual_delay) == (Streak(1, good=False), timedelta(hours=-2))
    assert (found.budget.good, found.budget.bad) == (29, 1)
    assert found.trend == Fraction(29, 30) - Fraction(27, 30)


def test_a_young_promise_says_nothing_that_it_does_not_know(slo: Slo) -> None:
    found = slo_compliance(slo, history(UNKNOWN, -1), FIRST + timedelta(days=2))

    assert (found.streak, found.usual_delay, found.trend) == (Streak(1, good=True), None, None)


def test_promises_are_counted_together(slo: Slo) -> None:
    two = [
        slo_compliance(slo, history(-1, BAD, BAD, BAD), FIRST + timedelta(days=4)),
        slo_compliance(slo, history(-1, -1), FIRST + timedelta(days=4)),
    ]

    (group,) = group_compliance(two, lambda _: "sales")

    assert (group.name, group.products, group.promises, group.good, group.bad) == ("sales", 1, 2, 3, 3)
    assert (group.exhausted_budgets, group.attainment) == (1, Fraction(1, 2))
