"""Cycles and receipts as rows: enumerated once, moved only from where they were read, every move an event."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import sqlalchemy as sa

from dq.contracts.install import release
from dq.contracts.outcome import Breach, CycleStatus, Recovery
from dq.contracts.schedule.clock import Note
from dq.contracts.slo import Cycle, Partition, Slo
from dq.dataquality.delivery import tables
from dq.dataquality.delivery.cycle import (
    OPEN,
    CycleState,
    CycleVerdict,
    Evidence,
    Grounds,
    Kept,
    Receipt,
    SourceAnswer,
    partition_of,
)
from dq.dataquality.delivery.tables import cycle as cycles_table
from dq.store.schema import UtcDateTime

# Cycles as rows: read, enumerated once, moved only from where they were read, every move an event.

# Cycles as rows, as they are read.
#
# A contract stands here by its key, so that two majors of it have cycles and receipts of their own.

LATELY, _USUAL_OF = 30, 5
"""The last deliveries that tell when one usually comes, and how few of them tell nothing."""
STILL_LOOKED_AT = timedelta(days=60)
"""How long after its due instant a cycle that was given up is looked at: it may be delivered after all."""


def open_cycles(tx: sa.Connection, now: datetime, contracts: Collection[str]) -> dict[tables.Key, list[Kept]]:
    """The cycles of these contracts of which something new can be learnt at `now`, by SLO, oldest first."""
    found: dict[tables.Key, list[Kept]] = {}
    asked = sa.select(cycles_table).where(_is_open(now)).order_by(cycles_table.c.due_at)
    for some in tables.parts(sorted(set(contracts))):
        for row in tx.execute(asked.where(cycles_table.c.contract.in_(some))):
            kept = cycle_of_row(row)
            found.setdefault(kept.cycle.key, []).append(kept)
    return found


def open_states(tx: sa.Connection, now: datetime) -> dict[str, set[CycleState]]:
    """How all cycles stand of which something new can be learnt at `now`, by the key of their contract."""
    columns = cycles_table.c
    asked = sa.select(columns.contract, columns.id, columns.status, columns.told, columns.held_until)
    found: dict[str, set[CycleState]] = {}
    for contract, *state in tx.execute(asked.where(_is_open(now))):
        found.setdefault(contract, set()).add((*state,))
    return found


def _is_open(now: datetime) -> sa.ColumnElement[bool]:
    columns = cycles_table.c
    given_up = sa.and_(
        columns.status == CycleStatus.NEVER,
        columns.told,
        columns.delivered_at.is_(None),
        columns.due_at > now - STILL_LOOKED_AT,
    )
    # What has been unknown for so long stays so.
    too_old = sa.and_(columns.status == CycleStatus.UNKNOWN, columns.due_at <= now - STILL_LOOKED_AT)
    again = columns.look_again_at <= now
    return sa.or_(sa.and_(columns.status.in_(OPEN), sa.not_(too_old)), given_up, again)


def any_blind(tx: sa.Connection, cause: str) -> bool:
    """Whether a delivery is still unknown for this cause."""
    columns = cycles_table.c
    blind = sa.and_(columns.status == CycleStatus.UNKNOWN, columns.blind == cause)
    return tx.execute(sa.select(columns.id).where(blind).limit(1)).first() is not None


def any_held(tx: sa.Connection, root: str) -> bool:
    """Return whether an alert of a delivery under this root still waits."""
    columns = cycles_table.c
    waiting = sa.and_(columns.held == root, columns.status == CycleStatus.MISSING, sa.not_(columns.told))
    return tx.execute(sa.select(columns.id).where(waiting).limit(1)).first() is not None


def held_statuses(tx: sa.Connection, root: str) -> dict[CycleStatus, int]:
    """Return how many of the deliveries that were held back under this root have each status."""
    columns = cycles_table.c
    asked = sa.select(columns.status, sa.func.count()).where(columns.held == root).group_by(columns.status)
    return {CycleStatus(status): number for status, number in tx.execute(asked.order_by(columns.status))}


def promises_due(tx: sa.Connection, root: str, first: datetime, last: datetime) -> int:
    """How many SLOs with data under a root have a cycle whose breach lies between two instants, both in."""
    promises = tables.key_of(tables.watermark)
    found = sa.select(*promises).join(cycles_table, tables.is_of(cycles_table, promises))
    breaks = cycles_table.c.breach_at.between(first, last)
    due = found.where(tables.watermark.c.root == root, breaks).distinct()
    return tx.scalar(sa.select(sa.func.count()).select_from(due.subquery())) or 0


def withdrawn_cycles(tx: sa.Connection, since: datetime, until: datetime) -> list[Kept]:
    """The cycles that were withdrawn between two instants, both in, oldest first."""
    ended = tables.cycle_event.c.cycle_id == cycles_table.c.id
    recent = sa.and_(
        tables.cycle_event.c.after == CycleStatus.WITHDRAWN, tables.cycle_event.c.at.between(since, until)
    )
    found = (
        sa.select(cycles_table).join(tables.cycle_event, ended).where(recent).order_by(cycles_table.c.due_at)
    )
    return [cycle_of_row(row) for row in tx.execute(found)]


def all_cycles(tx: sa.Connection, key: Sequence[str]) -> list[Kept]:
    """Every cycle of an SLO, or of an object over all its SLOs by a key of two parts; oldest first."""
    asked = sa.select(cycles_table).where(tables.is_of(cycles_table, key)).order_by(cycles_table.c.due_at)
    return [cycle_of_row(row) for row in tx.execute(asked)]


def usual_delay(came: Sequence[Kept]) -> timedelta | None:
    """The median of delivery minus due, negative when early; None for too few to be usual."""
    delays = [(kept.delivered_at - kept.cycle.due_at).total_seconds() for kept in came if kept.delivered_at]
    return timedelta(seconds=round(median(delays))) if len(delays) >= _USUAL_OF else None


def lately_delivered(tx: sa.Connection, key: tables.Key, before: datetime) -> list[Kept]:
    """The newest cycles of an SLO that were due before an instant and came, late or not; newest first."""
    columns = cycles_table.c
    came = sa.and_(
        tables.is_of(cycles_table, key), columns.due_at < before, columns.delivered_at.is_not(None)
    )
    found = sa.select(cycles_table).where(came).order_by(columns.due_at.desc()).limit(LATELY)
    return [cycle_of_row(row) for row in tx.execute(found)]


def counted_cycles(
    tx: sa.Connection, keys: Collection[tables.Key], since: datetime, due_since: datetime
) -> dict[tables.Key, list[tuple[datetime, CycleStatus]]]:
    """The cycles of these SLOs with a breach after an instant, as (breach_at, status), by SLO; none of them
    was due before `due_since`, which an index knows."""
    columns, names = cycles_table.c, sorted({key[0] for key in keys})
    found: dict[tables.Key, list[tuple[datetime, CycleStatus]]] = {key: [] for key in keys}
    asked = sa.select(*tables.key_of(cycles_table), columns.breach_at, columns.status)
    for some in tables.parts(names):
        here = sa.and_(columns.contract.in_(some), columns.due_at >= due_since)
        for row in tx.execute(asked.where(here, columns.breach_at > since)):
            key = (row.contract, row.object, row.slo)
            if key in found:
                found[key].append((row.breach_at, CycleStatus(row.status)))
    return found


def find_cycle(tx: sa.Connection, key: tables.Key, due_at: datetime) -> Kept | None:
    """The cycle of an SLO that was due at this instant, where the watcher has met it."""
    here = sa.and_(tables.is_of(cycles_table, key), cycles_table.c.due_at == due_at)
    row = tx.execute(sa.select(cycles_table).where(here)).first()
    return cycle_of_row(row) if row is not None else None


def delivered_since(
    tx: sa.Connection, contract: str, one: str, since: datetime, elsewhere: Collection[str] = ()
) -> list[Partition]:
    """What arrived at this instant or later, by cycles and by receipts, in the order of its arrival.

    Receipts of the servers `elsewhere` are left out. A partition that was delivered twice may stand there
    twice; one without columns is a whole snapshot.
    """
    found = [
        (kept.delivered_at, partition)
        for kept in all_cycles(tx, (contract, one))
        if kept.delivered_at is not None and kept.delivered_at >= since
        for partition in kept.cycle.partitions or ((),)
    ]
    here = sa.and_(
        tables.receipt.c.contract == contract,
        tables.receipt.c.object == one,
        tables.receipt.c.delivered_at >= since,
    )
    for row in tx.execute(sa.select(tables.receipt).where(here)):
        if row.server in elsewhere:
            continue
        pairs = [part.partition("=") for part in row.partition.split("/") if part]
        found.append((row.delivered_at, tuple((column, value) for column, _, value in pairs)))
    return [partition for _, partition in sorted(found)]


def cycle_of_row(row: sa.Row) -> Kept:  # type: ignore[type-arg]  # rows of a plain select have no shape to name
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
        **{name: getattr(row, name) for name in _AS_STORED},
        cycle=made,
        status=CycleStatus(row.status),
        contract_hash=row.contract_hash or "",
        excuse=made.excuse,
        claims=claims_of(row.claims),
    )


_AS_STORED = (
    "id", "reason", "delivered_at", "first_seen_at", "told", "blind", "held", "held_until", "source",
    "arriving_since", "look_again_at", "gone_since", "anew_at", "recorded_at",
)  # fmt: skip


def claims_of(written: Sequence[Sequence[Any]] | None) -> tuple[SourceAnswer, ...]:
    """Return the claims that a row holds as lists of [source, delivered_at, rows]."""
    return tuple(
        SourceAnswer(source, datetime.fromisoformat(at) if at else None, rows)
        for source, at, rows in written or ()
    )


# What a verdict rests on, as a row keeps it: written with each change of a cycle, and read for replays.


def grounds_as_json(grounds: Grounds, release: str) -> dict[str, object]:
    """The grounds as JSON, with the release of dq that judged. Instants are texts in UTC."""
    row: dict[str, object] = {"dq": release}
    if grounds.give_up_at is not None:
        row["give_up_at"] = grounds.give_up_at.isoformat()
    if not grounds.empty_allowed:
        row["empty"] = "forbidden"
    if grounds.excused:
        row["excused"] = grounds.excused
    if grounds.revoked:
        row["revoked"] = grounds.revoked
    if grounds.evidence is not None:
        row["evidence"] = _evidence_as_json(grounds.evidence)
    return row


def _evidence_as_json(evidence: Evidence) -> dict[str, object]:
    """What differs from nothing: most evidence is a source and an instant."""
    plain: dict[str, object] = {"source": evidence.source}
    instants = {
        "delivered_at": evidence.delivered_at,
        "first_seen": evidence.first_seen,
        "arriving": evidence.arriving,
    }
    plain |= {name: instant.isoformat() for name, instant in instants.items() if instant is not None}
    if not evidence.readable:
        plain["problem"] = evidence.problem
    if evidence.rows is not None:
        plain["rows"] = evidence.rows
    if evidence.detail:
        plain["detail"] = evidence.detail
    if evidence.names_cycle:
        plain["names_cycle"] = True
    if evidence.settled:
        plain["settled"] = True
    return plain


def grounds_from_json(row: Mapping[str, object]) -> Grounds:
    """The grounds of a row that `written` made. Raises ValueError where it is none."""
    try:
        kept = row.get("evidence")
        return Grounds(
            evidence=_evidence_from_json(kept) if isinstance(kept, dict) else None,
            give_up_at=_instant(row.get("give_up_at")),
            empty_allowed=row.get("empty") != "forbidden",
            excused=str(row.get("excused", "")),
            revoked=str(row.get("revoked", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{row!r} is no proof") from error


def _evidence_from_json(row: Mapping[str, object]) -> Evidence:
    source, rows = row["source"], row.get("rows")
    if source not in ("receipt", "marker", "commit", "file"):
        raise ValueError(f"{source!r} is no source of evidence")
    return Evidence(
        source,
        delivered_at=_instant(row.get("delivered_at")),
        first_seen=_instant(row.get("first_seen")),
        readable="problem" not in row,
        problem=str(row.get("problem", "")),
        rows=rows if isinstance(rows, int) else None,
        detail=str(row.get("detail", "")),
        names_cycle=bool(row.get("names_cycle")),
        settled=bool(row.get("settled")),
        arriving=_instant(row.get("arriving")),
    )


def _instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


# How far each promise is watched, where its data lies, and what was told of its budget.


def _by_key(tx: sa.Connection, column: str, *where: sa.ColumnElement[bool]) -> dict[tables.Key, Any]:
    asked = sa.select(*tables.key_of(tables.watermark), tables.watermark.c[column]).where(*where)
    return {(row[0], row[1], row[2]): row[3] for row in tx.execute(asked)}


def watched_through(tx: sa.Connection) -> dict[tables.Key, datetime]:
    """For each SLO by key, up to which due instant its cycles have rows."""
    return _by_key(tx, "through")


def advance_watermarks(
    tx: sa.Connection, watched: Collection[tables.Key], unread: Collection[str], until: datetime
) -> None:
    """Notes that all that was due up to an instant has rows: of these SLOs, and of all SLOs of the contracts
    `unread`. A contract that is edited afterwards owes nothing for the time before.
    """
    every, columns = set(watched), tables.watermark.c
    behind = columns.through < until
    partly = {key[0] for key in watched_through(tx) if key[0] not in unread and key not in every}
    whole = sorted({key[0] for key in every if key[0] not in partly} | set(unread))
    for some in tables.parts(whole):
        tx.execute(
            sa.update(tables.watermark).where(columns.contract.in_(some), behind).values(through=until)
        )
    for key in sorted(every):
        if key[0] in partly:
            tx.execute(
                sa.update(tables.watermark)
                .where(tables.is_of(tables.watermark, key), behind)
                .values(through=until)
            )


def ever_delivered(tx: sa.Connection) -> set[tables.Key]:
    """The SLOs that ever had a delivery, by key."""
    return set(_by_key(tx, "delivered_at", tables.watermark.c.delivered_at.is_not(None)))


def note_roots(tx: sa.Connection, found: Mapping[tables.Key, str]) -> None:
    """Keeps where the data of SLOs lies."""
    _set(tx, "root", found)


def watched_roots(tx: sa.Connection) -> dict[tables.Key, str | None]:
    """Where the data of each SLO lay last, by key."""
    return _by_key(tx, "root")


def budgets_told(tx: sa.Connection) -> dict[tables.Key, str]:
    """How far the budgets of SLOs were told to be used, by key; those alone of which anything was told."""
    return _by_key(tx, "budget", tables.watermark.c.budget.is_not(None))


def note_budget(tx: sa.Connection, key: tables.Key, used: str | None) -> None:
    """Keeps how far an SLO's budget was told to be used."""
    tx.execute(sa.update(tables.watermark).where(tables.is_of(tables.watermark, key)).values(budget=used))


