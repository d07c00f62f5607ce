"""Whether what was delivered is still there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle
from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import DeliveryPlace, Remains, label
from dq.dataquality.delivery.sources.evidence import APART, Evidence, SourceAnswer
from dq.dataquality.delivery.sources.probe import folder
from dq.lake.paths import is_unfinished
from dq.lake.storage import Files

CONFIRMED_AFTER = timedelta(minutes=10)
"""What is gone for a moment is being written anew."""

LOOKED_AT_FOR = timedelta(hours=24)
"""How long after it was due a delivery is looked at again: later on, tables may forget what is old."""

_FIRST = timedelta(minutes=15)
_OF_FILES = ("marker", "file")


def next_look(
    cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], now: datetime
) -> datetime | None:
    """When to look again whether a delivery is still there, ever more rarely; None: not any more.

    Only where files showed it, or the commits of a table with a log: a receipt says nothing of what became
    of the data.
    """
    sources = ("commit",) if place.format in LAKEHOUSE else _OF_FILES
    if not any(one.source in sources and one.delivered_at is not None for one in claims):
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
            # Markers count, too: they begin with an underscore.
            inside = [
                file
                for file in files.inside(where)
                if not file.name.startswith(".") and not is_unfinished(file.name)
            ]
            newest += [file.modified_at for file in inside]
            # A writer begins with a folder of its own.
            if not inside and not files.folders(where):
                return Remains(gone=label(partition) or "the table")
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return Remains()
    known = [one.delivered_at for one in claims if one.source in _OF_FILES and one.delivered_at is not None]
    last = max(newest, default=None)
    return Remains(anew=last if last is not None and known and last > max(known) + APART else None)


def presence_in_log(cycle: Cycle, commit: Callable[[Partition], Evidence | None]) -> Remains:
    """What is left of a delivery that commits showed; `commit` is what they say of a partition now."""
    try:
        for partition in cycle.partitions or ((),):
            found = commit(partition)
            if found is None:
                return Remains(gone=label(partition) or "the table")
            if not found.readable:
                return Remains()
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return Remains()
    return Remains()
