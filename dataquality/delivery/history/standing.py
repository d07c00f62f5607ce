"""How promises stand: kept and broken, the budget, the run that lasts, the trend, and when deliveries come.

All of it follows from the rows of cycles and an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from dq.contracts.slo import Slo
from dq.dataquality.delivery.budget import Budget, budget
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.ledger import LATELY, usual_delay


@dataclass(frozen=True, slots=True)
class Streak:
    """The last cycles that count and ended alike: how many, and whether they were good."""

    length: int
    good: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How one SLO stands: its cycles, oldest first, its budget, and that of the window before.

    `usual` is the median of delivery minus due of the last deliveries, negative when early; None for too few.
    `present` is the second service level: the share of time, in the window, in which the newest cycle that
    was due was there; None where nothing of it is known.
    """

    slo: Slo
    cycles: Sequence[Kept]
    budget: Budget
    before: Budget
    streak: Streak | None
    usual: timedelta | None
    present: Fraction | None

    @property
    def trend(self) -> Fraction | None:
        """How much of the share of good cycles was won (or lost) since the window before."""
        if self.budget.attainment is None or self.before.attainment is None:
            return None
        return self.budget.attainment - self.before.attainment


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """Promises together: of a product, of a domain, or all. `burnt` budgets are exhausted."""

    name: str
    products: int
    promises: int
    good: int
    bad: int
    burnt: int

    @property
    def attainment(self) -> Fraction | None:
        """The share of good cycles of all; None where none counted."""
        counted = self.good + self.bad
        return Fraction(self.good, counted) if counted else None


def standing(slo: Slo, cycles: Sequence[Kept], now: datetime) -> Standing:
    """How an SLO stands at an aware instant, by its cycles, oldest first."""
    rows = [(kept.cycle.breach_at, kept.status) for kept in cycles]
    return Standing(
        slo,
        cycles,
        budget(rows, slo.objective, slo.window, now),
        budget(rows, slo.objective, slo.window, now - slo.window),
        _streak(cycles),
        usual_delay([kept for kept in cycles if kept.delivered_at is not None][-LATELY:]),
        presence(cycles, now - slo.window, now),
    )


def grouped(standings: Iterable[Standing], name: Callable[[Slo], str]) -> list[GroupStanding]:
    """The standings by what `name` calls them, in the order of the names."""
    groups: dict[str, list[Standing]] = {}
    for one in standings:
        groups.setdefault(name(one.slo), []).append(one)
    return [
        GroupStanding(
            called,
            products=len({one.slo.contract.key for one in those}),
            promises=len(those),
            good=sum(one.budget.good for one in those),
            bad=sum(one.budget.bad for one in those),
            burnt=sum(one.budget.exhausted for one in those),
        )
        for called, those in sorted(groups.items())
    ]


def _streak(cycles: Sequence[Kept]) -> Streak | None:
    ends = [kept.status.good for kept in cycles if kept.status.good or kept.status.bad]
    if not ends:
        return None
    length = next((back for back, good in enumerate(reversed(ends)) if good is not ends[-1]), len(ends))
    return Streak(length, ends[-1])


def presence(cycles: Sequence[Kept], start: datetime, end: datetime) -> Fraction | None:
    """The share of the time in (start, end] in which the newest cycle that was due was there.

    A cycle's time is from its due instant to the next one's. The time of cycles that are excused, withdrawn
    or unknown is left out, and so is that before the first one.
    """
    due = [kept.cycle.due_at for kept in cycles]
    counted = there = timedelta(0)
    for kept, (begin, until) in zip(cycles, pairwise([*due, end]), strict=True):
        begin, until = max(begin, start), min(until, end)
        # One that is in grace still is not there yet, and is no miss either.
        if begin >= until or not (kept.status.good or kept.status.bad or kept.status == "pending"):
            continue
        counted += until - begin
        if kept.delivered_at is not None:
            there += max(timedelta(0), until - max(begin, kept.delivered_at))
    return Fraction(there // _TICK, counted // _TICK) if counted >= _TICK else None


_TICK = timedelta(seconds=1)
