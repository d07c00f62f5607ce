"""What the store knows of many products: deliveries, incidents, results, and what is new since a look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Table, func, null, or_, select

from dq.alerts import incident_store
from dq.alerts.incident import STORM, Incident
from dq.alerts.incident_store import PastStep, rewound, steps_until
from dq.alerts.record import PAST
from dq.alerts.tables import incident, incident_event, outbox
from dq.contracts.metrics import Against
from dq.dataquality import results
from dq.dataquality.clauses.quality_rule import Band, Counted, same_kind, time_of, usual
from dq.dataquality.delivery import heartbeat
from dq.dataquality.delivery.cycle import OPEN, Kept
from dq.dataquality.delivery.cycle_store import cycle_of_row
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.tables import cycle, cycle_event, cycle_excuse, parts
from dq.dataquality.results import Line, check_run

# The cycles of many products at once, with a few questions to the store.

Key = tuple[str, str, str]
_NOT_SHOWN = ("partitions", "claims")


def histories(tx: Connection, contracts: Collection[str]) -> dict[Key, list[Kept]]:
    """Every cycle of these contracts by SLO, oldest first, as `ledger.history` gives it for one; but for what
    no page shows and takes longest to read: its partitions, and what each source said."""
    found: dict[Key, list[Kept]] = {}
    names, columns = sorted(contracts), cycle.c
    shown = [null().label(one.name) if one.name in _NOT_SHOWN else one for one in columns]
    asked = select(*shown).order_by(columns.contract, columns.object, columns.slo, columns.due_at)
    for some in parts(names):
        for row in tx.execute(asked.where(columns.contract.in_(some))):
            found.setdefault((row.contract, row.object, row.slo), []).append(cycle_of_row(row))
    return found


# Incidents with all that was done about them, for pages.


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What one place was told, or is still to be told: `state` is as the outbox has it."""

    channel: str
    target: str
    operation: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """An incident, everything that happened to it, oldest first, and the messages about it.

    `messages` is None for a past instant: how messages stood then is not kept.
    """

    incident: Incident
    history: tuple[PastStep, ...] = ()
    messages: tuple[SentMessage, ...] | None = ()

    @property
    def about_the_platform(self) -> bool:
        """Whether it is about what watches, and no product."""
        return self.incident.key.contract == PLATFORM


def stored_incidents(tx: Connection, since: datetime, as_of: datetime | None = None) -> list[IncidentFacts]:
    """The incidents that are open, or were resolved at this instant or later; newest first."""
    found = rewound(tx, incident_store.open_or_since(tx, since, (STORM, PAST)), as_of)
    ids = [one.id for one in found]
    steps = incident_store.histories(tx, ids)
    messages = None if heartbeat.is_past(tx, as_of) else _messages(tx, ids)
    return [
        IncidentFacts(
            incident,
            tuple(steps_until(steps.get(incident.id, ()), as_of)),
            None if messages is None else tuple(messages.get(incident.id, ())),
        )
        for incident in found
    ]


def _messages(tx: Connection, ids: Sequence[str]) -> dict[str, list[SentMessage]]:
    found: dict[str, list[SentMessage]] = defaultdict(list)
    asked = select(outbox).order_by(outbox.c.id)
    for some in parts(ids):
        for row in tx.execute(asked.where(outbox.c.incident_id.in_(some))):
            found[row.incident_id].append(
                SentMessage(row.channel, row.target, row.operation, row.state, row.reason)
            )
    return found


# What checks found of many products, and how many rows their deliveries had.

# The band as the rule of unusual row counts draws it, when it says nothing else.
_TERMS = Against("usual")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows each partition (or the table at each run) had, oldest first, and what is usual by that;
    `usual` is None for too few."""

    counts: tuple[Counted, ...]
    usual: Band | None


@dataclass(frozen=True, slots=True)
class ObjectQuality:
    """What is known of an object's data. `at` is when it was last checked; None: never."""

    lines: tuple[Line, ...] = ()
    rows: RowCounts | None = None
    at: datetime | None = None

    @property
    def newest(self) -> tuple[Line, ...]:
        """The standing results of the scope that was checked last."""
        last = max(self.lines, key=lambda line: line.at, default=None)
        return tuple(line for line in self.lines if last is not None and line.scope == last.scope)


NOTHING = ObjectQuality()


def quality(
    tx: Connection, contracts: Collection[str], now: datetime, as_of: datetime | None = None
) -> dict[tuple[str, str], ObjectQuality]:
    """What is known of each object that was ever checked, by its contract's key and its name."""
    found = {}
    for contract, one in _checked(tx, contracts):
        lines = tuple(results.latest(tx, contract, one, as_of))
        at = max((line.at for line in lines), default=None)
        found[contract, one] = ObjectQuality(lines, _rows(tx, contract, one, now), at)
    return found


def _checked(tx: Connection, contracts: Collection[str]) -> list[tuple[str, str]]:
    names, found = sorted(contracts), []
    asked = select(check_run.c.contract, check_run.c.object).distinct()
    for some in parts(names):
        rows = tx.execute(asked.where(check_run.c.contract.in_(some)))
        found += [(row.contract, row.object) for row in rows]
    return sorted(found)