def delete_watermark(tx: sa.Connection, key: tables.Key) -> None:
    """Lets an SLO begin anew when it is promised again: nothing is due for the time in between."""
    tx.execute(sa.delete(tables.watermark).where(tables.is_of(tables.watermark, key)))


def move_watermarks(tx: sa.Connection, keys: Iterable[tables.Key], until: datetime) -> None:
    """Says that every cycle of these SLOs due up to an instant has a row; none goes back."""
    before = watched_through(tx)
    wanted = [key for key in keys if before.get(key, until) <= until]
    new = [dict(zip(tables.KEY, key, strict=True), through=until) for key in wanted if key not in before]
    if new:
        tx.execute(sa.insert(tables.watermark), new)
    _advance(tx, "through", {key: until for key in wanted if key in before})


def note_deliveries(tx: sa.Connection, newest: Mapping[tables.Key, datetime]) -> None:
    """Keeps deliveries that are newer than those before."""
    _advance(tx, "delivered_at", newest)


def _advance(tx: sa.Connection, column: str, values: Mapping[tables.Key, datetime]) -> None:
    """Sets an instant of each SLO where it is newer than the one there."""
    known = tables.watermark.c[column]
    _set(tx, column, values, sa.or_(known.is_(None), known < sa.bindparam("new", type_=UtcDateTime())))


