"""Storage of cycles, excuses and receipts.

Cycle rows are inserted once; each update is logged as an event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from dq.contracts.check_result import GroupCounts
from dq.contracts.incident import Breach, CycleStatus, Recovery
from dq.contracts.install import release
from dq.contracts.schedule.clock import DstNote
from dq.contracts.slo import Cycle, Partition, Slo
from dq.dataquality.delivery import tables
from dq.dataquality.delivery.cycle import (
    OPEN,
    CycleRecord,
    CycleState,
    CycleVerdict,
    Evidence,
    ObjectTimes,
    Receipt,
    SourceAnswer,
    StorageEvents,
    VerdictInputs,
    partition_from_label,
)
from dq.dataquality.delivery.tables import cycle as cycles_table
from dq.store.schema import UtcDateTime

# Reads of cycles.
#
# Contracts are identified by their key, so that two major versions have separate cycles and receipts.

RECENT_DELIVERIES, _MIN_DELIVERIES = 30, 5
"""Number of recent deliveries from which the usual delay is computed, and the minimum for a result."""
WATCH_GIVEN_UP_FOR = timedelta(days=60)
"""Period after the due instant in which given-up cycles are still watched: they may be delivered after all.
"""


def open_cycles(
    tx: sa.Connection, now: datetime, contracts: Collection[str]
) -> dict[tables.Key, list[CycleRecord]]:
    """Return the cycles of these contracts whose status can still change at `now`, by SLO, oldest first."""
    cycles: dict[tables.Key, list[CycleRecord]] = {}
    query = sa.select(cycles_table).where(_is_open(now)).order_by(cycles_table.c.due_at)
    for chunk in tables.chunks(sorted(set(contracts))):
        for row in tx.execute(query.where(cycles_table.c.contract.in_(chunk))):
            record = record_from_row(row)
            cycles.setdefault(record.cycle.key, []).append(record)
    return cycles


def open_states(tx: sa.Connection, now: datetime) -> dict[str, set[CycleState]]:
    """Return the states of all cycles whose status can still change at `now`, by contract key."""
    columns = cycles_table.c
    query = sa.select(columns.contract, columns.id, columns.status, columns.notified, columns.inhibited_until)
    states: dict[str, set[CycleState]] = {}
    for contract, *state in tx.execute(query.where(_is_open(now))):
        states.setdefault(contract, set()).add((*state,))
    return states


def _is_open(now: datetime) -> sa.ColumnElement[bool]:
    columns = cycles_table.c
    is_given_up = sa.and_(
        columns.status == CycleStatus.NEVER,
        columns.notified,
        columns.delivered_at.is_(None),
        columns.due_at > now - WATCH_GIVEN_UP_FOR,
    )
    # Old unknown cycles stay unknown.
    too_old = sa.and_(columns.status == CycleStatus.UNKNOWN, columns.due_at <= now - WATCH_GIVEN_UP_FOR)
    recheck_due = columns.look_again_at <= now
    return sa.or_(sa.and_(columns.status.in_(OPEN), sa.not_(too_old)), is_given_up, recheck_due)


def has_unknown_deliveries(tx: sa.Connection, outage_source: str) -> bool:
    """True if a delivery is still unknown because of this outage."""
    columns = cycles_table.c
    is_unknown = sa.and_(columns.status == CycleStatus.UNKNOWN, columns.blind == outage_source)
    return tx.execute(sa.select(columns.id).where(is_unknown).limit(1)).first() is not None


def has_inhibited_alerts(tx: sa.Connection, root: str) -> bool:
    """True if an alert of a delivery under this root is still inhibited."""
    columns = cycles_table.c
    is_waiting = sa.and_(
        columns.inhibiting_root == root, columns.status == CycleStatus.MISSING, sa.not_(columns.notified)
    )
    return tx.execute(sa.select(columns.id).where(is_waiting).limit(1)).first() is not None


def inhibited_statuses(tx: sa.Connection, root: str) -> dict[CycleStatus, int]:
    """Return the number of deliveries with inhibited alerts under this root, by status."""
    columns = cycles_table.c
    query = (
        sa.select(columns.status, sa.func.count())
        .where(columns.inhibiting_root == root)
        .group_by(columns.status)
    )
    return {CycleStatus(status): number for status, number in tx.execute(query.order_by(columns.status))}


def count_slos_due(tx: sa.Connection, root: str, first: datetime, last: datetime) -> int:
    """Return the number of SLOs under a root that have a cycle with a breach in [`first`, `last`]."""
    slo_columns = tables.key_of(tables.watermark)
    query = sa.select(*slo_columns).join(cycles_table, tables.matches_key(cycles_table, slo_columns))
    in_period = cycles_table.c.breach_at.between(first, last)
    matching = query.where(tables.watermark.c.root == root, in_period).distinct()
    return tx.scalar(sa.select(sa.func.count()).select_from(matching.subquery())) or 0


def withdrawn_cycles(tx: sa.Connection, since: datetime, until: datetime) -> list[CycleRecord]:
    """Return the cycles that were withdrawn in [`since`, `until`], oldest first."""
    same_cycle = tables.cycle_event.c.cycle_id == cycles_table.c.id
    was_withdrawn = sa.and_(
        tables.cycle_event.c.after == CycleStatus.WITHDRAWN, tables.cycle_event.c.at.between(since, until)
    )
    query = (
        sa.select(cycles_table)
        .join(tables.cycle_event, same_cycle)
        .where(was_withdrawn)
        .order_by(cycles_table.c.due_at)
    )
    return [record_from_row(row) for row in tx.execute(query)]


def all_cycles(tx: sa.Connection, key: Sequence[str]) -> list[CycleRecord]:
    """Return every cycle of an SLO, or of all SLOs of an object (a key of two parts), oldest first."""
    query = (
        sa.select(cycles_table).where(tables.matches_key(cycles_table, key)).order_by(cycles_table.c.due_at)
    )
    return [record_from_row(row) for row in tx.execute(query)]


def arrival_minutes(
    tx: sa.Connection, contract: str, object_name: str, until: datetime
) -> dict[Partition, float]:
    """Return the minutes from due to delivered by partition, of deliveries up to `until`; early is negative.

    Columns of a partition are sorted by name. `()` is the newest delivery without partitions. If a partition
    has several cycles, or an object several SLOs, the one that was due last counts.
    """
    minutes: dict[Partition, float] = {}
    for record in all_cycles(tx, (contract, object_name)):
        if record.delivered_at is None or record.delivered_at > until:
            continue
        for partition in record.cycle.partitions or ((),):
            lateness = record.delivered_at - record.cycle.due_at
            minutes[tuple(sorted(partition))] = lateness / timedelta(minutes=1)
    return minutes


def newest_cycles(tx: sa.Connection, contract: str, now: datetime) -> list[CycleRecord]:
    """Return the newest cycle of each SLO of a contract that was due by `now`."""
    columns = cycles_table.c
    newest = (
        sa.select(columns.object, columns.slo, sa.func.max(columns.due_at).label("due_at"))
        .where(columns.contract == contract, columns.due_at <= now)
        .group_by(columns.object, columns.slo)
        .subquery()
    )
    is_newest = sa.and_(
        columns.object == newest.c.object, columns.slo == newest.c.slo, columns.due_at == newest.c.due_at
    )
    query = sa.select(cycles_table).join(newest, is_newest).where(columns.contract == contract)
    return [record_from_row(row) for row in tx.execute(query)]


def usual_delay(deliveries: Sequence[CycleRecord]) -> timedelta | None:
    """Return the median of delivery minus due, negative if early, or None for too few deliveries."""
    delays = [
        (record.delivered_at - record.cycle.due_at).total_seconds()
        for record in deliveries
        if record.delivered_at
    ]
    return timedelta(seconds=round(median(delays))) if len(delays) >= _MIN_DELIVERIES else None


def recent_deliveries(tx: sa.Connection, key: tables.Key, before: datetime) -> list[CycleRecord]:
    """Return the newest delivered cycles of an SLO that were due before an instant, newest first."""
    columns = cycles_table.c
    was_delivered = sa.and_(
        tables.matches_key(cycles_table, key), columns.due_at < before, columns.delivered_at.is_not(None)
    )
    query = (
        sa.select(cycles_table).where(was_delivered).order_by(columns.due_at.desc()).limit(RECENT_DELIVERIES)
    )
    return [record_from_row(row) for row in tx.execute(query)]


def counted_cycles(
    tx: sa.Connection, keys: Collection[tables.Key], since: datetime, due_since: datetime
) -> dict[tables.Key, list[tuple[datetime, CycleStatus]]]:
    """Return the cycles of these SLOs with a breach after `since`, as (breach_at, status), by SLO.

    None of them was due before `due_since`; this restriction can use an index.
    """
    columns, names = cycles_table.c, sorted({key[0] for key in keys})
    cycles: dict[tables.Key, list[tuple[datetime, CycleStatus]]] = {key: [] for key in keys}
    query = sa.select(*tables.key_of(cycles_table), columns.breach_at, columns.status)
    for chunk in tables.chunks(names):
        condition = sa.and_(columns.contract.in_(chunk), columns.due_at >= due_since)
        for row in tx.execute(query.where(condition, columns.breach_at > since)):
            key = (row.contract, row.object, row.slo)
            if key in cycles:
                cycles[key].append((row.breach_at, CycleStatus(row.status)))
    return cycles


def find_cycle(tx: sa.Connection, key: tables.Key, due_at: datetime) -> CycleRecord | None:
    """Return the cycle of an SLO that was due at this instant, or None if it has no row."""
    condition = sa.and_(tables.matches_key(cycles_table, key), cycles_table.c.due_at == due_at)
    row = tx.execute(sa.select(cycles_table).where(condition)).first()
    return record_from_row(row) if row is not None else None


def delivered_since(
    tx: sa.Connection,
    contract: str,
    object_name: str,
    since: datetime,
    excluded_servers: Collection[str] = (),
    excluded_slos: Collection[str] = (),
) -> list[Partition]:
    """Return the partitions that arrived at `since` or later, by cycles and receipts, in order of arrival.

    Receipts of `excluded_servers` and cycles of `excluded_slos` are ignored. A partition that was delivered
    twice may be listed twice; a partition without columns is a complete snapshot.
    """
    arrivals = [
        (record.delivered_at, partition)
        for record in all_cycles(tx, (contract, object_name))
        if record.delivered_at is not None
        and record.delivered_at >= since
        and record.cycle.slo not in excluded_slos
        for partition in record.cycle.partitions or ((),)
    ]
    condition = sa.and_(
        tables.receipt.c.contract == contract,
        tables.receipt.c.object == object_name,
        tables.receipt.c.delivered_at >= since,
    )
    for row in tx.execute(sa.select(tables.receipt).where(condition)):
        if row.server in excluded_servers:
            continue
        pairs = [part.partition("=") for part in row.partition.split("/") if part]
        arrivals.append((row.delivered_at, tuple((column, value) for column, _, value in pairs)))
    return [partition for _, partition in sorted(arrivals)]


# The columns of the table that a record has, in this order. A row is read by position, because reading one
# value of a row by name takes longer than creating the record.
_COLUMNS = (
    "contract", "object", "slo", "due_at", "breach_at", "tzdata", "nominal", "note", "partitions", "excuse",
    "calendar", "id", "status", "reason", "delivered_at", "first_seen_at", "notified", "blind",
    "inhibiting_root", "inhibited_until", "contract_hash", "source", "claims", "arriving_since",
    "look_again_at", "gone_since", "anew_at", "recorded_at",
)  # fmt: skip
_values_of = itemgetter(*map(cycles_table.columns.keys().index, _COLUMNS))
_NOTES = {note.value: note for note in DstNote}
_STATUSES = {status.value: status for status in CycleStatus}


# rows of a plain select have no shape to name
def record_from_row(row: sa.Row) -> CycleRecord:  # type: ignore[type-arg]
    """Return a row as a record. Its first columns are those of the table, in the order of the table."""
    (
        contract, object_name, slo, due_at, breach_at, tzdata, nominal, note, partitions, excuse, calendar,
        id_, status, reason, delivered_at, first_seen_at, notified, blind, inhibiting_root, inhibited_until,
        contract_hash, source, claims, arriving_since, look_again_at, gone_since, anew_at, recorded_at,
    ) = _values_of(tuple(row))  # fmt: skip
    cycle = Cycle(
        contract=contract,
        object=object_name,
        slo=slo,
        due_at=due_at,
        breach_at=breach_at,
        tzdata=tzdata,
        nominal=datetime.fromisoformat(nominal),
        note=_NOTES[note],
        partitions=tuple(
            [tuple([(column, value) for column, value in partition]) for partition in partitions or ()]
        ),
        excuse=excuse or "",
        calendar=calendar or "",
    )
    return CycleRecord(
        id=id_,
        cycle=cycle,
        status=_STATUSES[status],
        reason=reason,
        delivered_at=delivered_at,
        first_seen_at=first_seen_at,
        notified=notified,
        blind=blind,
        inhibiting_root=inhibiting_root,
        inhibited_until=inhibited_until,
        contract_hash=contract_hash or "",
        excuse=cycle.excuse,
        source=source,
        claims=claims_from_json(claims) if claims else (),
        arriving_since=arriving_since,
        look_again_at=look_again_at,
        gone_since=gone_since,
        anew_at=anew_at,
        recorded_at=recorded_at,
    )


def claims_from_json(stored: Sequence[Sequence[Any]] | None) -> tuple[SourceAnswer, ...]:
    """Return the claims that a row holds as lists of [source, delivered_at, rows]."""
    return tuple(
        SourceAnswer(source, datetime.fromisoformat(delivered_at) if delivered_at else None, rows)
        for source, delivered_at, rows in stored or ()
    )


# Verdict inputs as JSON: written with each change of a cycle, and read for replays.


def inputs_as_json(inputs: VerdictInputs, dq_release: str) -> dict[str, object]:
    """Return verdict inputs as JSON, with the dq release that evaluated them. Instants are texts in UTC."""
    row: dict[str, object] = {"dq": dq_release}
    if inputs.give_up_at is not None:
        row["give_up_at"] = inputs.give_up_at.isoformat()
    if not inputs.empty_allowed:
        row["empty"] = "forbidden"
    if inputs.excused:
        row["excused"] = inputs.excused
    if inputs.revoked:
        row["revoked"] = inputs.revoked
    if inputs.evidence is not None:
        row["evidence"] = _evidence_as_json(inputs.evidence)
    return row


def _evidence_as_json(evidence: Evidence) -> dict[str, object]:
    """Return the fields that differ from their defaults: most evidence is a source and an instant."""
    fields: dict[str, object] = {"source": evidence.source}
    instants = {
        "delivered_at": evidence.delivered_at,
        "first_seen": evidence.first_seen,
        "arriving": evidence.arriving,
    }
    fields |= {name: instant.isoformat() for name, instant in instants.items() if instant is not None}
    if not evidence.readable:
        fields["problem"] = evidence.problem
    if evidence.rows is not None:
        fields["rows"] = evidence.rows
    if evidence.detail:
        fields["detail"] = evidence.detail
    if evidence.names_cycle:
        fields["names_cycle"] = True
    if evidence.settled:
        fields["settled"] = True
    return fields


def inputs_from_json(row: Mapping[str, object]) -> VerdictInputs:
    """Parse verdict inputs written by `inputs_as_json`. Raises ValueError if they are invalid."""
    try:
        evidence = row.get("evidence")
        return VerdictInputs(
            evidence=_evidence_from_json(evidence) if isinstance(evidence, dict) else None,
            give_up_at=_parse_instant(row.get("give_up_at")),
            empty_allowed=row.get("empty") != "forbidden",
            excused=str(row.get("excused", "")),
            revoked=str(row.get("revoked", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"invalid evidence in the store: {row!r}") from error


def _evidence_from_json(row: Mapping[str, object]) -> Evidence:
    source, rows = row["source"], row.get("rows")
    if source not in ("receipt", "marker", "commit", "event", "file"):
        raise ValueError(f"{source!r} is not an evidence source")
    return Evidence(
        source,
        delivered_at=_parse_instant(row.get("delivered_at")),
        first_seen=_parse_instant(row.get("first_seen")),
        readable="problem" not in row,
        problem=str(row.get("problem", "")),
        rows=rows if isinstance(rows, int) else None,
        detail=str(row.get("detail", "")),
        names_cycle=bool(row.get("names_cycle")),
        settled=bool(row.get("settled")),
        arriving=_parse_instant(row.get("arriving")),
    )


def _parse_instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


# Watermarks: up to when each SLO is watched, its data's root, and the notified level of its budget.


def _column_by_key(
    tx: sa.Connection, column: str, *conditions: sa.ColumnElement[bool]
) -> dict[tables.Key, Any]:
    query = sa.select(*tables.key_of(tables.watermark), tables.watermark.c[column]).where(*conditions)
    return {(row[0], row[1], row[2]): row[3] for row in tx.execute(query)}


def watched_through(tx: sa.Connection) -> dict[tables.Key, datetime]:
    """Return the due instant up to which the cycles of each SLO have rows, by SLO."""
    return _column_by_key(tx, "through")


def known_slos(tx: sa.Connection) -> set[tables.Key]:
    """Return the keys of all SLOs that are watched or have cycles."""
    cycle_keys = tx.execute(sa.select(*tables.key_of(cycles_table)).distinct())
    return {*watched_through(tx), *((row[0], row[1], row[2]) for row in cycle_keys)}


def watched_slos(tx: sa.Connection, contracts: Collection[str]) -> dict[tuple[str, str], set[tables.Key]]:
    """Return the keys of the watched SLOs of these contracts, by contract and object, in order.

    SLOs that any new data meets are left out, so that an object may have none.
    """
    watched: dict[tuple[str, str], set[tables.Key]] = {}
    keys, terms = set[tables.Key](), tables.slo_terms.c
    for chunk in tables.chunks(sorted(contracts)):
        keys |= set(_column_by_key(tx, "through", tables.watermark.c.contract.in_(chunk)))
    any_data = set[tables.Key]()
    for chunk in tables.chunks(sorted({key[0] for key in keys})):
        query = sa.select(*tables.key_of(tables.slo_terms)).where(
            terms.contract.in_(chunk), terms.expects_new_data
        )
        any_data |= {(row[0], row[1], row[2]) for row in tx.execute(query)}
    for key in sorted(keys):
        watched.setdefault(key[:2], set()).update({key} - any_data)
    return watched


def advance_watermarks(
    tx: sa.Connection,
    watched_keys: Collection[tables.Key],
    unchanged_contracts: Collection[str],
    until: datetime,
) -> None:
    """Advance the watermarks of these SLOs, and of all SLOs of the unchanged contracts, to an instant.

    Edits of a contract therefore do not add cycles before that instant.
    """
    keys, columns = set(watched_keys), tables.watermark.c
    is_behind = columns.through < until
    partial_contracts = {
        key[0] for key in watched_through(tx) if key[0] not in unchanged_contracts and key not in keys
    }
    complete_contracts = sorted(
        {key[0] for key in keys if key[0] not in partial_contracts} | set(unchanged_contracts)
    )
    for chunk in tables.chunks(complete_contracts):
        tx.execute(
            sa.update(tables.watermark).where(columns.contract.in_(chunk), is_behind).values(through=until)
        )
    for key in sorted(keys):
        if key[0] in partial_contracts:
            tx.execute(
                sa.update(tables.watermark)
                .where(tables.matches_key(tables.watermark, key), is_behind)
                .values(through=until)
            )


def ever_delivered(tx: sa.Connection) -> set[tables.Key]:
    """Return the keys of the SLOs that ever had a delivery."""
    return set(_column_by_key(tx, "delivered_at", tables.watermark.c.delivered_at.is_not(None)))


def save_roots(tx: sa.Connection, roots: Mapping[tables.Key, str]) -> None:
    """Store the storage roots of SLOs."""
    _set(tx, "root", roots)


def watched_roots(tx: sa.Connection) -> dict[tables.Key, str | None]:
    """Return the last known storage root of each SLO, by key."""
    return _column_by_key(tx, "root")


def notified_budgets(tx: sa.Connection) -> dict[tables.Key, str]:
    """Return the notified budget levels by SLO key, only for SLOs with a notification."""
    return _column_by_key(tx, "budget", tables.watermark.c.budget.is_not(None))


def save_budget_level(tx: sa.Connection, key: tables.Key, level: str | None) -> None:
    """Store the notified budget level of an SLO."""
    tx.execute(
        sa.update(tables.watermark).where(tables.matches_key(tables.watermark, key)).values(budget=level)
    )


def delete_watermark(tx: sa.Connection, key: tables.Key) -> None:
    """Delete the watermark of an SLO: if it is watched again, nothing is due for the time in between."""
    tx.execute(sa.delete(tables.watermark).where(tables.matches_key(tables.watermark, key)))


def move_watermarks(tx: sa.Connection, keys: Iterable[tables.Key], until: datetime) -> None:
    """Record that every cycle of these SLOs due up to an instant has a row; watermarks never move back."""
    current = watched_through(tx)
    advanced_keys = [key for key in keys if current.get(key, until) <= until]
    new_rows = [
        dict(zip(tables.KEY, key, strict=True), through=until) for key in advanced_keys if key not in current
    ]
    if new_rows:
        tx.execute(sa.insert(tables.watermark), new_rows)
    _advance(tx, "through", {key: until for key in advanced_keys if key in current})


def save_newest_deliveries(tx: sa.Connection, newest: Mapping[tables.Key, datetime]) -> None:
    """Store the newest delivery of each SLO, if it is newer than the stored one."""
    _advance(tx, "delivered_at", newest)


def _advance(tx: sa.Connection, column: str, values: Mapping[tables.Key, datetime]) -> None:
    """Set an instant of each SLO if it is newer than the stored one."""
    stored = tables.watermark.c[column]
    _set(tx, column, values, sa.or_(stored.is_(None), stored < sa.bindparam("new", type_=UtcDateTime())))


def _set(
    tx: sa.Connection, column: str, values: Mapping[tables.Key, object], *conditions: sa.ColumnElement[bool]
) -> None:
    names = [f"its_{name}" for name in tables.KEY]
    rows = [{**dict(zip(names, key, strict=True)), "new": value} for key, value in values.items()]
    if rows:
        new_value = sa.bindparam("new", type_=tables.watermark.c[column].type)
        same_slo = tables.matches_key(tables.watermark, list(map(sa.bindparam, names)))
        tx.execute(sa.update(tables.watermark).where(same_slo, *conditions).values({column: new_value}), rows)


# Bulk writes of cycles: rows are inserted once, updated only if unchanged since they were read, and each
# update is logged as an event.


@dataclass(frozen=True, slots=True)
class CycleUpdate:
    """Pending update of the cycle read as `record`; see the columns of its table."""

    record: CycleRecord
    verdict: CycleVerdict
    evidence: Evidence | None = None
    notified: bool = False
    outage_source: str | None = None
    inhibition: tuple[str, datetime] | None = None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    anew_at: datetime | None = None

    @property
    def delivered_at(self) -> datetime | None:
        """Instant of the delivery according to the new verdict."""
        return self.verdict.delivered_at(self.record.cycle)


def insert_cycles(tx: sa.Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]], until: datetime) -> None:
    """Insert the rows of new cycles and advance the watermarks. Rows that another watcher added are kept."""
    existing = _existing_cycles(tx, due)
    rows = [
        _row(slo, cycle) | {"recorded_at": until}
        for slo, cycles in due
        for cycle in cycles
        if (*slo.key, cycle.due_at) not in existing
    ]
    if rows:
        tx.execute(sa.insert(cycles_table), rows)
    move_watermarks(tx, [slo.key for slo, _ in due], until)


def _existing_cycles(
    tx: sa.Connection, due: Sequence[tuple[Slo, Sequence[Cycle]]]
) -> set[tuple[object, ...]]:
    since = min((cycle.due_at for _, cycles in due for cycle in cycles), default=None)
    if since is None:
        return set()
    columns = cycles_table.c
    query = sa.select(*tables.key_of(cycles_table), columns.due_at)
    contracts = sorted({slo.key[0] for slo, cycles in due if cycles})
    existing: set[tuple[object, ...]] = set()
    for chunk in tables.chunks(contracts):
        existing |= set(
            map(tuple, tx.execute(query.where(columns.contract.in_(chunk), columns.due_at >= since)))
        )
    return existing


def _row(slo: Slo, cycle: Cycle) -> dict[str, object]:
    return {
        **{name: getattr(cycle, name) for name in (*tables.KEY, "due_at", "breach_at", "tzdata", "note")},
        "nominal": cycle.nominal.isoformat(),
        "partitions": [[list(pair) for pair in partition] for partition in cycle.partitions],
        "status": CycleStatus.PENDING,
        "reason": "",
        "notified": False,
        "contract_version": slo.contract.version,
        "contract_hash": slo.contract.digest or None,
        "calendar": cycle.calendar or None,
        "dq": release(),
        "excuse": cycle.excuse or None,
    }


def apply_updates(tx: sa.Connection, updates: Sequence[CycleUpdate], now: datetime) -> set[int]:
    """Update the cycles that are unchanged since they were read, and return their ids.

    There is one writer at a time, so the rows cannot change between the check and the update.
    """
    records = {update.record.id: update.record for update in updates}
    columns = cycles_table.c
    current_ids: set[int] = set()
    for chunk in tables.chunks(sorted(records)):
        for row in tx.execute(
            sa.select(columns.id, columns.status, columns.notified).where(columns.id.in_(chunk))
        ):
            record = records[row.id]
            if (row.status, row.notified) == (record.status, record.notified):
                current_ids.add(row.id)
    applied = [update for update in updates if update.record.id in current_ids]
    if not applied:
        return current_ids
    rows = [(update.record, _values(update)) for update in applied]
    tx.execute(
        sa.update(cycles_table).where(columns.id == sa.bindparam("row")), [values for _, values in rows]
    )
    states = [
        {"cycle_id": record.id, "at": now, **{column: values[column] for column in state_values}}
        for record, values, state_values in (
            (record, values, _state_values(record)) for record, values in rows
        )
        if any(values[column] != previous for column, previous in state_values.items())
    ]
    if states:
        tx.execute(sa.insert(tables.cycle_state), states)
    newest: dict[tables.Key, datetime] = {}
    for update in applied:
        key, delivered_at = update.record.cycle.key, update.delivered_at
        if delivered_at is not None:
            newest[key] = max(newest.get(key, delivered_at), delivered_at)
    save_newest_deliveries(tx, newest)
    events = [
        {
            "cycle_id": update.record.id,
            "at": now,
            "before": update.record.status,
            "after": update.verdict.status,
            "reason": update.verdict.reason,
            "proof": inputs_as_json(update.verdict.inputs, release()) if update.verdict.inputs else None,
        }
        for update in applied
        # A delivery after giving up leaves the status `never`, but is logged as a change.
        if update.verdict.status is not update.record.status
        or update.delivered_at != update.record.delivered_at
    ]
    if events:
        tx.execute(sa.insert(tables.cycle_event), events)
    return current_ids


STATE_COLUMNS = (
    "status", "reason", "delivered_at", "first_seen_at", "source", "arriving_since", "gone_since", "anew_at",
)  # fmt: skip
"""Columns of a cycle that are kept for each past state, in addition to its claims."""


def _state_values(record: CycleRecord) -> dict[str, object]:
    """Return the values of a cycle that are kept for each past state."""
    return {name: getattr(record, name) for name in STATE_COLUMNS} | {
        "claims": _claims_as_json(record.claims) or None
    }


def clear_inhibition(tx: sa.Connection, root: str) -> None:
    """Clear the inhibition of the cycles under a root, once its incident has ended."""
    tx.execute(
        sa.update(cycles_table).where(cycles_table.c.inhibiting_root == root).values(inhibiting_root=None)
    )


def _values(update: CycleUpdate) -> dict[str, object]:
    record, evidence = update.record, update.evidence
    arriving = evidence.arriving if evidence else None
    revoked = record.status.delivered and not update.verdict.status.delivered
    return {
        "row": record.id,
        "status": update.verdict.status,
        "reason": update.verdict.reason,
        "delivered_at": update.delivered_at,
        # After a revocation, the next delivery is a first sighting again.
        "first_seen_at": None
        if revoked
        else (evidence.first_seen if evidence else None) or record.first_seen_at,
        "source": evidence.source if evidence and update.delivered_at else None,
        "claims": (_claims_as_json(evidence.claims) or None) if evidence else None,
        "arriving_since": (record.arriving_since or arriving) if arriving else None,
        "look_again_at": update.look_again_at,
        "gone_since": update.gone_since,
        "anew_at": update.anew_at or record.anew_at,
        "notified": update.notified,
        "blind": update.outage_source,
        # Kept until no alert under the root is inhibited any longer, because all of them are counted.
        "inhibiting_root": update.inhibition[0] if update.inhibition else record.inhibiting_root,
        # Kept, so that each cycle is inhibited only once.
        "inhibited_until": update.inhibition[1] if update.inhibition else record.inhibited_until,
    }


def _claims_as_json(claims: Iterable[SourceAnswer]) -> list[list[object]]:
    return [
        [claim.source, claim.delivered_at.isoformat() if claim.delivered_at else None, claim.rows]
        for claim in claims
    ]


EmitEvent = Callable[[sa.Connection, Breach | Recovery], object]


# Excuses: who excluded which cycles from the SLO, and why. Append-only.


@dataclass(frozen=True, slots=True)
class Excuse:
    """A user's decision that a cycle does not count, or (`undone`) that it counts again."""

    key: tables.Key
    due_at: datetime
    at: datetime
    by: str
    reason: str
    undone: bool = False

    @property
    def text(self) -> str:
        """Text for the cycle's reason."""
        return f"Excused by {self.by}: {self.reason}"


