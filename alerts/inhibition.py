"""One cause, one message: which broken input is the root cause, and who waits for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from dq.alerts import incident_store
from dq.alerts.incident import UPDATE
from dq.alerts.outbox import enqueue, told
from dq.alerts.tables import incident as incidents
from dq.contracts.shared.outcome import IncidentKey

# Which of the products that are missing at once is the cause: the one whose own inputs are all there.

Product = tuple[str, str]
"""A contract by its key, and one of its objects."""

Broken = Mapping[Product, tuple[datetime, str]]
"""Of each product with an open incident, what tells which broke first: an instant, and an id."""


def causes(broken: Broken, made_from: Mapping[Product, Collection[Product]]) -> dict[Product, Product]:
    """From each broken product to the broken one that it waits for, at once or through others.

    Who has no broken input is not in it. Products that are made from each other are one: the first to break
    stands for them. Of several causes it is the one that broke first.
    """
    above = {one: _inputs(one, made_from) & broken.keys() for one in broken}
    # Who is above each other goes in a circle.
    circle = {one: {other for other in those if one in above[other]} | {one} for one, those in above.items()}
    first = {one: min(those, key=lambda other: broken[other]) for one, those in circle.items()}
    sources = {one for one, those in above.items() if those <= circle[one]}
    found = {}
    for one, those in above.items():
        among = {first[other] for other in {*those, one} & sources}
        cause = min(among, key=lambda other: broken[other]) if among else one
        if cause != one:
            found[one] = cause
    return found


def _inputs(one: Product, made_from: Mapping[Product, Collection[Product]]) -> set[Product]:
    found: set[Product] = set()
    left = [one]
    while left:
        new = {other for other in made_from.get(left.pop(), ()) if other not in found}
        found |= new
        left += new
    return found


# One cause, one message: who waits for a broken input is recorded, and told only if it stays broken.

LEAST_GRACE = timedelta(minutes=15)
"""A product is given so long after its cause has ended, or as long as it usually takes."""


@dataclass(frozen=True, slots=True)
class _Open:
    """Of an open incident what lineage is about; all of it is read only where something changes."""

    id: str
    key: IncidentKey
    revision: int
    opened_at: datetime
    root_id: str | None
    holds_up: tuple[str, ...]


def settle(
    tx: Connection,
    made_from: Mapping[Product, Collection[Product]],
    usual: Callable[[IncidentKey], timedelta | None],
    now: datetime,
) -> None:
    """Brings all open incidents of deliveries in line with what is made from what.

    Called once all events of a tick are recorded, in their transaction: so their order does not matter.
    `usual` is how long after it was due a product usually comes; None where nobody knows.
    """
    if not made_from:
        return
    open_: dict[Product, list[_Open]] = defaultdict(list)
    for one in _standing(tx):
        open_[one.key.contract, one.key.object].append(one)
    broken = {product: min((one.opened_at, one.id) for one in those) for product, those in open_.items()}
    cause_of = causes(broken, made_from)
    held: dict[str, list[str]] = defaultdict(list)
    for product, those in open_.items():
        cause = broken[cause_of[product]][1] if product in cause_of else None
        for one in those:
            if cause is not None:
                held[cause].append(f"{one.key.contract}/{one.key.object}")
                if one.root_id != cause:
                    grace = max(usual(one.key) or LEAST_GRACE, LEAST_GRACE)
                    _put_under(tx, one, cause, grace)
                    said = f"{'/'.join(cause_of[product])} is missing ({cause[:8]})"
                    incident_store.log(tx, one.id, "inhibited", one.revision, now, detail=said)
    for those in open_.values():
        for one in those:
            _show(tx, one, tuple(sorted(set(held.get(one.id, ())))), now)


def _standing(tx: Connection) -> list[_Open]:
    """The open incidents of deliveries, oldest first."""
    columns = ("contract", "object", "group_id", "id", "revision", "opened_at", "root_id", "holds_up")
    rows = tx.execute(
        select(*(incidents.c[name] for name in columns))
        .where(incidents.c.resolved_at.is_(None))
        .order_by(incidents.c.opened_at, incidents.c.id)
    )
    found = [
        _Open(
            row.id, IncidentKey(*row[:3]), row.revision, row.opened_at, row.root_id, tuple(row.holds_up or ())
        )
        for row in rows
    ]
    return [one for one in found if _is_delivery(one.key)]


def _is_delivery(key: IncidentKey) -> bool:
    return not key.contract.startswith("(") and key.group != "quality" and not key.group.endswith(":budget")


def _put_under(tx: Connection, one: _Open, cause: str, grace: timedelta) -> None:
    values = {"root_id": cause, "grace_seconds": int(grace.total_seconds())}
    tx.execute(update(incidents).where(incidents.c.id == one.id).values(values))


def _show(tx: Connection, one: _Open, names: tuple[str, ...], now: datetime) -> None:
    before = incident_store.get(tx, one.id) if names != one.holds_up else None
    if before is None:
        return
    after = replace(before, holds_up=names, revision=before.revision + 1)
    incident_store.save(tx, after, "")
    # What was put under a cause just now stays there.
    incident_store.log(tx, one.id, "holds up", after.revision, now, detail=f"{len(names)}")
    for lane in told(tx, one.id):
        enqueue(tx, lane, UPDATE, after.revision, now)
