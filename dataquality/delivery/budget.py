"""Error budgets of delivery SLOs, counted in cycles, with burn rates and budget events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from operator import attrgetter

from sqlalchemy import Connection

from dq.contracts.incident import Breach, CycleStatus, IncidentKey, Recovery, Resolution
from dq.contracts.outcome import Severity
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle_store import EmitEvent
from dq.dataquality.delivery.tables import Key

# Burn rate rules, for SLOs with many cycles in their window.

MIN_CYCLES = 100
"""Minimum number of cycles in the window for burn rates."""

_MIN_MISSES = 3


@dataclass(frozen=True, slots=True)
class BurnRule:
    """Fires at `factor` times the allowed miss rate in the last `long` cycles, with a miss in the last
    `short`.
    """

    name: str
    long: int
    short: int
    factor: int

    def min_misses(self, objective: Fraction) -> int | None:
        """Return the minimum misses in the long window, or None if the rule cannot fire for this
        objective.
        """
        rate = self.factor * (1 - objective)
        return max(_MIN_MISSES, ceil(rate * self.long)) if rate < 1 else None

    def is_firing(self, statuses: Sequence[CycleStatus], objective: Fraction) -> bool:
        """True if the rule fires for these cycles, oldest first."""
        min_misses = self.min_misses(objective)
        bad = sum(status.bad for status in statuses[-self.long :])
        return (
            min_misses is not None
            and bad >= min_misses
            and any(status.bad for status in statuses[-self.short :])
        )


RULES = (BurnRule("fast", 24, 4, 6), BurnRule("slow", 96, 12, 3), BurnRule("trend", 288, 24, 1))


def firing_rules(statuses: Sequence[CycleStatus], objective: Fraction) -> tuple[str, ...]:
    """Return the names of the rules that fire for a window's cycles, oldest first; empty with too few cycles.

    Cycles of every status count for the length of the windows.
    """
    if len(statuses) < MIN_CYCLES:
        return ()
    return tuple(rule.name for rule in RULES if rule.is_firing(statuses, objective))


# Error budgets.


class CycleCounts:
    """Numbers of good and bad cycles."""

    __slots__ = ()
    good: int
    bad: int

    @property
    def attainment(self) -> Fraction | None:
        """Share of good cycles, or None if no cycle counted."""
        counted = self.good + self.bad
        return Fraction(self.good, counted) if counted else None


@dataclass(frozen=True, slots=True)
class Budget(CycleCounts):
    """Error budget of a rolling window.

    `allowed` is how many of `good + bad` may be bad, and `first_miss_at` the number of cycles from which on
    one miss is allowed, or None if no miss ever is. Excused, unknown and pending cycles do not count.
    `next_returns_at` is when the oldest miss leaves the window, or None without a miss. `burning` are
    the names of the firing burn rules, and `consecutive_misses` counts the misses since the last good cycle.
    """

    good: int
    bad: int
    allowed: int
    next_returns_at: datetime | None
    first_miss_at: int | None = None
    burning: tuple[str, ...] = ()
    consecutive_misses: int = 0

    @property
    def used(self) -> Fraction | None:
        """Used share of the allowed misses, or None if no miss is allowed."""
        return Fraction(self.bad, self.allowed) if self.allowed else None

    @property
    def is_half_used(self) -> bool:
        """True if there is a miss and at least half of the allowed misses are used."""
        return self.bad >= 1 and 2 * self.bad >= self.allowed

    @property
    def is_exhausted(self) -> bool:
        """True if there were more misses than allowed."""
        return self.bad > self.allowed

    def as_text(self) -> str:
        """Return the budget as text: `1 of 4 misses used, the next returns 2026-12-03`."""
        if self.attainment is None:
            return "no deliveries counted in the window"
        if self.allowed and self.is_exhausted:
            text = f"error budget exhausted: {self.bad} {_misses(self.bad)}, {self.allowed} allowed"
        elif self.allowed:
            text = f"error budget: {self.bad} of {self.allowed} {_misses(self.allowed)} used"
        elif self.first_miss_at is None:
            text = f"{self.bad} {_misses(self.bad)}, none allowed"
        else:
            cycles = self.good + self.bad
            text = f"{self.bad} {_misses(self.bad)} in {cycles} cycle{'' if cycles == 1 else 's'}"
            text += f" (budget starts at {self.first_miss_at} cycles)"
        if self.next_returns_at is not None:
            text += f"{';' if self.is_exhausted else ','} 1 restored on {self.next_returns_at:%Y-%m-%d}"
        return text


def budget(
    rows: Iterable[tuple[datetime, CycleStatus]],
    objective: Decimal | Fraction,
    window: timedelta,
    now: datetime,
) -> Budget:
    """Return the budget at `now` from (breach_at, status) rows in any order, all instants aware.

    A row counts while now − window < breach_at <= now. `objective` is a share, e.g. Decimal("0.95"), above 0
    and at most 1, else ValueError. The arithmetic is exact, so 100 cycles at 0.99 allow 1 miss.
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
        burning=firing_rules([status for _, status in sorted(counted)], target) if misses else (),
        consecutive_misses=sum(last_good is None or breach_at > last_good for breach_at in misses),
    )