def record_excuses(tx: sa.Connection, excuses: Iterable[Excuse]) -> None:
    """Append excuses."""
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
    """Return the newest excuse of each cycle of these contracts, including undone ones."""
    columns = tables.cycle_excuse.c
    newest: dict[tuple[tables.Key, datetime], Excuse] = {}
    for chunk in tables.chunks(sorted(contracts)):
        condition = columns.contract.in_(chunk)
        for row in tx.execute(sa.select(tables.cycle_excuse).where(condition).order_by(columns.id)):
            key = (row.contract, row.object, row.slo)
            newest[key, row.due_at] = Excuse(key, row.due_at, row.at, row.by, row.reason, row.undone)
    return newest


def filter_excused(tx: sa.Connection, excuses: Sequence[Excuse]) -> list[Excuse]:
    """Return the excuses whose cycle is excused according to its newest excuse."""
    newest = newest_excuses(tx, {excuse.key[0] for excuse in excuses})
    return [
        excuse
        for excuse in excuses
        if (newest_excuse := newest.get((excuse.key, excuse.due_at))) is not None and not newest_excuse.undone
    ]


# Receipts: deliveries recorded by a publish step.


def receipts(
    tx: sa.Connection, contract: str, object_name: str, excluded_servers: Collection[str] = ()
) -> dict[str, Receipt]:
    """Return the receipts of an object by partition label, and by `due:<instant>` if they name their cycle.

    Receipts of `excluded_servers` are ignored. Receipts without a server are of an older dq, and count.
    """
    key = (contract, object_name, "")
    return receipts_by_slo(tx, {key: excluded_servers})[key]


