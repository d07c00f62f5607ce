"""Store queries for many products: deliveries, incidents, check results, and changes since a build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Table, func, null, select, union

from dq.alerts import incident_store
from dq.alerts.incident import DIGEST_CONTRACT, NOTICE_CONTRACT, PAST_CONTRACT, Incident
from dq.alerts.incident_store import PastStep, past_states, steps_until
from dq.alerts.tables import incident, incident_event, outbox
from dq.contracts.metrics import UNUSUAL, Against
from dq.dataquality import results
from dq.dataquality.alarms import NO_ALARMS, AlarmCounts, alarm_counts
from dq.dataquality.clauses.quality_rule import (
    ExpectedRange,
    PastCount,
    differ_only_in_date,
    partition_time,
    usual_range,
)
from dq.dataquality.delivery import early_warning, heartbeat
from dq.dataquality.delivery.cycle import OPEN, CycleRecord
from dq.dataquality.delivery.cycle_store import record_from_row
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.replay import records_as_of
from dq.dataquality.delivery.tables import chunks, cycle, cycle_event, cycle_excuse, cycle_warning, receipt
from dq.dataquality.results import ROW_COUNT, ROW_COUNT_CHECKS, PastResult, StoredResult, check_run
from dq.registry.table import spec_from_json
from dq.registry.tables import catalog_applied, publication_revision, staged_deliveries

# The cycles of many products, with a few queries.

Key = tuple[str, str, str]
_OWN_CATALOG = "local"
_UNUSED_COLUMNS = ("claims",)


def histories(
    tx: Connection,
    contracts: Collection[str],
    as_of: datetime | None = None,
    since: datetime | None = None,
) -> dict[Key, list[CycleRecord]]:
    """Return the cycles of these contracts by SLO, oldest first, as of an instant or now.

    All of them, or those that were due at `since` or later.

    Claims are not loaded: no page shows them.
    """
    names, columns = sorted(contracts), cycle.c
    selected = [null().label(column.name) if column.name in _UNUSED_COLUMNS else column for column in columns]
    query = select(*selected).order_by(columns.contract, columns.object, columns.slo, columns.due_at)
    if since is not None:
        query = query.where(columns.due_at >= since)
    stored = [
        record_from_row(row)
        for batch in chunks(names)
        for row in tx.execute(query.where(columns.contract.in_(batch)))
    ]
    by_slo: dict[Key, list[CycleRecord]] = {}
    for record in records_as_of(tx, stored, as_of):
        by_slo.setdefault(record.cycle.key, []).append(record)
    return by_slo


# Partitions that were published outside of their table's folder, which only a catalog locates.


@dataclass(frozen=True, slots=True)
class PlacedElsewhere:
    """Partitions of a server that were published outside of their table's folder.

    `partition` is one of them, as in a path, and `folder` the folder with its files.
    """

    count: int
    partition: str
    folder: str


def placed_elsewhere(tx: Connection, contracts: Collection[str]) -> dict[tuple[str, str], PlacedElsewhere]:
    """Return the placed partitions of each server that has any, by contract key and server name."""
    columns, by_server = receipt.c, dict[tuple[str, str], list[tuple[str, str]]]()
    query = (
        select(columns.contract, columns.server, columns.partition, publication_revision.c.folder)
        .join(publication_revision, publication_revision.c.id == columns.id)
        .where(publication_revision.c.id.in_(staged_deliveries()), columns.partition != "")
    )
    for batch in chunks(sorted(contracts)):
        for row in tx.execute(query.where(columns.contract.in_(batch))):
            by_server.setdefault((row.contract, row.server or ""), []).append((row.partition, row.folder))
    return {key: PlacedElsewhere(len(set(rows)), *max(rows)) for key, rows in by_server.items()}


def registered_tables(tx: Connection) -> dict[str, tuple[str, ...]]:
    """Return the tables that `dq register` has written to catalogs that engines read, by location."""
    by_location: dict[str, tuple[str, ...]] = {}
    query = select(catalog_applied.c.spec).where(catalog_applied.c.catalog != _OWN_CATALOG)
    for spec in sorted((spec_from_json(row.spec) for row in tx.execute(query)), key=lambda spec: spec.key):
        by_location[spec.location] = (*by_location.get(spec.location, ()), ".".join(spec.key))
    return by_location


# Incidents with their history and messages.


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A sent or pending message to one receiver; `state` is that of the outbox row."""

    channel: str
    target: str
    operation: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """An incident, its history, oldest first, and its messages.

    `messages` is None for a past instant, because past states of messages are not stored.
    """

    incident: Incident
    history: tuple[PastStep, ...] = ()
    messages: tuple[SentMessage, ...] | None = ()

    @property
    def about_the_platform(self) -> bool:
        """True if the incident is about dq itself, not about a product."""
        return self.incident.key.contract == PLATFORM