def _set(
    tx: sa.Connection, column: str, values: Mapping[tables.Key, object], *where: sa.ColumnElement[bool]
) -> None:
    names = [f"its_{name}" for name in tables.KEY]
    rows = [{**dict(zip(names, key, strict=True)), "new": value} for key, value in values.items()]
    if rows:
        new = sa.bindparam("new", type_=tables.watermark.c[column].type)
        same = tables.is_of(tables.watermark, list(map(sa.bindparam, names)))
        tx.execute(sa.update(tables.watermark).where(same, *where).values({column: new}), rows)


# Cycles written in bulk: enumerated once, moved only from where they were read, every move an event.
#
# A contract stands here by its key, so that two majors of it have cycles and receipts of their own.


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


def enumerate_all(tx: sa.Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]], until: datetime) -> None:
    """Adds the rows of new cycles and moves the watermarks; a row that another watcher added is kept."""
    there = _there(tx, due)
    rows = [
        _row(slo, cycle) | {"recorded_at": until}
        for slo, new in due
        for cycle in new
        if (*slo.key, cycle.due_at) not in there
    ]
    if rows:
        tx.execute(sa.insert(cycles_table), rows)
    move_watermarks(tx, [slo.key for slo, _ in due], until)


def _there(tx: sa.Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]]) -> set[tuple[object, ...]]:
    since = min((cycle.due_at for _, new in due for cycle in new), default=None)
    if since is None:
        return set()
    columns = cycles_table.c
    asked = sa.select(*tables.key_of(cycles_table), columns.due_at)
    names = sorted({slo.key[0] for slo, new in due if new})
    found: set[tuple[object, ...]] = set()
    for part in tables.parts(names):
        found |= set(map(tuple, tx.execute(asked.where(columns.contract.in_(part), columns.due_at >= since))))
    return found