def receipts_by_slo(
    tx: sa.Connection, excluded_servers: Mapping[tables.Key, Collection[str]]
) -> dict[tables.Key, dict[str, Receipt]]:
    """Return the receipts of the objects of these SLOs, each as from `receipts`.

    `excluded_servers` has the servers whose receipts are ignored, by SLO.
    """
    by_servers: _ByServers[dict[str, Receipt]] = _ByServers(excluded_servers, dict)
    columns = tables.receipt.c
    for chunk in tables.chunks(by_servers.contracts):
        condition = columns.contract.in_(chunk)
        for row in tx.execute(
            sa.select(tables.receipt).where(condition).order_by(columns.delivered_at, columns.revision)
        ):
            cycle = f"due:{row.due_at.isoformat()}" if row.due_at is not None else ""
            for by_label in by_servers.containing(row):
                for name in filter(None, (row.partition, cycle)):
                    first = by_label.get(name)
                    redelivery = Receipt(row.delivered_at, row.rows, row.revision, server=row.server or "")
                    by_label[name] = first.with_redelivery(redelivery) if first else redelivery
    return by_servers.by_slo()


T = TypeVar("T")


class _ByServers(Generic[T]):
    """A value for each object and set of excluded servers: SLOs of one object may be on other servers."""

    def __init__(
        self, excluded_servers: Mapping[tables.Key, Collection[str]], create: Callable[[], T]
    ) -> None:
        self._servers = {key: frozenset(servers) for key, servers in excluded_servers.items()}
        self._values: dict[tuple[str, str], dict[frozenset[str], T]] = {}
        for key, servers in self._servers.items():
            self._values.setdefault(key[:2], {}).setdefault(servers, create())

    @property
    def contracts(self) -> list[str]:
        """Keys of the contracts, sorted."""
        return sorted({contract for contract, _ in self._values})

    def containing(self, row: sa.Row[Any]) -> list[T]:
        """Return the values to which a row of an object and a server belongs."""
        values = self._values.get((row.contract, row.object), {})
        return [value for servers, value in values.items() if row.server not in servers]

    def by_slo(self) -> dict[tables.Key, T]:
        """Return the values by SLO."""
        return {key: self._values[key[:2]][servers] for key, servers in self._servers.items()}