def stored_incidents(tx: Connection, since: datetime, as_of: datetime | None = None) -> list[IncidentFacts]:
    """Return the incidents that are open or were resolved at or after `since`, newest first."""
    unlisted = (DIGEST_CONTRACT, NOTICE_CONTRACT, PAST_CONTRACT)
    stored = incident_store.open_or_since(tx, since, unlisted)
    steps = incident_store.histories(tx, [incident.id for incident in stored])
    incidents = past_states(stored, steps, as_of)
    ids = [incident.id for incident in incidents]
    messages = None if heartbeat.has_later_tick(tx, as_of) else _messages(tx, ids)
    return [
        IncidentFacts(
            incident,
            tuple(steps_until(steps.get(incident.id, ()), as_of)),
            None if messages is None else tuple(messages.get(incident.id, ())),
        )
        for incident in incidents
    ]


def _messages(tx: Connection, ids: Sequence[str]) -> dict[str, list[SentMessage]]:
    by_incident: dict[str, list[SentMessage]] = defaultdict(list)
    query = select(outbox).order_by(outbox.c.id)
    for batch in chunks(ids):
        for row in tx.execute(query.where(outbox.c.incident_id.in_(batch))):
            by_incident[row.incident_id].append(
                SentMessage(row.channel, row.target, row.operation, row.state, row.reason)
            )
    return by_incident


# Check results and row counts of many products.

# Default parameters of the rule for unusual row counts.
_TERMS = Against("usual")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Row counts of each partition (or of the table at each run), oldest first, and their usual range.

    `usual` is None if there are too few counts, or if a rule judges them by forecasts: then `unusual` has the
    times of those that failed, else it is None.
    """

    counts: tuple[PastCount, ...]
    usual: ExpectedRange | None
    unusual: frozenset[datetime] | None = None


@dataclass(frozen=True, slots=True)
class ObjectQuality:
    """Check results of an object. `checked_at` is the time of the last check, or None if never checked.

    `lines` are the current results of each scope, `past` those of earlier runs too, oldest first. `alarms`
    counts the alarms of the check `unusual`.
    """

    lines: tuple[StoredResult, ...] = ()
    rows: RowCounts | None = None
    checked_at: datetime | None = None
    past: tuple[PastResult, ...] = ()
    alarms: AlarmCounts = NO_ALARMS

    @property
    def newest(self) -> tuple[StoredResult, ...]:
        """Current results of the scope that was checked last."""
        last = max(self.lines, key=lambda line: line.at, default=None)
        return tuple(line for line in self.lines if last is not None and line.scope == last.scope)


NO_QUALITY = ObjectQuality()


def quality(
    tx: Connection, contracts: Collection[str], now: datetime, as_of: datetime | None = None
) -> dict[tuple[str, str], ObjectQuality]:
    """Return the results of each object that was ever checked, by contract key and object name."""
    alarms = alarm_counts(tx, as_of, contracts)
    lines, past = results.latest(tx, contracts, as_of), results.past_results(tx, contracts, as_of)
    return {
        pair: ObjectQuality(
            tuple(lines.get(pair, ())),
            _rows(past.get(pair, ()), now),
            max((line.at for line in lines.get(pair, ())), default=None),
            tuple(past.get(pair, ())),
            alarms.get(pair, NO_ALARMS),
        )
        for pair in sorted(lines.keys() | past.keys())
    }


def _rows(past: Sequence[PastResult], now: datetime) -> RowCounts | None:
    # Counts of one rule are comparable; the others may count other rows.
    by_rule: dict[tuple[bool, str], list[tuple[PastResult, int]]] = defaultdict(list)
    for result in past:
        rows = result.value if result.check in ROW_COUNT_CHECKS else result.numbers.get(ROW_COUNT)
        if rows is not None and result.partition is not None and result.check in _COUNTING_CHECKS:
            by_rule[result.check != UNUSUAL, result.name or result.clause].append((result, int(rows)))
    if not by_rule:
        return None
    # The rule of the newest count; a promised range comes before a forecast.
    key = max(by_rule, key=lambda key: (by_rule[key][-1][0].at, key[0], len(by_rule[key])))
    newest, _ = by_rule[key][-1]
    alike = [
        (result, rows)
        for result, rows in by_rule[key]
        if differ_only_in_date(result.partition or (), newest.partition or ())
    ]
    # The newest count of a partition that was checked again; each run of a whole table.
    by_scope = {
        (result.partition or result.at): (
            PastCount(partition_time(result.partition or ()) or result.at, rows),
            ROW_COUNT in result.failed,
        )
        for result, rows in alike
    }
    series = sorted(by_scope.values(), key=lambda pair: pair[0].data_time)
    counts = tuple(count for count, _ in series)
    if newest.check == UNUSUAL:
        return RowCounts(counts, None, frozenset(count.data_time for count, failed in series if failed))
    return RowCounts(counts, _band(counts[:-1], counts[-1], now))


_COUNTING_CHECKS = (*ROW_COUNT_CHECKS, UNUSUAL)


def _band(earlier: Sequence[PastCount], last: PastCount, now: datetime) -> ExpectedRange | None:
    if len(earlier) < _TERMS.minimum:
        return None
    return usual_range(earlier, min(last.data_time, now), _TERMS)


# The watcher's last tick, which tells whether pages are up to date.


@dataclass(frozen=True, slots=True)
class Watcher:
    """The watcher as of `now`, the time of the pages.

    `last_tick_at` is the time of its last tick, or None if it never ran; `tick` is its intended interval.
    """

    now: datetime
    last_tick_at: datetime | None
    tick: timedelta

    @property
    def stale(self) -> bool:
        """True if the last tick is more than two intervals away, in the past or the future."""
        return self.last_tick_at is None or abs(self.now - self.last_tick_at) > 2 * self.tick

    @property
    def ahead(self) -> bool:
        """True if the last tick is in the future, so that its age is unknown."""
        return self.last_tick_at is not None and self.last_tick_at - self.now > 2 * self.tick


def watcher(tx: Connection, now: datetime, tick: timedelta, as_of: datetime | None = None) -> Watcher:
    """Return the watcher's state, or its state at a past instant."""
    return Watcher(now, heartbeat.last_tick(tx, as_of=as_of), tick)


