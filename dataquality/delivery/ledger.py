"""Cycles as rows, as they are read.

A contract stands here by its key, so that two majors of it have cycles and receipts of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, not_, or_, select

from dq.contracts.schedule import Cycle, Note
from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.cycle import OPEN, CycleState, Kept
from dq.dataquality.delivery.sources.evidence import SourceAnswer
from dq.dataquality.delivery.state.keys import Key, is_of, key_of, parts
from dq.dataquality.delivery.state.tables import cycle as cycles_table
from dq.dataquality.delivery.state.tables import cycle_event, receipt, watermark

LATELY, _USUAL_OF = 30, 5
"""The last deliveries that tell when one usually comes, and how few of them tell nothing."""
STILL_LOOKED_AT = timedelta(days=60)
"""How long after its due instant a cycle that was given up is looked at: it may be delivered after all."""


def open_cycles(tx: Connection, now: datetime, contracts: Collection[str]) -> dict[Key, list[Kept]]:
    """The cycles of these contracts of which something new can be learnt at `now`, by SLO, oldest first."""
    found: dict[Key, list[Kept]] = {}
    asked = select(cycles_table).where(_is_open(now)).order_by(cycles_table.c.due_at)
    for some in parts(sorted(set(contracts))):
        for row in tx.execute(asked.where(cycles_table.c.contract.in_(some))):
            found.setdefault((row.contract, row.object, row.slo), []).append(kept(row))
    return found


def open_states(tx: Connection, now: datetime) -> dict[str, set[CycleState]]:
    """How all cycles stand of which something new can be learnt at `now`, by the key of their contract."""
    columns = cycles_table.c
    asked = select(columns.contract, columns.id, columns.status, columns.told, columns.held_until)
    found: dict[str, set[CycleState]] = {}
    for contract, *state in tx.execute(asked.where(_is_open(now))):
        found.setdefault(contract, set()).add((*state,))
    return found


def _is_open(now: datetime) -> ColumnElement[bool]:
    columns = cycles_table.c
    given_up = and_(
        columns.status == CycleStatus.NEVER,
        columns.told,
        columns.delivered_at.is_(None),
        columns.due_at > now - STILL_LOOKED_AT,
    )
    # What has been unknown for so long stays so.
    too_old = and_(columns.status == CycleStatus.UNKNOWN, columns.due_at <= now - STILL_LOOKED_AT)
    again = columns.look_again_at <= now
    return or_(and_(columns.status.in_(OPEN), not_(too_old)), given_up, again)


def any_blind(tx: Connection, cause: str) -> bool:
    """Whether a delivery is still unknown for this cause."""
    columns = cycles_table.c
    blind = and_(columns.status == CycleStatus.UNKNOWN, columns.blind == cause)
    return tx.execute(select(columns.id).where(blind).limit(1)).first() is not None


def any_held(tx: Connection, root: str) -> bool:
    """Return whether an alert of a delivery under this root still waits."""
    columns = cycles_table.c
    waiting = and_(columns.held == root, columns.status == CycleStatus.MISSING, not_(columns.told))
    return tx.execute(select(columns.id).where(waiting).limit(1)).first() is not None


def held_statuses(tx: Connection, root: str) -> dict[CycleStatus, int]:
    """Return how many of the deliveries that were held back under this root have each status."""
    columns = cycles_table.c
    asked = select(columns.status, func.count()).where(columns.held == root).group_by(columns.status)
    return {CycleStatus(status): number for status, number in tx.execute(asked.order_by(columns.status))}


def promises_due(tx: Connection, root: str, first: datetime, last: datetime) -> int:
    """How many SLOs with data under a root have a cycle whose breach lies between two instants, both in."""
    promises = key_of(watermark)
    found = select(*promises).join(cycles_table, is_of(cycles_table, promises))
    breaks = cycles_table.c.breach_at.between(first, last)
    due = found.where(watermark.c.root == root, breaks).distinct()
    return tx.scalar(select(func.count()).select_from(due.subquery())) or 0


def withdrawn(tx: Connection, since: datetime, until: datetime) -> list[Kept]:
    """The cycles that were withdrawn between two instants, both in, oldest first."""
    ended = cycle_event.c.cycle_id == cycles_table.c.id
    recent = and_(cycle_event.c.after == CycleStatus.WITHDRAWN, cycle_event.c.at.between(since, until))
    found = select(cycles_table).join(cycle_event, ended).where(recent).order_by(cycles_table.c.due_at)
    return [kept(row) for row in tx.execute(found)]


def history(tx: Connection, key: Sequence[str]) -> list[Kept]:
    """Every cycle of an SLO, or of an object over all its SLOs by a key of two parts; oldest first."""
    asked = select(cycles_table).where(is_of(cycles_table, key)).order_by(cycles_table.c.due_at)
    return [kept(row) for row in tx.execute(asked)]


def usual_delay(came: Sequence[Kept]) -> timedelta | None:
    """The median of delivery minus due, negative when early; None for too few to be usual."""
    delays = [(kept.delivered_at - kept.cycle.due_at).total_seconds() for kept in came if kept.delivered_at]
    return timedelta(seconds=round(median(delays))) if len(delays) >= _USUAL_OF else None


def lately(tx: Connection, key: Key, before: datetime) -> list[Kept]:
    """The newest cycles of an SLO that were due before an instant and came, late or not; newest first."""
    columns = cycles_table.c
    came = and_(is_of(cycles_table, key), columns.due_at < before, columns.delivered_at.is_not(None))
    found = select(cycles_table).where(came).order_by(columns.due_at.desc()).limit(LATELY)
    return [kept(row) for row in tx.execute(found)]


def counted(
    tx: Connection, keys: Collection[Key], since: datetime, due_since: datetime
) -> dict[Key, list[tuple[datetime, CycleStatus]]]:
    """The cycles of these SLOs with a breach after an instant, as (breach_at, status), by SLO; none of them
    was due before `due_since`, which an index knows."""
    columns, names = cycles_table.c, sorted({key[0] for key in keys})
    found: dict[Key, list[tuple[datetime, CycleStatus]]] = {key: [] for key in keys}
    asked = select(*key_of(cycles_table), columns.breach_at, columns.status)
    for some in parts(names):
        here = and_(columns.contract.in_(some), columns.due_at >= due_since)
        for row in tx.execute(asked.where(here, columns.breach_at > since)):
            key = (row.contract, row.object, row.slo)
            if key in found:
                found[key].append((row.breach_at, CycleStatus(row.status)))
    return found


def of_cycle(tx: Connection, key: Key, due_at: datetime) -> Kept | None:
    """The cycle of an SLO that was due at this instant, where the watcher has met it."""
    here = and_(is_of(cycles_table, key), cycles_table.c.due_at == due_at)
    row = tx.execute(select(cycles_table).where(here)).first()
    return kept(row) if row is not None else None


def delivered_since(
    tx: Connection, contract: str, one: str, since: datetime, elsewhere: Collection[str] = ()
) -> list[Partition]:
    """What arrived at this instant or later, by cycles and by receipts, in the order of its arrival.

    Receipts of the servers `elsewhere` are left out. A partition that was delivered twice may stand there
    twice; one without columns is a whole snapshot.
    """
    found = [
        (kept.delivered_at, partition)
        for kept in history(tx, (contract, one))
        if kept.delivered_at is not None and kept.delivered_at >= since
        for partition in kept.cycle.partitions or ((),)
    ]
    here = and_(receipt.c.contract == contract, receipt.c.object == one, receipt.c.delivered_at >= since)
    for row in tx.execute(select(receipt).where(here)):
        if row.server in elsewhere:
            continue
        pairs = [part.partition("=") for part in row.partition.split("/") if part]
        found.append((row.delivered_at, tuple((column, value) for column, _, value in pairs)))
    return [partition for _, partition in sorted(found)]


def kept(row: Row) -> Kept:  # type: ignore[type-arg]  # rows of a plain select have no shape to name
    """A row as values."""
    made = Cycle(
        contract=row.contract,
        object=row.object,
        slo=row.slo,
        due_at=row.due_at,
        breach_at=row.breach_at,
        tzdata=row.tzdata,
        nominal=datetime.fromisoformat(row.nominal),
        note=Note(row.note),
        partitions=tuple(tuple((a, b) for a, b in partition) for partition in row.partitions or ()),
        excuse=row.excuse or "",
        calendar=row.calendar or "",
    )
    return Kept(
        id=row.id,
        reason=row.reason,
        delivered_at=row.delivered_at,
        first_seen_at=row.first_seen_at,
        told=row.told,
        blind=row.blind,
        held=row.held,
        held_until=row.held_until,
        source=row.source,
        arriving_since=row.arriving_since,
        look_again_at=row.look_again_at,
        gone_since=row.gone_since,
        anew_at=row.anew_at,
        recorded_at=row.recorded_at,
        cycle=made,
        status=CycleStatus(row.status),
        contract_hash=row.contract_hash or "",
        excuse=made.excuse,
        claims=claims_of(row.claims),
    )


def claims_of(written: Sequence[Sequence[Any]] | None) -> tuple[SourceAnswer, ...]:
    """Return the claims that a row holds as lists of [source, delivered_at, rows]."""
    return tuple(
        SourceAnswer(source, datetime.fromisoformat(at) if at else None, rows)
        for source, at, rows in written or ()
    )