def misses_left(
    rows: Sequence[tuple[datetime, CycleStatus]], objective: Decimal | Fraction, window: timedelta
) -> list[int]:
    """Return for each row the misses left in the budget at its breach instant, negative if there were more
    than allowed.

    Rows are (breach_at, status) in the order of breach_at, and count as in `budget`.
    """
    misses, cycles = (1 - Fraction(objective)).as_integer_ratio()
    left: list[int] = []
    good = bad = first = 0
    for breach_at, status in rows:
        good += status.good
        bad += status.bad
        while rows[first][0] <= breach_at - window:
            good -= rows[first][1].good
            bad -= rows[first][1].bad
            first += 1
        left.append((good + bad) * misses // cycles - bad)
    return left


def allowed_misses(counted: int, objective: Fraction) -> int:
    """Return how many of `counted` cycles may be bad under an objective in (0, 1]; exact."""
    return floor(counted * (1 - objective))


def _misses(number: int) -> str:
    return "miss" if number == 1 else "misses"


# Budget events: half used, exhausted, burning too fast, and recovered.
#
# Only if the objective allows a miss with the current number of cycles; otherwise each miss has its own
# alert.

HALF, EXHAUSTED = "half", "exhausted"
# Subjects of the incident by level. A stored level is followed by `+` and the first letters of firing burn
# rules. Only one level is open at a time, so that title and figures are current.
_LEVELS: Mapping[str, tuple[str, ...]] = {"": (), HALF: (HALF,), EXHAUSTED: (EXHAUSTED,)}
# A store of an earlier release may have both levels open where the budget is exhausted.
_POSSIBLY_OPEN: Mapping[str, tuple[str, ...]] = {**_LEVELS, EXHAUSTED: (EXHAUSTED, HALF)}
_RANK = attrgetter("rank")
_BURNS = {rule.name[0]: rule.name for rule in RULES}


def _subjects(usage: str | None, levels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    used, _, letters = (usage or "").partition("+")
    return (*levels[used], *(_BURNS[letter] for letter in letters))


def budgets(tx: Connection, slos: Iterable[Slo], now: datetime) -> dict[Key, Budget]:
    """Return the budgets of these SLOs at `now`, by key."""
    slos_by_key = {slo.key: slo for slo in slos}
    if not slos_by_key:
        return {}
    result: dict[Key, Budget] = {}
    # One query per window length, because frequent SLOs have too many cycles in the window of another one.
    for window in {slo.window for slo in slos_by_key.values()}:
        slos_in_window = {key: slo for key, slo in slos_by_key.items() if slo.window == window}
        grace = max(slo.grace for slo in slos_in_window.values())
        rows = cycle_store.counted_cycles(tx, slos_in_window, now - window, now - window - grace)
        result |= {key: budget(rows[key], slo.objective, window, now) for key, slo in slos_in_window.items()}
    return result


def emit_budget_events(
    tx: Connection, slos: Iterable[Slo], current_budgets: Mapping[Key, Budget], now: datetime, emit: EmitEvent
) -> None:
    """Emit events for budgets whose level differs from the notified one."""
    notified_levels = cycle_store.notified_budgets(tx)
    for slo in slos:
        previous_level, level = notified_levels.get(slo.key), _usage_level(current_budgets[slo.key])
        if previous_level == level:
            continue
        open_subjects = _subjects(level, _LEVELS)
        for subject in open_subjects:
            if subject not in _subjects(previous_level, _LEVELS):
                emit(tx, _breach(slo, subject, current_budgets[slo.key], now))
        severity = max((_severity(slo, subject) for subject in open_subjects), key=_RANK, default=None)
        for subject in _subjects(previous_level, _POSSIBLY_OPEN):
            if subject not in open_subjects:
                facts = (("budget", current_budgets[slo.key].as_text()),)
                title = f"{slo.object.name}: error budget recovered"
                emit(
                    tx, Recovery(_incident_key(slo.key), subject, now, facts, title=title, severity=severity)
                )
        cycle_store.save_budget_level(tx, slo.key, level)


def withdraw_budget(
    tx: Connection, key: Key, level: str | None, reason: str, now: datetime, emit: EmitEvent
) -> None:
    """Emit recoveries for the open budget incidents of a withdrawn SLO."""
    for subject in _subjects(level, _POSSIBLY_OPEN):
        facts = (("withdrawn", reason),)
        title = f"{key[1]}: error budget no longer tracked"
        emit(tx, Recovery(_incident_key(key), subject, now, facts, Resolution.WITHDRAWN, title))


def _usage_level(budget: Budget) -> str | None:
    # With one allowed miss, the first has its own alert, and the second exhausts the budget.
    is_half = budget.is_half_used and budget.allowed > 1
    level = "" if not budget.allowed else EXHAUSTED if budget.is_exhausted else HALF if is_half else ""
    letters = "".join(name[0] for name in budget.burning)
    return f"{level}+{letters}" if letters else level or None


def _incident_key(key: Key) -> IncidentKey:
    contract, object_name, slo = key
    return IncidentKey(contract, object_name, f"{slo}:budget")


def _severity(slo: Slo, subject: str) -> Severity:
    # A fast burn uses the budget up before a warning is read.
    return slo.severity if subject in (EXHAUSTED, "fast") else Severity.WARNING


def _breach(slo: Slo, subject: str, budget: Budget, now: datetime) -> Breach:
    half_text = "error budget used up" if budget.bad == budget.allowed else "50% of error budget used"
    burns = f"error budget burn rate too high ({subject})"
    state = {HALF: half_text, EXHAUSTED: "error budget exhausted"}.get(subject, burns)
    return Breach(
        key=_incident_key(slo.key),
        severity=_severity(slo, subject),
        subject=subject,
        title=f"{slo.object.name}: {state}",
        occurred_at=now,
        facts=(
            ("promised", f"{slo.delivery.objective} of the deliveries in {slo.delivery.window} on time"),
            ("found", f"{budget.good} of {budget.good + budget.bad}"),
            ("budget", budget.as_text()),
        ),
    )