def _row(slo: Slo, cycle: Cycle) -> dict[str, object]:
    return {
        **{name: getattr(cycle, name) for name in (*tables.KEY, "due_at", "breach_at", "tzdata", "note")},
        "nominal": cycle.nominal.isoformat(),
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


def move_all(tx: sa.Connection, moves: Sequence[Move], now: datetime) -> set[int]:
    """Moves the cycles that still stand where they were read, and gives their ids.

    There is one writer at a time, so that nothing comes between what is read here and what is written.
    """
    before = {one.before.id: one.before for one in moves}
    columns = cycles_table.c
    standing: set[int] = set()
    for part in tables.parts(sorted(before)):
        for row in tx.execute(
            sa.select(columns.id, columns.status, columns.told).where(columns.id.in_(part))
        ):
            kept = before[row.id]
            if (row.status, row.told) == (kept.status, kept.told):
                standing.add(row.id)
    made = [one for one in moves if one.before.id in standing]
    if not made:
        return standing
    rows = [(one.before, _values(one)) for one in made]
    tx.execute(
        sa.update(cycles_table).where(columns.id == sa.bindparam("row")), [values for _, values in rows]
    )
    states = [
        {"cycle_id": kept.id, "at": now, **{column: values[column] for column in shown}}
        for kept, values, shown in ((kept, values, _shown(kept)) for kept, values in rows)
        if any(values[column] != before for column, before in shown.items())
    ]
    if states:
        tx.execute(sa.insert(tables.cycle_state), states)
    newest: dict[tables.Key, datetime] = {}
    for one in made:
        key, at = one.before.cycle.key, one.delivered_at
        if at is not None:
            newest[key] = max(newest.get(key, at), at)
    note_deliveries(tx, newest)
    events = [
        {
            "cycle_id": one.before.id,
            "at": now,
            "before": one.before.status,
            "after": one.judged.status,
            "reason": one.judged.reason,
            "proof": grounds_as_json(one.judged.grounds, release()) if one.judged.grounds else None,
        }
        for one in made
        # What comes after it was given up stays `never`, and is a change all the same.
        if one.judged.status is not one.before.status or one.delivered_at != one.before.delivered_at
    ]
    if events:
        tx.execute(sa.insert(tables.cycle_event), events)
    return standing


SHOWN = (
    "status", "reason", "delivered_at", "first_seen_at", "source", "arriving_since", "gone_since", "anew_at",
)  # fmt: skip
"""What is shown of a cycle as its row has it; what the sources said is a list besides."""


def _shown(kept: Kept) -> dict[str, object]:
    """Return what is shown of a cycle, as its row has it."""
    return {name: getattr(kept, name) for name in SHOWN} | {"claims": _claims(kept.claims) or None}


def release_held(tx: sa.Connection, root: str) -> None:
    """Forget which cycles were held back under a root, once its incident has ended."""
    tx.execute(sa.update(cycles_table).where(cycles_table.c.held == root).values(held=None))


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


Tell = Callable[[sa.Connection, Breach | Recovery], object]


# Excuses as rows: who took which cycles out of the count, and why. Rows are added, never changed.


@dataclass(frozen=True, slots=True)
class Excuse:
    """Somebody's word that a cycle does not count, or (`undone`) that it does after all."""

    key: tables.Key
    due_at: datetime
    at: datetime
    by: str
    reason: str
    undone: bool = False

    @property
    def text(self) -> str:
        """What the cycle's reason says of it."""
        return f"Excused by {self.by}: {self.reason}"


def record_excuses(tx: sa.Connection, excuses: Iterable[Excuse]) -> None:
    """Adds them to what was said before."""
    rows = [
        {
            **dict(zip(tables.KEY, excuse.key, strict=True)),
            **{name: getattr(excuse, name) for name in ("due_at", "at", "by", "reason", "undone")},
        }
        for excuse in excuses
    ]
    if rows:
        tx.execute(sa.insert(tables.cycle_excuse), rows)


def newest_excuses(
    tx: sa.Connection, contracts: Collection[str]
) -> dict[tuple[tables.Key, datetime], Excuse]:
    """The newest word of each cycle of these contracts, whatever it says."""
    columns = tables.cycle_excuse.c
    found: dict[tuple[tables.Key, datetime], Excuse] = {}
    for some in tables.parts(sorted(contracts)):
        here = columns.contract.in_(some)
        for row in tx.execute(sa.select(tables.cycle_excuse).where(here).order_by(columns.id)):
            key = (row.contract, row.object, row.slo)
            found[key, row.due_at] = Excuse(key, row.due_at, row.at, row.by, row.reason, row.undone)
    return found


def excused_only(tx: sa.Connection, excuses: Sequence[Excuse]) -> list[Excuse]:
    """Those whose cycle is excused by the newest word on it."""
    newest = newest_excuses(tx, {excuse.key[0] for excuse in excuses})
    return [
        excuse
        for excuse in excuses
        if (word := newest.get((excuse.key, excuse.due_at))) is not None and not word.undone
    ]


# Receipts as rows: deliveries that a publish step wrote down.


def receipts(
    tx: sa.Connection, contract: str, one: str, elsewhere: Collection[str] = ()
) -> dict[str, Receipt]:
    """The receipts of an object: by partition label, and by `due:<instant>` where they name their cycle.

    Those of the servers `elsewhere` are left out. One that names no server is an older dq's, and counts.
    """
    return all_receipts(tx, {contract: elsewhere}).get((contract, one), {})


def all_receipts(
    tx: sa.Connection, elsewhere: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], dict[str, Receipt]]:
    """The receipts of all objects of these contracts, by contract and object, each as `receipts` has them.

    `elsewhere` has for each contract the servers whose receipts are left out.
    """
    found: dict[tuple[str, str], dict[str, Receipt]] = {}
    columns, names = tables.receipt.c, sorted(elsewhere)
    for some in tables.parts(names):
        here = columns.contract.in_(some)
        for row in tx.execute(
            sa.select(tables.receipt).where(here).order_by(columns.delivered_at, columns.revision)
        ):
            if row.server in elsewhere[row.contract]:
                continue
            of = found.setdefault((row.contract, row.object), {})
            cycle = f"due:{row.due_at.isoformat()}" if row.due_at is not None else ""
            for name in filter(None, (row.partition, cycle)):
                first = of.get(name)
                made = Receipt(row.delivered_at, row.rows, row.revision, server=row.server or "")
                of[name] = first.then(made) if first else made
    return found


