"""Cycles as they stood at an earlier instant, and judged again on what was known then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import OPEN, Evidence, Grounds, Kept, SourceAnswer
from dq.dataquality.delivery.cycle_store import claims_of
from dq.dataquality.delivery.evaluate import judge_on
from dq.dataquality.delivery.tables import Key, cycle_event, cycle_state, is_of, key_of, parts
from dq.dataquality.delivery.tables import cycle as cycles_table

# The changes of cycles as they were written, with what each verdict rested on.


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change of one cycle. `grounds` of None: it was no verdict, or an older dq wrote it."""

    at: datetime
    before: CycleStatus
    after: CycleStatus
    reason: str
    grounds: Grounds | None


def keys(tx: Connection) -> list[Key]:
    """Every SLO that has cycles, in order."""
    columns = key_of(cycles_table)
    asked = select(*columns).distinct().order_by(*columns)
    return [(contract, one, slo) for contract, one, slo in tx.execute(asked)]


def with_changes(tx: Connection, key: Key) -> Iterator[tuple[Kept, list[StatusChange]]]:
    """The cycles of an SLO, oldest first, each with its changes in the order in which they were written."""
    joined = select(cycle_event).join(cycles_table, cycle_event.c.cycle_id == cycles_table.c.id)
    joined = joined.where(is_of(cycles_table, key))
    changes: dict[int, list[StatusChange]] = {}
    for row in tx.execute(joined.order_by(cycle_event.c.id)):
        changes.setdefault(row.cycle_id, []).append(change(row))
    for kept in cycle_store.all_cycles(tx, key):
        yield kept, changes.get(kept.id, [])


def of_cycle(tx: Connection, cycle_id: int) -> list[StatusChange]:
    """The changes of one cycle, in the order in which they were written."""
    found = select(cycle_event).where(cycle_event.c.cycle_id == cycle_id).order_by(cycle_event.c.id)
    return [change(row) for row in tx.execute(found)]


def change(row: Row) -> StatusChange:  # type: ignore[type-arg]  # rows of a plain select have no shape to name
    """Return a row of `cycle_event` as values."""
    return StatusChange(
        row.at,
        CycleStatus(row.before),
        CycleStatus(row.after),
        row.reason,
        cycle_store.grounds_from_json(row.proof) if row.proof is not None else None,
    )


# Cycles as they stood at an earlier instant, from the changes that were written by then.
#
# Every reader with `--as-of` takes its cycles from here. What was known then is what was stored then: a
# verdict is not asked again, so that the past reads as it was printed.


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


# History judged again from what is stored: each verdict from its grounds, each row from its verdicts.


@dataclass(frozen=True, slots=True)
class Replayed:
    """A cycle as it is derived from its changes. `differences` are what the store says otherwise, in words.

    `proven` is whether every change of it carries its grounds; what was withdrawn, or taken back by somebody,
    is no verdict and needs none.
    """

    kept: Kept
    status: CycleStatus
    delivered_at: datetime | None
    reason: str
    proven: bool
    differences: tuple[str, ...] = ()


def replay(tx: Connection, keys: Iterable[Key], as_of: datetime | None = None) -> Iterator[Replayed]:
    """The cycles of these SLOs, judged again from their grounds; oldest first for each.

    As of an instant: what was due by then, as what was known by then makes it. A verdict of then is asked
    again at that instant, so that a watcher which was down at the time makes no difference but in what it had
    seen. Without one, the rows as they stand are compared too.
    """
    for key in keys:
        for kept, done in with_changes(tx, key):
            if as_of is None:
                yield _replayed(kept, done)
            elif kept.cycle.due_at <= as_of:
                yield _as_of(kept, [one for one in done if one.at <= as_of], as_of)


def _replayed(kept: Kept, done: Sequence[StatusChange]) -> Replayed:
    status, wrong = CycleStatus.PENDING, list[str]()
    delivered, reason = None, ""
    for one in done:
        at = f"at {one.at.isoformat()}"
        if one.before is not status:
            wrong.append(f"{at} it was {status}, and the change says {one.before}")
        status, delivered, reason = one.after, None, one.reason
        if one.grounds is None:
            continue
        verdict = judge_on(kept.cycle, one.grounds, one.at)
        if verdict.status is not one.after:
            wrong.append(f"{at} its grounds make it {verdict.status}, stored is {one.after}")
        elif verdict.reason != one.reason:
            wrong.append(f"{at} its grounds say {verdict.reason!r}, stored is {one.reason!r}")
        delivered = verdict.delivered_at(kept.cycle)
    if kept.status is not status:
        wrong.append(f"its changes make it {status}, its row says {kept.status}")
    if kept.delivered_at != delivered and _proven(done):
        wrong.append(f"its changes make it delivered {delivered}, its row says {kept.delivered_at}")
    return Replayed(kept, status, delivered, reason, _proven(done), tuple(wrong))


def _as_of(kept: Kept, done: Sequence[StatusChange], at: datetime) -> Replayed:
    if not done:
        return Replayed(kept, CycleStatus.PENDING, None, "Nobody had looked by then.", proven=True)
    last = done[-1]
    if last.grounds is None:
        return Replayed(kept, last.after, None, last.reason, _proven(done))
    verdict = judge_on(kept.cycle, last.grounds, at)
    return Replayed(kept, verdict.status, verdict.delivered_at(kept.cycle), verdict.reason, _proven(done))


def _proven(done: Iterable[StatusChange]) -> bool:
    free = (CycleStatus.WITHDRAWN, CycleStatus.PENDING)
    return all(one.grounds is not None or one.after in free for one in done)
