"""Cycles as they stood at an earlier instant, from the changes that were written by then.

Every reader with `--as-of` takes its cycles from here. What was known then is what was stored then: a
verdict is not asked again, so that the past reads as it was printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.cycle import OPEN, Kept
from dq.dataquality.delivery.history.changes import StatusChange, change
from dq.dataquality.delivery.ledger import claims_of
from dq.dataquality.delivery.sources.evidence import Evidence, SourceAnswer
from dq.dataquality.delivery.state.keys import parts
from dq.dataquality.delivery.state.tables import cycle_event, cycle_state
from dq.dataquality.delivery.status import judge_on


def rewound(tx: Connection, cycles: Sequence[Kept], at: datetime | None) -> list[Kept]:
    """Return those of the cycles that were due by an instant, as they stood then, in the same order.

    Args:
        tx: A reading transaction.
        cycles: Cycles as they stand now.
        at: The instant; None leaves the cycles as they are.
    """
    if at is None:
        return list(cycles)
    due = [kept for kept in cycles if kept.known_at(at)]
    ids = [kept.id for kept in due]
    states, changes = _states(tx, ids, at), _changes(tx, ids)
    return [
        _as_stored(kept, states[kept.id]) if kept.id in states else _at(kept, changes.get(kept.id, ()), at)
        for kept in due
    ]


def _states(tx: Connection, ids: Iterable[int], at: datetime) -> dict[int, Any]:
    """Return the last row of `cycle_state` by an instant, by cycle."""
    found: dict[int, Any] = {}
    for part in parts(list(ids)):
        asked = select(cycle_state).where(cycle_state.c.cycle_id.in_(part), cycle_state.c.at <= at)
        for row in tx.execute(asked.order_by(cycle_state.c.id)):
            found[row.cycle_id] = row
    return found


def _as_stored(kept: Kept, state: Any) -> Kept:
    status = CycleStatus(state.status)
    return replace(
        kept,
        status=status,
        reason=state.reason,
        delivered_at=state.delivered_at,
        first_seen_at=state.first_seen_at,
        source=state.source,
        claims=claims_of(state.claims),
        arriving_since=state.arriving_since,
        gone_since=state.gone_since,
        anew_at=state.anew_at,
        excuse=kept.excuse if status is CycleStatus.EXCUSED else "",
    )


def _changes(tx: Connection, ids: Iterable[int]) -> dict[int, list[StatusChange]]:
    found: dict[int, list[StatusChange]] = {}
    for part in parts(list(ids)):
        asked = select(cycle_event).where(cycle_event.c.cycle_id.in_(part)).order_by(cycle_event.c.id)
        for row in tx.execute(asked):
            found.setdefault(row.cycle_id, []).append(change(row))
    return found


def _at(kept: Kept, changes: Sequence[StatusChange], at: datetime) -> Kept:
    """Return a cycle that had not changed by then, or that an older dq changed, by its events."""
    before = [one for one in changes if one.at <= at]
    seen = kept.first_seen_at if kept.first_seen_at and kept.first_seen_at <= at else None
    arriving = kept.arriving_since if kept.arriving_since and kept.arriving_since <= at else None
    anew = kept.anew_at if kept.anew_at and kept.anew_at <= at else None
    gone = kept.gone_since if kept.gone_since and kept.gone_since <= at else None
    if len(before) == len(changes):
        return replace(kept, first_seen_at=seen, arriving_since=arriving, anew_at=anew, gone_since=gone)
    last = before[-1] if before else None
    grounds = last.grounds if last else None
    evidence = grounds.evidence if grounds else None
    delivered = None
    if grounds is not None and last is not None and last.after not in OPEN:
        delivered = judge_on(kept.cycle, grounds, last.at).delivered_at(kept.cycle)
    excused = last is not None and last.after is CycleStatus.EXCUSED
    return replace(
        kept,
        status=last.after if last else CycleStatus.PENDING,
        reason=last.reason if last else "",
        delivered_at=delivered,
        first_seen_at=evidence.first_seen if evidence and delivered else None,
        source=evidence.source if evidence and delivered else None,
        claims=_claims(kept, evidence, delivered),
        arriving_since=evidence.arriving if evidence else None,
        anew_at=anew if delivered else None,
        gone_since=gone if grounds and grounds.revoked else None,
        excuse=kept.excuse if excused else "",
    )


def _claims(kept: Kept, evidence: Evidence | None, delivered: datetime | None) -> tuple[SourceAnswer, ...]:
    if evidence is None or delivered is None:
        return ()
    if kept.claims and delivered == kept.delivered_at:
        return kept.claims
    # Of what was judged anew since, the store has the deciding source alone.
    return (SourceAnswer(evidence.source, evidence.delivered_at, evidence.rows),)