# Products with changes in the store since an earlier build, with a few queries for all of them.
#
# Append-only tables are compared by their last row. Rows that change in place are the open ones, which are
# few; for them a hash is stored for each product.

_APPEND_ONLY: tuple[Table, ...] = (cycle, cycle_event, cycle_excuse, check_run, incident_event)
_HASH = 16


def watermarks(tx: Connection) -> dict[str, Any]:
    """Return the first and last row ids of the tables, and hashes of open cycles, as JSON values."""
    ends = {}
    for table in _APPEND_ONLY:
        # Two queries: for both at once, SQLite scans the whole index.
        ends[table.name] = [tx.execute(select(end(table.c.id))).scalar() for end in (func.min, func.max)]
    return {"ends": ends, "open": _open(tx)}


def changed_since(tx: Connection, before: dict[str, Any], now: dict[str, Any]) -> set[str] | None:
    """Return the keys of contracts that may have changed between two watermarks, or None for all.

    None means that rows are missing: the store was pruned or replaced.
    """
    old, new = before.get("ends"), now["ends"]
    if not isinstance(old, dict) or old.keys() != new.keys():
        return None
    if any(old[name][0] != new[name][0] and old[name][0] is not None for name in new):
        return None
    if any((old[name][1] or 0) > (new[name][1] or 0) for name in new):
        return None
    changed_keys = _differing(before.get("open", {}), now["open"])
    # No DISTINCT: with it, SQLite scans all keys instead of the new rows.
    for table in (cycle, check_run, cycle_excuse):
        rows = select(table.c.contract).where(table.c.id > (old[table.name][1] or 0))
        changed_keys |= set(tx.execute(rows).scalars())
    last = old[cycle_event.name][1] or 0
    events = select(cycle.c.contract).join(cycle_event, cycle_event.c.cycle_id == cycle.c.id)
    changed_keys |= set(tx.execute(events.where(cycle_event.c.id > last)).scalars())
    last = old[incident_event.name][1] or 0
    incident_events = select(incident.c.contract).join(
        incident_event, incident_event.c.incident_id == incident.c.id
    )
    return changed_keys | set(tx.execute(incident_events.where(incident_event.c.id > last)).scalars())


def _differing(before: dict[str, str], now: dict[str, str]) -> set[str]:
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def _open(tx: Connection) -> dict[str, str]:
    """Return a hash of the rows that may change in place, by contract."""
    columns = cycle.c
    # A union: for conditions joined by OR, SQLite scans every cycle.
    may_change = union(
        select(columns.id).where(columns.status.in_(OPEN)),
        select(columns.id).where(columns.look_again_at.is_not(None)),
    )
    query = select(
        columns.contract, columns.id, columns.status, columns.reason, columns.delivered_at, columns.source,
        columns.first_seen_at, columns.claims, columns.arriving_since, columns.gone_since, columns.anew_at,
    ).where(columns.id.in_(may_change))  # fmt: skip
    hashes: dict[str, Any] = defaultdict(sha256)
    # Sorted here: with ORDER BY, SQLite scans every cycle in the order of their keys.
    for row in sorted(tx.execute(query), key=lambda row: row[1]):
        hashes[row[0]].update(repr(tuple(row[1:])).encode("utf-8", "surrogatepass"))
    warned = select(
        cycle_warning.c.contract, cycle_warning.c.object, cycle_warning.c.slo, cycle_warning.c.due_at,
        cycle_warning.c.warned_at,
    ).where(early_warning.is_open())  # fmt: skip
    for key, *warning in sorted(map(tuple, tx.execute(warned))):
        hashes[key].update(repr(warning).encode("utf-8", "surrogatepass"))
    placed = (
        select(receipt.c.contract, func.count(), func.max(publication_revision.c.published_at))
        .join(publication_revision, publication_revision.c.id == receipt.c.id)
        .where(publication_revision.c.id.in_(staged_deliveries()))
        .group_by(receipt.c.contract)
    )
    for row in tx.execute(placed):
        hashes[row[0]].update(repr(tuple(row[1:])).encode())
    return {key: digest.hexdigest()[:_HASH] for key, digest in hashes.items()}
