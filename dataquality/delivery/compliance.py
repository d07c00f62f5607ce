"""How promises stand over their windows: each SLO, what it is counted by, and each product in metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from sqlalchemy import Connection, and_, case, delete, func, insert, literal, select

from dq.contracts.outcome import CycleStatus
from dq.contracts.slo import Slo
from dq.dataquality.delivery.budget import Budget, Counted, allowed_misses, budget
from dq.dataquality.delivery.cycle import Kept, disagreeing
from dq.dataquality.delivery.cycle_store import LATELY, usual_delay
from dq.dataquality.delivery.notify import span
from dq.dataquality.delivery.tables import KEY, Key, cycle, is_of, key_of, parts, slo_terms
from dq.store.schema import UtcDateTime

# How promises stand: kept and broken, the budget, the run that lasts, the trend, and when deliveries come.
#
# All of it follows from the rows of cycles and an instant.


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
class GroupStanding(Counted):
    """Promises together: of a product, of a domain, or all. `burnt` budgets are exhausted."""

    name: str
    products: int
    promises: int
    good: int
    bad: int
    burnt: int


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


# What is said of a promise's standing: figures in words, and all of it as JSON values.
#
# Commands and pages take it from here, so that they say the same.

JsonObject = dict[str, object]


def percent(share: Fraction | None) -> str:
    """A share as text; never rounded up to a whole that it is not."""
    if share is None:
        return "-"
    return f"{int(share * 1000) / 10:.1f}%"


def beside(one: Standing) -> str:
    """What else is known of a promise in one line; the empty text for nothing."""
    said = []
    if one.streak is not None and one.streak.length > 1:
        said.append(f"the last {one.streak.length} {'in time' if one.streak.good else 'missed'}")
    if one.trend is not None:
        points = float(one.trend) * 100
        said.append("as in the window before" if not points else f"{points:+.1f} points on the window before")
    if one.usual is not None:
        said.append(f"usually {span(one.usual)} {'before' if one.usual.total_seconds() < 0 else 'after'} due")
    if one.present is not None:
        said.append(f"there {percent(one.present)} of the time")
    said += [f"burns too fast ({rule})" for rule in one.budget.burning]
    return ", ".join(said)


def promise_as_dict(one: Standing) -> JsonObject:
    """A promise for machines, without its cycles."""
    return {
        "contract": one.slo.contract.key,
        "object": one.slo.object.name,
        "slo": one.slo.id,
        "objective": float(one.slo.objective),
        "attainment": float(one.budget.attainment) if one.budget.attainment is not None else None,
        "good": one.budget.good,
        "bad": one.budget.bad,
        "allowed": one.budget.allowed,
        "budget": one.budget.line(),
        "streak": {"length": one.streak.length, "good": one.streak.good} if one.streak else None,
        "trend": float(one.trend) if one.trend is not None else None,
        "usual_minutes": one.usual.total_seconds() / 60 if one.usual is not None else None,
        "present": float(one.present) if one.present is not None else None,
        "burning": list(one.budget.burning),
    }


def group_as_dict(one: GroupStanding) -> JsonObject:
    """A group for machines."""
    return {
        "name": one.name,
        "products": one.products,
        "promises": one.promises,
        "good": one.good,
        "bad": one.bad,
        "attainment": float(one.attainment) if one.attainment is not None else None,
        "exhausted": one.burnt,
    }


def cycle_as_dict(kept: Kept) -> JsonObject:
    """A cycle for machines, with what each source said of it."""
    return {
        "due_at": kept.cycle.due_at.isoformat(),
        "breach_at": kept.cycle.breach_at.isoformat(),
        "status": kept.status,
        "delivered_at": _iso(kept.delivered_at),
        "source": kept.source,
        "first_seen_at": _iso(kept.first_seen_at),
        "arriving_since": _iso(kept.arriving_since),
        "gone_since": _iso(kept.gone_since),
        "delivered_anew_at": _iso(kept.anew_at),
        "evidence": [
            {"source": one.source, "delivered_at": _iso(one.delivered_at), "rows": one.rows}
            for one in kept.claims
        ],
        "disagreeing": [one.source for one in disagreeing(kept.claims, kept.source)],
    }


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None


# What each watched promise is counted by, kept so that whoever reads the store needs no contract for it.

Terms = dict[Key, tuple[str, str, int]]


def terms_of(slos: Iterable[Slo]) -> Terms:
    """From an SLO's key to its product (the contract's key where none is named), objective and window."""
    return {
        slo.key: (
            slo.contract.data_product or slo.contract.key,
            str(slo.objective),
            round(slo.window.total_seconds()),
        )
        for slo in slos
    }


def stored_terms(tx: Connection, contracts: Collection[str]) -> Terms:
    """What is kept of these contracts."""
    found: Terms = {}
    for some in parts(sorted(contracts)):
        for row in tx.execute(select(slo_terms).where(slo_terms.c.contract.in_(some))):
            found[row.contract, row.object, row.slo] = (row.product, row.objective, row.window_seconds)
    return found


def changed_terms(kept: Terms, wanted: Terms, ended: Callable[[Key], str | None]) -> Terms:
    """What has to be written: new terms, and of what is promised no more, none, shown as an empty product.

    What is neither wanted nor `ended` stays: its contract could not be understood today.
    """
    news = {key: terms for key, terms in wanted.items() if kept.get(key) != terms}
    return news | {key: ("", "", 0) for key in kept if key not in wanted and ended(key) is not None}


def write_terms(tx: Connection, news: Terms) -> None:
    """Writes what `changed` gave."""
    for key in news:
        tx.execute(delete(slo_terms).where(is_of(slo_terms, key)))
    names = (*KEY, "product", "objective", "window_seconds")
    rows = [dict(zip(names, (*key, *terms), strict=True)) for key, terms in news.items() if terms[0]]
    if rows:
        tx.execute(insert(slo_terms), rows)


# How all promises stand, counted by the database: what machines watch, where no cycle is looked at.

GOOD = [status for status in CycleStatus if status.good]
BAD = [status for status in CycleStatus if status.bad]


@dataclass(frozen=True, slots=True)
class SloTally(Counted):
    """How many cycles of an SLO's window were good and bad, as `budget` counts them."""

    product: str
    contract: str
    object: str
    slo: str
    objective: Fraction
    good: int
    bad: int

    @property
    def allowed(self) -> int:
        """How many of the counted cycles may be bad."""
        return allowed_misses(self.good + self.bad, self.objective)