@dataclass(frozen=True, slots=True)
class RowClaim:
    """Row counts that the producer claims for a partition, in its newest receipt.

    `partition` is empty for an object without partitions. `revision` is 0 for counts without a receipt.
    `rows_by` has the counts by group.
    """

    partition: Partition
    rows: int
    revision: int
    delivered_at: datetime
    server: str
    rows_by: GroupCounts = ()


def row_claims(
    tx: sa.Connection, contract: str, object: str, excluded_servers: Collection[str], now: datetime
) -> list[RowClaim]:
    """Return the claimed row counts as of `now`, one per partition.

    The newest receipt of a partition counts, whatever its cycle: its count covers the whole partition.
    Partitions whose newest receipt has no count have none. Receipts of `excluded_servers` are ignored.
    """
    columns = tables.receipt.c
    condition = (columns.contract == contract) & (columns.object == object) & (columns.delivered_at <= now)
    # Simultaneous receipts are of cycles that one run published in the order of their due times.
    order = (columns.delivered_at, columns.due_at.nulls_first(), columns.revision)
    newest = {
        row.partition: row
        for row in tx.execute(sa.select(tables.receipt).where(condition).order_by(*order))
        if row.server not in excluded_servers
    }
    return [
        RowClaim(
            partition_from_label(name),
            row.rows,
            row.revision,
            row.delivered_at,
            row.server or "",
            _group_counts(row.rows_by),
        )
        for name, row in newest.items()
        if row.rows is not None
    ]


