"""Many misses at once under one root have one cause: the platform team is told first, the owners later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dq.contracts.shared.counts import counted, first_of
from dq.contracts.shared.outcome import Breach, CycleStatus, End, IncidentKey, Recovery, Severity
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.blindness import PLATFORM, root_of

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import Kept, Watched

GROUP = "misses"
HOLD = timedelta(minutes=15)
"""How long owners are not told of what is missing together with so much else."""

AT_LEAST, SHARE = 5, 0.3
_SUBJECT, _NAMED = "many", 5


@dataclass(frozen=True, slots=True)
class MassMiss:
    """Cycles of many promises under one root that are missing at once; `due` promises were due with them."""

    root: str
    cycles: tuple[Kept, ...]
    due: int

    @property
    def contracts(self) -> list[str]:
        """The contracts that are missing something, by name."""
        return sorted({kept.cycle.contract for kept in self.cycles})


def masses(tx: Connection, missing: Iterable[tuple[Watched, Kept]]) -> list[MassMiss]:
    """Where so much is missing that the root is suspect: of what is about to be told, by root.

    More than a share of the promises under the root that broke or were kept in the same time, and some at
    least. What was held before is not held again.
    """
    roots: dict[str, list[Kept]] = defaultdict(list)
    for one, kept in missing:
        if kept.held_until is None:
            roots[root_of(one)].append(kept)
    found = []
    for root, cycles in sorted(roots.items()):
        promises = {(kept.cycle.contract, kept.cycle.object, kept.cycle.slo) for kept in cycles}
        if len(promises) < AT_LEAST:
            continue
        breaches = [kept.cycle.breach_at for kept in cycles]
        due = max(ledger.promises_due(tx, root, min(breaches), max(breaches)), len(promises))
        if len(promises) > SHARE * due:
            found.append(MassMiss(root, tuple(cycles), due))
    return found


def breach(mass: MassMiss, now: datetime) -> Breach:
    """What the platform team is told at once."""
    return Breach(
        key=IncidentKey(PLATFORM, mass.root, GROUP),
        severity=Severity.ERROR,
        subject=_SUBJECT,
        title=f"much is missing at once under {mass.root}",
        at=now,
        facts=(
            ("missing", f"{len(mass.cycles)} deliveries, where {mass.due} promises were due"),
            ("products", first_of(mass.contracts, _NAMED)),
            ("owners", f"are told at {now + HOLD:%H:%M}Z of what has not come by then"),
        ),
    )


def over(root: str, ends: Mapping[CycleStatus, int], now: datetime) -> Recovery:
    """Return the end of the incident of a root under which no alert waits any more.

    Args:
        root: The lake root or bucket.
        ends: How many of the deliveries that were missing there have each status now.
        now: When it ended.
    """
    total = sum(ends.values())
    came = sum(ends.get(status, 0) for status in _DELIVERED)
    facts = (("now", ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in ends.items())),)
    key = IncidentKey(PLATFORM, root, GROUP)
    if came == total:
        title = f"all {counted(total, 'delivery', 'deliveries')} under {root} came"
        return Recovery(key, _SUBJECT, now, facts, title=title)
    for status, end, state in _OTHER_ENDS:
        if number := ends.get(status, 0):
            title = f"{number} of {total} under {root} {state}"
            return Recovery(key, _SUBJECT, now, facts, end, title)
    raise AssertionError(f"no end for {dict(ends)}")


_DELIVERED = (CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE, CycleStatus.LATE)
# The first that is there decides. Alerts of a cause upstream stand for those of the products below it, so
# that nothing here claims who was notified.
_OTHER_ENDS = (
    (CycleStatus.MISSING, End.HANDED_OVER, "still missing; incidents of their own tell of them"),
    (CycleStatus.UNKNOWN, End.HANDED_OVER, "cannot be seen; another incident tells of them"),
    (CycleStatus.PENDING, End.HANDED_OVER, "not due yet"),
    (CycleStatus.NEVER, End.GIVEN_UP, "never came"),
    (CycleStatus.WITHDRAWN, End.WITHDRAWN, "withdrawn"),
    (CycleStatus.EXCUSED, End.EXCUSED, "excused"),
)
