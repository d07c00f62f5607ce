"""Error budgets of delivery SLOs: counted in whole cycles, their burn rates, and how they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from operator import attrgetter

from sqlalchemy import Connection

from dq.contracts.outcome import Breach, CycleStatus, End, IncidentKey, Recovery, Severity
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle_store import Tell
from dq.dataquality.delivery.tables import Key

# Burn rules: a budget that is used so fast that nobody should wait for its end. For dense cadences only.

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


# The error budget of a delivery SLO, counted in whole cycles.


class Counted:
    """Cycles that count, by how they ended."""

    __slots__ = ()
    good: int
    bad: int

    @property
    def attainment(self) -> Fraction | None:
        """The share of good cycles; None where none counted."""
        counted = self.good + self.bad
        return Fraction(self.good, counted) if counted else None


@dataclass(frozen=True, slots=True)
class Budget(Counted):
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


# An error budget that is half used, exhausted, or burns too fast, is told; and when it has recovered.
#
# Only where the objective allows a miss by now: of a product too young for one, each miss is told itself.

HALF, EXHAUSTED = "half", "exhausted"
# Subjects of the incident by how much of the budget is used, before the `+` and the first letters of burn
# rules. One level is broken at a time, so that title and figures are those of the present one.
_LEVELS: Mapping[str, tuple[str, ...]] = {"": (), HALF: (HALF,), EXHAUSTED: (EXHAUSTED,)}
# A store of an earlier release may have both levels open where the budget is exhausted.
_POSSIBLY_OPEN: Mapping[str, tuple[str, ...]] = {**_LEVELS, EXHAUSTED: (EXHAUSTED, HALF)}
_RANK = attrgetter("rank")
_BURNS = {rule.name[0]: rule.name for rule in RULES}


def _subjects(usage: str | None, levels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    used, _, letters = (usage or "").partition("+")
    return (*levels[used], *(_BURNS[letter] for letter in letters))


def budgets(tx: Connection, slos: Iterable[Slo], now: datetime) -> dict[Key, Budget]:
    """The budgets of these SLOs at `now`, asked for together."""
    wanted = {slo.key: slo for slo in slos}
    if not wanted:
        return {}
    found: dict[Key, Budget] = {}
    # Asked for by window: who delivers all day has many cycles in another one's.
    for window in {slo.window for slo in wanted.values()}:
        slos_of_it = {key: slo for key, slo in wanted.items() if slo.window == window}
        grace = max(slo.grace for slo in slos_of_it.values())
        rows = cycle_store.counted_cycles(tx, slos_of_it, now - window, now - window - grace)
        found |= {key: budget(rows[key], slo.objective, window, now) for key, slo in slos_of_it.items()}
    return found


def tell_budgets(
    tx: Connection, slos: Iterable[Slo], found: Mapping[Key, Budget], now: datetime, tell: Tell
) -> None:
    """Tells of every budget that is used otherwise than was told of it last."""
    told = cycle_store.budgets_told(tx)
    for slo in slos:
        before, after = told.get(slo.key), _used(found[slo.key])
        if before == after:
            continue
        broken = _subjects(after, _LEVELS)
        for subject in broken:
            if subject not in _subjects(before, _LEVELS):
                tell(tx, _breach(slo, subject, found[slo.key], now))
        severity = max((_severity(slo, subject) for subject in broken), key=_RANK, default=None)
        for subject in _subjects(before, _POSSIBLY_OPEN):
            if subject not in broken:
                facts = (("budget", found[slo.key].line()),)
                title = f"the error budget of {slo.object.name} has recovered"
                tell(tx, Recovery(_incident(slo.key), subject, now, facts, title=title, severity=severity))
        cycle_store.note_budget(tx, slo.key, after)


def withdraw_budget(
    tx: Connection, key: Key, told: str | None, reason: str, now: datetime, tell: Tell
) -> None:
    """Ends what was told of the budget of a promise that is no more."""
    for subject in _subjects(told, _POSSIBLY_OPEN):
        facts = (("withdrawn", reason),)
        title = f"the error budget of {key[1]} is promised no more"
        tell(tx, Recovery(_incident(key), subject, now, facts, End.WITHDRAWN, title))


def _used(found: Budget) -> str | None:
    # Of one allowed miss, the first is told itself, and the second exhausts.
    half = found.half_used and found.allowed > 1
    used = "" if not found.allowed else EXHAUSTED if found.exhausted else HALF if half else ""
    letters = "".join(name[0] for name in found.burning)
    return f"{used}+{letters}" if letters else used or None


def _incident(key: Key) -> IncidentKey:
    contract, one, slo = key
    return IncidentKey(contract, one, f"{slo}:budget")


def _severity(slo: Slo, subject: str) -> Severity:
    # What burns fast is over before anybody has looked.
    return slo.severity if subject in (EXHAUSTED, "fast") else Severity.WARNING


def _breach(slo: Slo, subject: str, found: Budget, now: datetime) -> Breach:
    half = "is used up" if found.bad == found.allowed else "is half used"
    state = {HALF: half, EXHAUSTED: "is exhausted"}.get(subject, f"burns too fast ({subject})")
    return Breach(
        key=_incident(slo.key),
        severity=_severity(slo, subject),
        subject=subject,
        title=f"the error budget of {slo.object.name} {state}",
        at=now,
        facts=(
            ("promised", f"{slo.delivery.objective} of the deliveries in {slo.delivery.window} in time"),
            ("seen", f"{found.good} of {found.good + found.bad}"),
            ("budget", found.line()),
        ),
    )
