"""The error budget in whole cycles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from dq.contracts.incident import CycleStatus
from dq.dataquality.delivery.budget import Budget, budget, misses_left

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
GOOD, BAD = CycleStatus.ON_TIME, CycleStatus.MISSING


def days_ago(*numbers: float, status: CycleStatus) -> list[tuple[datetime, CycleStatus]]:
    return [(NOW - number * DAY, status) for number in numbers]


@pytest.mark.parametrize(
    ("cycles", "objective", "allowed"),
    [
        # The table of allowed misses per cadence, window and objective.
        (13, "0.99", 0),
        (13, "0.9", 1),
        (30, "0.99", 0),
        (30, "0.95", 1),
        (30, "0.9", 3),
        (90, "0.99", 0),
        (90, "0.95", 4),
        (90, "0.9", 9),
        (720, "0.999", 0),
        (720, "0.99", 7),
        (720, "0.95", 36),
        (2880, "0.999", 2),
        (2880, "0.99", 28),
        (2880, "0.9", 288),
        # Exactly one: binary fractions would say 0.
        (100, "0.99", 1),
        (1000, "0.999", 1),
        (10, "0.9", 1),
        (30, "1", 0),
    ],
)
def test_the_allowed_misses_are_exact(cycles: int, objective: str, allowed: int) -> None:
    rows = days_ago(*(n * 90 / cycles for n in range(cycles)), status=GOOD)

    assert budget(rows, Decimal(objective), 90 * DAY, NOW).allowed == allowed


def test_an_objective_can_be_a_fraction() -> None:
    assert budget(days_ago(1, 2, 3, status=GOOD), Fraction(2, 3), 90 * DAY, NOW).allowed == 1


def test_good_bad_and_what_does_not_count_are_told_apart() -> None:
    rows = [(NOW - DAY, status) for status in CycleStatus]

    found = budget(rows, Decimal("0.5"), 90 * DAY, NOW)

    assert (found.good, found.bad) == (2, 3)


def test_a_cycle_counts_from_its_breach_until_a_window_later() -> None:
    rows = days_ago(30, 29.999, 0, -0.001, status=BAD)

    assert budget(rows, Decimal("0.5"), 30 * DAY, NOW).bad == 2


def test_the_oldest_miss_returns_when_it_leaves_the_window() -> None:
    rows = [*days_ago(*range(3, 90), status=GOOD), *days_ago(77, 5, status=BAD)]

    found = budget(rows, Decimal("0.95"), 90 * DAY, NOW)
    at_return = budget(rows, Decimal("0.95"), 90 * DAY, NOW + 13 * DAY)

    assert found.next_returns_at == NOW + 13 * DAY
    assert (found.bad, at_return.bad) == (2, 1)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (Budget(85, 1, 4, NOW + 13 * DAY), "error budget: 1 of 4 misses used, 1 restored on 2026-12-03"),
        (Budget(19, 1, 1, NOW + 13 * DAY), "error budget: 1 of 1 miss used, 1 restored on 2026-12-03"),
        (Budget(90, 0, 4, None), "error budget: 0 of 4 misses used"),
        (
            Budget(80, 5, 4, NOW + 13 * DAY),
            "error budget exhausted: 5 misses, 4 allowed; 1 restored on 2026-12-03",
        ),
        (Budget(30, 0, 0, None, 100), "0 misses in 30 cycles (budget starts at 100 cycles)"),
        (
            Budget(0, 1, 0, NOW + 13 * DAY, 20),
            "1 miss in 1 cycle (budget starts at 20 cycles); 1 restored on 2026-12-03",
        ),
        (Budget(30, 1, 0, None), "1 miss, none allowed"),
        (Budget(0, 0, 0, None), "no deliveries counted in the window"),
    ],
)
def test_the_line_says_it_in_whole_misses(found: Budget, line: str) -> None:
    assert found.as_text() == line


@pytest.mark.parametrize(
    ("bad", "allowed", "half", "exhausted", "used"),
    [
        (0, 4, False, False, Fraction(0)),
        (1, 4, False, False, Fraction(1, 4)),
        (2, 4, True, False, Fraction(1, 2)),
        (4, 4, True, False, Fraction(1)),
        (5, 4, True, True, Fraction(5, 4)),
        (0, 0, False, False, None),
        (1, 0, True, True, None),
    ],
)
def test_warning_at_half_and_exhausted_above_all(
    bad: int, allowed: int, half: bool, exhausted: bool, used: Fraction | None
) -> None:
    found = Budget(100, bad, allowed, NOW if bad else None)

    assert (found.is_half_used, found.is_exhausted, found.used) == (half, exhausted, used)


@pytest.mark.parametrize("objective", ["0", "95", "-0.5"])
def test_an_objective_that_is_no_share_is_refused(objective: str) -> None:
    with pytest.raises(ValueError, match="not a share"):
        budget([], Decimal(objective), DAY, NOW)


@pytest.mark.parametrize("objective", ["0.9", "0.95", "0.999", "1", "2/3"])
@pytest.mark.parametrize("days", [5, 30])
def test_the_misses_left_are_those_of_the_budget_at_each_instant(objective: str, days: int) -> None:
    statuses = list(CycleStatus)
    rows = [(NOW + place * DAY / 3, statuses[place * place % len(statuses)]) for place in range(200)]

    left = misses_left(rows, Fraction(objective), days * DAY)

    budgets = [budget(rows, Fraction(objective), days * DAY, at) for at, _ in rows]
    assert left == [expected.allowed - expected.bad for expected in budgets]
    assert len(set(left)) > 1
