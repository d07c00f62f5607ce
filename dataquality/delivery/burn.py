"""Burn rules: a budget that is used so fast that nobody should wait for its end. For dense cadences only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from dq.contracts.shared.outcome import CycleStatus

DENSE = 100
"""With fewer cycles in its window, a product's misses are too few to have a rate."""

_AT_LEAST = 3


@dataclass(frozen=True, slots=True)
class BurnRule:
    """`factor` times the promised rate of misses over the last `long` cycles, and one of the last `short`."""

    name: str
    long: int
    short: int
    factor: int

    def misses(self, objective: Fraction) -> int | None:
        """How many of the long cycles make it fire; None where it never can, since not even all would."""
        rate = self.factor * (1 - objective)
        return max(_AT_LEAST, ceil(rate * self.long)) if rate < 1 else None

    def fires(self, statuses: Sequence[CycleStatus], objective: Fraction) -> bool:
        """Whether it does, over cycles that are oldest first."""
        misses = self.misses(objective)
        bad = sum(status.bad for status in statuses[-self.long :])
        return misses is not None and bad >= misses and any(status.bad for status in statuses[-self.short :])


RULES = (BurnRule("fast", 24, 4, 6), BurnRule("slow", 96, 12, 3), BurnRule("trend", 288, 24, 1))


def burning(statuses: Sequence[CycleStatus], objective: Fraction) -> tuple[str, ...]:
    """The rules that fire over the cycles of a window, oldest first; none for a sparse cadence.

    Every expected cycle counts among the last ones, whatever became of it.
    """
    if len(statuses) < DENSE:
        return ()
    return tuple(rule.name for rule in RULES if rule.fires(statuses, objective))