def _group_counts(stored: Sequence[Any] | None) -> GroupCounts:
    return tuple((column, tuple((value, rows) for value, rows in groups)) for column, groups in stored or ())


def has_receipt(tx: sa.Connection, id: str) -> bool:
    """True if the receipt with this id exists."""
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
    rows_by: GroupCounts = (),
) -> bool:
    """Write a receipt and return True; if the id already exists, change nothing and return False."""
    if has_receipt(tx, id):
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
            rows_by=rows_by or None,
            contract_version=version,
            revision=revision,
            server=server,
        )
    )
    return True


def set_receipt_rows(tx: sa.Connection, id: str, rows: int, rows_by: GroupCounts) -> None:
    """Set the row counts of the receipt with this id."""
    matches = tables.receipt.c.id == id
    tx.execute(sa.update(tables.receipt).where(matches).values(rows=rows, rows_by=rows_by or None))


def receipt_group_counts(tx: sa.Connection, id: str) -> GroupCounts:
    """Return the counts by group of the receipt with this id; empty without them, or without the receipt."""
    query = sa.select(tables.receipt.c.rows_by).where(tables.receipt.c.id == id)
    return _group_counts(tx.execute(query).scalar_one_or_none())


# Events of a storage about the objects in a partition's folder.


@dataclass(frozen=True, slots=True)
class StorageEvent:
    """An object that was created in a partition's folder, or removed from it, at an instant.

    `partition` is the partition's label, "" for the table's own folder. `is_marker`: it is the marker of a
    complete delivery, not data.
    """

    contract: str
    object: str
    server: str
    partition: str
    is_marker: bool
    at: datetime
    is_removal: bool = False


