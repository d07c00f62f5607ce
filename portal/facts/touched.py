"""Of which products the store knows anything new since an earlier look, by a few questions for all of them.

Rows that are only ever added are known by the last of them. What changes in place is what is still open,
which is little; of that a hash is kept for each product.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Table, func, or_, select

from dq.alerts.tables import incident, incident_event
from dq.dataquality.delivery.cycle import OPEN
from dq.dataquality.delivery.tables import cycle, cycle_event, cycle_excuse
from dq.dataquality.results.tables import check_run

_ADDED_TO: tuple[Table, ...] = (cycle, cycle_event, cycle_excuse, check_run, incident_event)
_HASH = 16


def marks(tx: Connection) -> dict[str, Any]:
    """Where the tables begin and end now, and how what is open stands; JSON values."""
    ends = {}
    for table in _ADDED_TO:
        # Asked for both at once, SQLite walks from one end to the other.
        ends[table.name] = [tx.execute(select(end(table.c.id))).scalar() for end in (func.min, func.max)]
    return {"ends": ends, "open": _open(tx)}


def touched(tx: Connection, before: dict[str, Any], now: dict[str, Any]) -> set[str] | None:
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
