"""Whether what was delivered into plain files is still there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.slo import Slo
from dq.dataquality.delivery.lake.files import Files
from dq.dataquality.delivery.sources.evidence import APART, SourceAnswer
from dq.dataquality.delivery.sources.probe import DeliveryPlace, folder, label

CONFIRMED_AFTER = timedelta(minutes=10)
"""What is gone for a moment is being written anew."""

LOOKED_AT_FOR = timedelta(hours=24)
"""How long after it was due a delivery is looked at again: later on, tables may forget what is old."""

_FIRST = timedelta(minutes=15)
_OF_FILES = ("marker", "file")


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of a delivery: `gone` names a part of which nothing is; `anew` is when it was written
    again. Neither where it cannot be read."""

    gone: str = ""
    anew: datetime | None = None


def next_look(
    cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], now: datetime
) -> datetime | None:
    """When to look again whether a delivery is still there, ever more rarely; None: not any more.

    Only where files showed it: a receipt says nothing of what became of them, and the rows of a table with a
    log are its own matter.
    """
    shown = any(one.source in _OF_FILES and one.delivered_at is not None for one in claims)
    if not shown or place.format in LAKEHOUSE:
        return None
    following = now + max(_FIRST, 2 * (now - cycle.due_at))
    return following if following <= cycle.due_at + LOOKED_AT_FOR else None


def presence(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], files: Files
) -> Remains:
    """What is left of a delivery that files showed."""
    try:
        if not files.holds(place.path.rstrip("/")):
            return Remains()
        newest: list[datetime] = []
        for partition in cycle.partitions or ((),):
            where = folder(slo, partition, place)
            inside = [one for one in files.inside(where) if not one.name.startswith(".")]
            newest += [one.modified_at for one in inside]
            # A writer begins with a folder of its own.
            if not inside and not files.folders(where):
                return Remains(gone=label(partition) or "the table")
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return Remains()
    known = [one.delivered_at for one in claims if one.source in _OF_FILES and one.delivered_at is not None]
    last = max(newest, default=None)
    return Remains(anew=last if last is not None and known and last > max(known) + APART else None)
