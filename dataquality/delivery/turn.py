"""A cycle that moves, and what is told of its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.shared.outcome import Breach, CycleStatus, End, IncidentKey, Recovery
from dq.dataquality.delivery import blindness, ledger, mass
from dq.dataquality.delivery.ledger import Kept
from dq.dataquality.delivery.status import CycleVerdict

# How a promise that was broken ended where nothing was delivered.
_ENDS = {
    CycleStatus.NEVER: End.GIVEN_UP,
    CycleStatus.EXCUSED: End.EXCUSED,
    CycleStatus.WITHDRAWN: End.WITHDRAWN,
}

Tell = Callable[[Connection, Breach | Recovery], object]
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """A cycle that moved from one status to another in this tick."""

    kept: Kept
    after: CycleStatus
    reason: str


def tell_platform(tx: Connection, turns: Iterable[Turn], now: datetime, tell: Tell) -> None:
    """Tells of every cause of blindness, and of every root of many misses, behind which nothing is left."""
    turned = list(turns)
    for cause in sorted({turn.kept.blind for turn in turned if turn.kept.blind}):
        if not ledger.any_blind(tx, cause):
            tell(tx, blindness.returned(cause, now))
    for root in sorted({turn.kept.held for turn in turned if turn.kept.held}):
        if not ledger.any_held(tx, root):
            tell(tx, mass.over(root, now))


def ended(key: IncidentKey, kept: Kept, judged: CycleVerdict, now: datetime) -> Recovery:
    end = _ENDS[judged.status]
    subject, facts = kept.cycle.due_at.isoformat(), ((end.replace("_", " "), judged.reason),)
    return Recovery(key, subject, now, facts, end)
