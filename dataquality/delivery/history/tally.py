"""How all promises stand, counted by the database: what machines watch, where no cycle is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from sqlalchemy import Connection, and_, case, func, literal, select

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.budget import allowed_misses
from dq.dataquality.delivery.state.keys import is_of, key_of
from dq.dataquality.delivery.state.tables import cycle, slo_terms
from dq.store.schema import UtcDateTime

GOOD = [status for status in CycleStatus if status.good]
BAD = [status for status in CycleStatus if status.bad]


@dataclass(frozen=True, slots=True)
class SloTally:
    """How many cycles of an SLO's window were good and bad, as `budget` counts them."""

    product: str
    contract: str
    object: str
    slo: str
    objective: Fraction
    good: int
    bad: int

    @property
    def attainment(self) -> Fraction | None:
        """The share of good cycles; None where none counted."""
        counted = self.good + self.bad
        return Fraction(self.good, counted) if counted else None

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