def tallies(tx: Connection, now: datetime) -> Iterator[SloTally]:
    """Every watched promise at an aware instant, in the order of its key."""
    terms, cycles = slo_terms.c, cycle.c
    windows = tx.scalars(select(terms.window_seconds).distinct()).all()
    if not windows:
        return
    since = case(
        {seconds: literal(now - timedelta(seconds=seconds), UtcDateTime) for seconds in windows},
        value=terms.window_seconds,
    )
    mine = and_(
        is_of(cycle, key_of(slo_terms)),
        cycles.breach_at > since,
        cycles.breach_at <= now,
        cycles.status.in_([*GOOD, *BAD]),
    )
    found = (
        select(
            slo_terms,
            func.count(case((cycles.status.in_(GOOD), 1))).label("good"),
            func.count(case((cycles.status.in_(BAD), 1))).label("bad"),
        )
        .select_from(slo_terms.outerjoin(cycle, mine))
        .group_by(*slo_terms.c)
        .order_by(*key_of(slo_terms))
    )
    for row in tx.execute(found):
        objective = Fraction(row.objective)
        yield SloTally(row.product, row.contract, row.object, row.slo, objective, row.good, row.bad)


def still_open(tx: Connection) -> dict[CycleStatus, int]:
    """How many cycles are missing, and how many unknown."""
    counted = select(cycle.c.status, func.count()).where(
        cycle.c.status.in_((CycleStatus.MISSING, CycleStatus.UNKNOWN))
    )
    rows = {CycleStatus(status): count for status, count in tx.execute(counted.group_by(cycle.c.status))}
    return {status: rows.get(status, 0) for status in (CycleStatus.MISSING, CycleStatus.UNKNOWN)}