_EVENT_KEY = ("contract", "object", "server", "partition", "is_marker")


def record_storage_events(tx: sa.Connection, events: Iterable[StorageEvent], now: datetime) -> None:
    """Record events in any order; recording one again changes nothing. A time after `now` counts as now."""
    by_key: dict[tuple[object, ...], list[StorageEvent]] = {}
    for event in events:
        by_key.setdefault(tuple(getattr(event, name) for name in _EVENT_KEY), []).append(event)
    table = tables.storage_event
    partitions: dict[object, set[str]] = {}
    for contract, _, _, partition, _ in by_key:
        partitions.setdefault(contract, set()).add(str(partition))
    stored: dict[tuple[object, ...], sa.Row[Any]] = {}
    for contract, names in partitions.items():
        for chunk in tables.chunks(sorted(names)):
            query = sa.select(table).where(table.c.contract == contract, table.c.partition.in_(chunk))
            stored |= {tuple(getattr(row, name) for name in _EVENT_KEY): row for row in tx.execute(query)}
    for key, same in by_key.items():
        row = stored.get(key)
        created = [min(event.at, now) for event in same if not event.is_removal]
        removed = [min(event.at, now) for event in same if event.is_removal]
        if row is not None:
            created += [time for time in (row.first_at, row.newest_at) if time is not None]
            removed += [row.removed_at] if row.removed_at is not None else []
        values = {
            "first_at": min(created, default=None),
            "newest_at": max(created, default=None),
            "removed_at": max(removed, default=None),
        }
        identity = dict(zip(_EVENT_KEY, key, strict=True))
        if row is None:
            tx.execute(sa.insert(table).values(**identity, **values, recorded_at=now))
        elif any(getattr(row, name) != value for name, value in values.items()):
            condition = sa.and_(*(table.c[name] == value for name, value in identity.items()))
            tx.execute(sa.update(table).where(condition).values(**values, recorded_at=now))


# Older events are not relevant to any cycle that is still watched.
_KEEP_EVENTS_FOR = timedelta(days=90)


def storage_events_by_slo(
    tx: sa.Connection, excluded_servers: Mapping[tables.Key, Collection[str]], now: datetime
) -> Mapping[tables.Key, StorageEvents]:
    """Return the recent events of the objects of these SLOs.

    `excluded_servers` has the servers whose events are ignored, by SLO.
    """
    by_servers: _ByServers[dict[tuple[str, bool], ObjectTimes]] = _ByServers(excluded_servers, dict)
    columns = tables.storage_event.c
    for chunk in tables.chunks(by_servers.contracts):
        is_recent = sa.and_(columns.contract.in_(chunk), columns.recorded_at > now - _KEEP_EVENTS_FOR)
        for row in tx.execute(sa.select(tables.storage_event).where(is_recent)):
            times = ObjectTimes(row.first_at, row.newest_at, row.removed_at)
            for events in by_servers.containing(row):
                events[row.partition, row.is_marker] = times
    return by_servers.by_slo()
