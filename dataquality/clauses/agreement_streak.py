"""Cycles in a row in which two sides agree, from the results of their comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dq.contracts.agreement import Agreement
from dq.contracts.check_result import AgreementStreak
from dq.dataquality.clauses.quality_rule import is_date_part, partition_time
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.run_context import Partition, PastComparison

# Columns of partitions that divide a day into cycles.
_PARTS_OF_DAY = ("hour", "minute")
_DIGITS = 20

CycleKey = tuple[datetime, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Cycle:
    """The newest result of each partition of a cycle: True, False, or None if it was not compared."""

    results: dict[Partition, bool | None] = field(default_factory=dict)
    labels: dict[Partition, str] = field(default_factory=dict)

    def first(self, result: bool | None) -> str:
        """Return the label of the first partition with this result, or ""."""
        return next((self.labels[part] for part in sorted(self.results) if self.results[part] is result), "")

    @property
    def agrees(self) -> bool | None:
        """False if a partition disagrees, else None if one was not compared."""
        results = self.results.values()
        return False if False in results else None if None in results else True


def streak(agreement: Agreement, comparisons: Iterable[PastComparison]) -> AgreementStreak:
    """Return the streak of a rule from the results of its comparisons, oldest first.

    The newest result of each partition counts, whichever order they were compared in. Partitions of one date
    (and hour) are one cycle. Without dates, the runs of one day in UTC are. A delivery without a comparison
    is a gap if a later cycle was compared. Cycles that were not compared end the streak, but are not among
    the last cycles in which a disagreement is looked for.
    """
    cycles = [cycle for _, cycle in sorted(_cycles(agreement, comparisons).items())]
    compared = [cycle for cycle in cycles if cycle.agrees is not None][-agreement.cycles :]
    disagreement = next((cycle.first(False) for cycle in compared if not cycle.agrees), "")
    agreeing, gap = 0, ""
    for cycle in reversed(cycles):
        if not cycle.agrees:
            gap = "" if cycle.agrees is False else cycle.first(None)
            break
        agreeing += 1
    return AgreementStreak(agreeing, agreement.cycles, disagreement, gap)


def _cycles(agreement: Agreement, comparisons: Iterable[PastComparison]) -> dict[CycleKey, _Cycle]:
    """Return the cycles from the first to the last one that was compared."""
    own = list(comparisons)
    if any(_time_of(comparison.partition) for comparison in own):
        # A run of the whole table is not one of the cycles of its partitions.
        own = [comparison for comparison in own if _time_of(comparison.partition)]
    cycles: dict[CycleKey, _Cycle] = {}
    for comparison in own:
        if comparison.compared:
            _add(
                cycles,
                comparison,
                comparison.agrees if comparison.definition == agreement.definition else None,
            )
    if cycles:
        first, last = min(cycles), max(cycles)
        for comparison in own:
            if not comparison.compared and first < _key(comparison) < last:
                _add(cycles, comparison, None, replace=False)
    return cycles


def _add(
    cycles: dict[CycleKey, _Cycle], comparison: PastComparison, agrees: bool | None, *, replace: bool = True
) -> None:
    cycle = cycles.setdefault(_key(comparison), _Cycle())
    partition = tuple(sorted((column.lower(), value) for column, value in comparison.partition))
    if replace or partition not in cycle.results:
        cycle.results[partition] = agrees
        cycle.labels[partition] = label(comparison.partition) or f"{_day_of(comparison):%Y-%m-%d}"


def _key(comparison: PastComparison) -> CycleKey:
    """Return the time of a cycle, which orders them."""
    parts = (
        (column.lower(), value.zfill(_DIGITS))
        for column, value in comparison.partition
        if is_date_part(column, value) or column.lower() in _PARTS_OF_DAY
    )
    day = _time_of(comparison.partition)
    return (day, tuple(sorted(parts))) if day is not None else (_day_of(comparison), ())


def _time_of(partition: Partition) -> datetime | None:
    """Return the day of a partition, the first one of a month, or None if it has no date."""
    return partition_time(partition) or partition_time((*partition, ("day", "01")))


def _day_of(comparison: PastComparison) -> datetime:
    """Return the start of the day of a run, in UTC."""
    at = comparison.measured_at.astimezone(UTC)
    return at.replace(hour=0, minute=0, second=0, microsecond=0)
