"""Cycles written in bulk: enumerated once, moved only from where they were read, every move an event.

A contract stands here by its key, so that two majors of it have cycles and receipts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update

from dq.contracts.schedule import Cycle
from dq.contracts.shared.install import release
from dq.contracts.shared.outcome import Breach, CycleStatus, Recovery
from dq.contracts.slo import Slo
from dq.dataquality.delivery import proof
from dq.dataquality.delivery.cycle import CycleVerdict, Kept
from dq.dataquality.delivery.sources.evidence import Evidence, SourceAnswer
from dq.dataquality.delivery.state import watermarks
from dq.dataquality.delivery.state.keys import Key, key_of, parts
from dq.dataquality.delivery.state.tables import cycle as cycles_table
from dq.dataquality.delivery.state.tables import cycle_event, cycle_state


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of a cycle that was read as `before`; see the columns of its table."""

    before: Kept
    judged: CycleVerdict
    evidence: Evidence | None = None
    told: bool = False
    blind: str | None = None
    held: tuple[str, datetime] | None = None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    anew_at: datetime | None = None

    @property
    def delivered_at(self) -> datetime | None:
        """When it was delivered, as it is judged now."""
        return self.judged.delivered_at(self.before.cycle)


def enumerate_all(tx: Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]], until: datetime) -> None:
    """Adds the rows of new cycles and moves the watermarks; a row that another watcher added is kept."""
    there = _there(tx, due)
    rows = [
        _row(slo, cycle) | {"recorded_at": until}
        for slo, new in due
        for cycle in new
        if (*slo.key, cycle.due_at) not in there
    ]
    if rows:
        tx.execute(insert(cycles_table), rows)
    watermarks.move(tx, [slo.key for slo, _ in due], until)


def _there(tx: Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]]) -> set[tuple[object, ...]]:
    since = min((cycle.due_at for _, new in due for cycle in new), default=None)
    if since is None:
        return set()
    columns = cycles_table.c
    asked = select(*key_of(cycles_table), columns.due_at)
    names = sorted({slo.key[0] for slo, new in due if new})
    found: set[tuple[object, ...]] = set()
    for part in parts(names):
        found |= set(map(tuple, tx.execute(asked.where(columns.contract.in_(part), columns.due_at >= since))))
    return found


def _row(slo: Slo, cycle: Cycle) -> dict[str, object]:
    return {
        "contract": cycle.contract,
        "object": cycle.object,
        "slo": cycle.slo,
        "due_at": cycle.due_at,
        "breach_at": cycle.breach_at,
        "tzdata": cycle.tzdata,
        "nominal": cycle.nominal.isoformat(),
        "note": cycle.note,
        "partitions": [[list(pair) for pair in partition] for partition in cycle.partitions],
        "status": CycleStatus.PENDING,
        "reason": "",
        "told": False,
        "contract_version": slo.contract.version,
        "contract_hash": slo.contract.digest or None,
        "calendar": cycle.calendar or None,
        "dq": release(),
        "excuse": cycle.excuse or None,
    }


def move_all(tx: Connection, moves: Sequence[Move], now: datetime) -> set[int]:
    """Moves the cycles that still stand where they were read, and gives their ids.

    There is one writer at a time, so that nothing comes between what is read here and what is written.
    """
    before = {one.before.id: one.before for one in moves}
    columns = cycles_table.c
    standing: set[int] = set()
    for part in parts(sorted(before)):
        for row in tx.execute(select(columns.id, columns.status, columns.told).where(columns.id.in_(part))):
            kept = before[row.id]
            if (row.status, row.told) == (kept.status, kept.told):
                standing.add(row.id)
    made = [one for one in moves if one.before.id in standing]
    if not made:
        return standing
    rows = [(one.before, _values(one)) for one in made]
    tx.execute(update(cycles_table).where(columns.id == bindparam("row")), [values for _, values in rows])
    states = [
        {"cycle_id": kept.id, "at": now, **{column: values[column] for column in shown}}
        for kept, values, shown in ((kept, values, _shown(kept)) for kept, values in rows)
        if any(values[column] != before for column, before in shown.items())
    ]
    if states:
        tx.execute(insert(cycle_state), states)
    newest: dict[Key, datetime] = {}
    for one in made:
        cycle, at = one.before.cycle, one.delivered_at
        key = (cycle.contract, cycle.object, cycle.slo)
        if at is not None:
            newest[key] = max(newest.get(key, at), at)
    watermarks.note_deliveries(tx, newest)
    events = [
        {
            "cycle_id": one.before.id,
            "at": now,
            "before": one.before.status,
            "after": one.judged.status,
            "reason": one.judged.reason,
            "proof": proof.written(one.judged.grounds, release()) if one.judged.grounds else None,
        }
        for one in made
        # What comes after it was given up stays `never`, and is a change all the same.
        if one.judged.status is not one.before.status or one.delivered_at != one.before.delivered_at
    ]
    if events:
        tx.execute(insert(cycle_event), events)
    return standing


def _shown(kept: Kept) -> dict[str, object]:
    """Return what is shown of a cycle, as its row has it."""
    return {
        "status": kept.status,
        "reason": kept.reason,
        "delivered_at": kept.delivered_at,
        "first_seen_at": kept.first_seen_at,
        "source": kept.source,
        "claims": _claims(kept.claims) or None,
        "arriving_since": kept.arriving_since,
        "gone_since": kept.gone_since,
        "anew_at": kept.anew_at,
    }


def release_held(tx: Connection, root: str) -> None:
    """Forget which cycles were held back under a root, once its incident has ended."""
    tx.execute(update(cycles_table).where(cycles_table.c.held == root).values(held=None))


def _values(one: Move) -> dict[str, object]:
    before, evidence = one.before, one.evidence
    arriving = evidence.arriving if evidence else None
    revoked = before.status.good and not one.judged.status.good
    return {
        "row": before.id,
        "status": one.judged.status,
        "reason": one.judged.reason,
        "delivered_at": one.delivered_at,
        # What was taken away is seen for the first time when it comes again.
        "first_seen_at": None
        if revoked
        else (evidence.first_seen if evidence else None) or before.first_seen_at,
        "source": evidence.source if evidence and one.delivered_at else None,
        "claims": (_claims(evidence.claims) or None) if evidence else None,
        "arriving_since": (before.arriving_since or arriving) if arriving else None,
        "look_again_at": one.look_again_at,
        "gone_since": one.gone_since,
        "anew_at": one.anew_at or before.anew_at,
        "told": one.told,
        "blind": one.blind,
        # Until nothing under the root waits any more, all that was held there is counted.
        "held": one.held[0] if one.held else before.held,
        # When it was held stays known, so that it is held once.
        "held_until": one.held[1] if one.held else before.held_until,
    }


def _claims(claims: Iterable[SourceAnswer]) -> list[list[object]]:
    return [
        [one.source, one.delivered_at.isoformat() if one.delivered_at else None, one.rows] for one in claims
    ]


Tell = Callable[[Connection, Breach | Recovery], object]