def _rows(tx: Connection, contract: str, one: str, now: datetime) -> RowCounts | None:
    counted = results.earlier_counts(tx, contract, one)
    if not counted:
        return None
    newest = max(counted, key=lambda each: each.at)
    alike = [
        each
        for each in sorted(counted, key=lambda each: each.at)
        if same_kind(each.partition, newest.partition)
    ]
    # Of a partition that was checked again, the newest count; of the table, each run.
    by_time = {
        (each.partition or each.at): Counted(time_of(each.partition) or each.at, each.rows) for each in alike
    }
    series = sorted(by_time.values(), key=lambda each: each.of)
    return RowCounts(tuple(series), _band(series[:-1], series[-1], now))


def _band(earlier: Sequence[Counted], last: Counted, now: datetime) -> Band | None:
    if len(earlier) < _TERMS.minimum:
        return None
    return usual(earlier, min(last.of, now), _TERMS)


# When the watcher was heard, and whether what pages say may be relied on.


@dataclass(frozen=True, slots=True)
class Watcher:
    """`now` is the instant as of which pages are written, `heard` that of the watcher's last tick (None: it
    was never heard), and `tick` how often it is meant to run."""

    now: datetime
    heard: datetime | None
    tick: timedelta

    @property
    def stale(self) -> bool:
        """Whether it was not heard for longer than two ticks, or its clock and ours cannot both be right."""
        return self.heard is None or abs(self.now - self.heard) > 2 * self.tick

    @property
    def ahead(self) -> bool:
        """Whether it was heard at an instant that is still to come: then nobody can tell how old that is."""
        return self.heard is not None and self.heard - self.now > 2 * self.tick


def watcher(tx: Connection, now: datetime, tick: timedelta, as_of: datetime | None = None) -> Watcher:
    """What the store knows of it, or knew at an instant."""
    return Watcher(now, heartbeat.last_tick(tx, as_of=as_of), tick)


# Of which products the store knows anything new since an earlier look, by a few questions for all of them.
#
# Rows that are only ever added are known by the last of them. What changes in place is what is still open,
# which is little; of that a hash is kept for each product.

_ADDED_TO: tuple[Table, ...] = (cycle, cycle_event, cycle_excuse, check_run, incident_event)
_HASH = 16


def watermarks(tx: Connection) -> dict[str, Any]:
    """Where the tables begin and end now, and how what is open stands; JSON values."""
    ends = {}
    for table in _ADDED_TO:
        # Asked for both at once, SQLite walks from one end to the other.
        ends[table.name] = [tx.execute(select(end(table.c.id))).scalar() for end in (func.min, func.max)]
    return {"ends": ends, "open": _open(tx)}


def changed_since(tx: Connection, before: dict[str, Any], now: dict[str, Any]) -> set[str] | None:
    """The keys of contracts of which something may have changed between two marks; None: of all.

    Of all, where rows are gone: the store was pruned, or is another one.
    """
    old, new = before.get("ends"), now["ends"]
    if not isinstance(old, dict) or old.keys() != new.keys():
        return None
    if any(old[name][0] != new[name][0] and old[name][0] is not None for name in new):
        return None
    if any((old[name][1] or 0) > (new[name][1] or 0) for name in new):
        return None
    found = _differing(before.get("open", {}), now["open"])
    # Told to give each once, SQLite walks through all keys there ever were instead of the new rows.
    for table in (cycle, check_run, cycle_excuse):
        rows = select(table.c.contract).where(table.c.id > (old[table.name][1] or 0))
        found |= set(tx.execute(rows).scalars())
    last = old[cycle_event.name][1] or 0
    events = select(cycle.c.contract).join(cycle_event, cycle_event.c.cycle_id == cycle.c.id)
    found |= set(tx.execute(events.where(cycle_event.c.id > last)).scalars())
    last = old[incident_event.name][1] or 0
    told = select(incident.c.contract).join(incident_event, incident_event.c.incident_id == incident.c.id)
    return found | set(tx.execute(told.where(incident_event.c.id > last)).scalars())


def _differing(before: dict[str, str], now: dict[str, str]) -> set[str]:
    return {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}


def _open(tx: Connection) -> dict[str, str]:
    """A hash of what may change in place, by contract."""
    columns = cycle.c
    asked = select(
        columns.contract, columns.id, columns.status, columns.reason, columns.delivered_at, columns.source,
        columns.first_seen_at, columns.claims, columns.arriving_since, columns.gone_since, columns.anew_at,
    ).where(or_(columns.status.in_(OPEN), columns.look_again_at.is_not(None)))  # fmt: skip
    hashes: dict[str, Any] = defaultdict(sha256)
    # Sorted here: told to sort, SQLite walks through every cycle there ever was in the order of their keys.
    for row in sorted(tx.execute(asked), key=lambda row: row[1]):
        hashes[row[0]].update(repr(tuple(row[1:])).encode("utf-8", "surrogatepass"))
    return {key: made.hexdigest()[:_HASH] for key, made in hashes.items()}
