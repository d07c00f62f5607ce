"""The error budget of a delivery SLO, counted in whole cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.burn import burning


@dataclass(frozen=True, slots=True)
class Budget:
    """Cycles of a rolling window against an objective.

    `allowed` is how many of `good + bad` may be bad, and `first_miss_at` of how many cycles the first one is
    allowed; None: of none, however many there are. Cycles that are excused, unknown or pending do
    not count. `next_returns_at` is when the oldest miss leaves the window, None without a miss. `burning` are
    the burn rules that fire, by name, and `in_a_row` is how many of the last cycles that count were missed.
    """

    good: int
    bad: int
    allowed: int
    next_returns_at: datetime | None
    first_miss_at: int | None = None
    burning: tuple[str, ...] = ()
    in_a_row: int = 0

    @property
    def used(self) -> Fraction | None:
        """The share of the allowed misses that is used; None where no miss is allowed."""
        return Fraction(self.bad, self.allowed) if self.allowed else None

    @property
    def half_used(self) -> bool:
        """Whether there is a miss and at least half of the allowed ones are used."""
        return self.bad >= 1 and 2 * self.bad >= self.allowed

    @property
    def exhausted(self) -> bool:
        """Whether there were more misses than allowed."""
        return self.bad > self.allowed

    @property
    def attainment(self) -> Fraction | None:
        """The share of good cycles; None where none counted."""
        counted = self.good + self.bad
        return Fraction(self.good, counted) if counted else None

    def line(self) -> str:
        """One line for people: `1 of 4 misses used, the next returns 2026-12-03`."""
        if self.attainment is None:
            return "no cycle counted yet"
        if self.allowed:
            text = f"{self.bad} of {self.allowed} {_misses(self.allowed)} used"
            text += ", the budget is exhausted" if self.exhausted else ""
        elif self.first_miss_at is None:
            text = f"{self.bad} {_misses(self.bad)}, and none is allowed"
        else:
            cycles = self.good + self.bad
            text = f"{self.bad} {_misses(self.bad)} in {cycles} cycle{'' if cycles == 1 else 's'}"
            text += f"; none is allowed in fewer than {self.first_miss_at}"
        if self.next_returns_at is not None:
            text += f", the next returns {self.next_returns_at:%Y-%m-%d}"
        return text


def budget(
    rows: Iterable[tuple[datetime, CycleStatus]],
    objective: Decimal | Fraction,
    window: timedelta,
    now: datetime,
) -> Budget:
    """The budget at `now` from (breach_at, status) rows in any order, all instants aware.

    A row counts while now − window < breach_at <= now. `objective` is a share such as Decimal("0.95"),
    above 0 and at most 1, else ValueError; the arithmetic is exact, so 100 cycles at 0.99 allow 1 miss.
    """
    target = Fraction(objective)
    if not 0 < target <= 1:
        raise ValueError(f"objective {objective} is not a share above 0 and at most 1")
    counted = [(breach_at, status) for breach_at, status in rows if now - window < breach_at <= now]
    good = sum(status.good for _, status in counted)
    misses = [breach_at for breach_at, status in counted if status.bad]
    last_good = max((breach_at for breach_at, status in counted if status.good), default=None)
    return Budget(
        good=good,
        bad=len(misses),
        allowed=allowed_misses(good + len(misses), target),
        next_returns_at=min(misses) + window if misses else None,
        first_miss_at=ceil(1 / (1 - target)) if target < 1 else None,
        burning=burning([status for _, status in sorted(counted)], target) if misses else (),
        in_a_row=sum(last_good is None or breach_at > last_good for breach_at in misses),
    )


def allowed_misses(counted: int, objective: Fraction) -> int:
    """How many of so many cycles may be bad under an objective in (0, 1]; exact."""
    return floor(counted * (1 - objective))


def _misses(number: int) -> str:
    return "miss" if number == 1 else "misses"