@dataclass(frozen=True, slots=True)
class RowClaim:
    """The number of rows that a producer gave for a partition, in the receipt of its newest revision.

    `partition` is empty for an object without partitions.
    """

    partition: Partition
    rows: int
    revision: int
    delivered_at: datetime
    server: str


def row_claims(
    tx: sa.Connection, contract: str, object: str, elsewhere: Collection[str], now: datetime
) -> list[RowClaim]:
    """The numbers of rows that stand as of `now`, a partition each.

    A partition that brings several cycles has none: each number is of a part. Neither has one whose newest
    revision came without a number. Those of the servers `elsewhere` are left out.
    """
    columns = tables.receipt.c
    here = (columns.contract == contract) & (columns.object == object) & (columns.delivered_at <= now)
    newest: dict[str, sa.Row[Any]] = {}
    cycles: dict[str, set[datetime | None]] = {}
    for row in tx.execute(
        sa.select(tables.receipt).where(here).order_by(columns.delivered_at, columns.revision)
    ):
        if row.server not in elsewhere:
            newest[row.partition] = row
            cycles.setdefault(row.partition, set()).add(row.due_at)
    return [
        RowClaim(partition_of(name), row.rows, row.revision, row.delivered_at, row.server or "")
        for name, row in newest.items()
        if row.rows is not None and (not name or len(cycles[name]) == 1)
    ]


def is_written(tx: sa.Connection, id: str) -> bool:
    """Whether the receipt of this id is there."""
    return tx.execute(sa.select(tables.receipt.c.id).where(tables.receipt.c.id == id)).first() is not None


def write_receipt(
    tx: sa.Connection,
    *,
    id: str,
    contract: str,
    object: str,
    partition: str,
    due_at: datetime | None,
    delivered_at: datetime,
    rows: int | None,
    version: str,
    revision: int = 1,
    server: str | None = None,
) -> bool:
    """Writes a receipt once; the same id again changes nothing and gives False."""
    if is_written(tx, id):
        return False
    tx.execute(
        sa.insert(tables.receipt).values(
            id=id,
            contract=contract,
            object=object,
            partition=partition,
            due_at=due_at,
            delivered_at=delivered_at,
            rows=rows,
            contract_version=version,
            revision=revision,
            server=server,
        )
    )
    return True


def write_count(tx: sa.Connection, id: str, rows: int) -> None:
    """Add the number of rows to the receipt of this id."""
    tx.execute(sa.update(tables.receipt).where(tables.receipt.c.id == id).values(rows=rows))
