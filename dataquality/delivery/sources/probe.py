"""Looks for the evidence of one cycle, in the contract's order of trust; the first that answers decides.

Looking is O(1) for a cycle: the expected path is computed and probed, nothing is listed but one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from dq.contracts.extension import EvidenceSource
from dq.contracts.schedule import Cycle
from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.shared.errors import DqError
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import DeliveryPlace, Receipts, label
from dq.dataquality.delivery.sources.evidence import Evidence, SourceAnswer, disagreeing
from dq.lake.paths import is_data_name, partition_folder
from dq.lake.storage import Files, Seen

# A folder whose newest file is younger than this may still be written to.
STABLE_AFTER = timedelta(seconds=60)


def look(
    slo: Slo,
    cycle: Cycle,
    place: DeliveryPlace,
    files: Files,
    receipts: Receipts,
    commit: Callable[[Partition], Evidence | None],
    now: datetime,
) -> Evidence | None:
    """The deciding evidence of a cycle, with what the other sources say; those that disagree in its detail.

    None: every source was read and shows nothing. A source that cannot be read and is not outvoted by a
    stronger one gives evidence with `readable=False`. A cycle of several partitions has arrived when the
    last of them has. `commit` is what the commits of a table with a log say of a partition.
    """
    asked = asked_for(slo, place)
    inside = cache(lambda partition: files.inside(folder(slo, partition, place)))
    sources: dict[EvidenceSource, Callable[[Partition], Evidence | None]] = {
        "receipt": lambda partition: _receipt(slo, cycle, partition, receipts),
        # One listing answers for both.
        "marker": lambda partition: _marker(
            place, inside(partition) if "file" in asked else _alone(slo, partition, place, files)
        ),
        "commit": lambda partition: _commit(slo, place, partition, commit),
        "file": lambda partition: _file(inside(partition), now),
    }
    found = [
        one
        for name in asked
        for one in (_whole([_asked(name, sources[name], part) for part in cycle.partitions or ((),)]),)
        if one is not None
    ]
    if not found:
        return None
    # The first of those that say most: a partial answer is none where another source has a whole one.
    decided = max(found, key=_weight)
    claims = tuple(SourceAnswer(one.source, one.delivered_at, one.rows) for one in found if one.readable)
    unread = next((one.problem for one in found if not one.readable), "") if decided.readable else ""
    said = [f"the {one.source} says {one.delivered_at:%F %T}Z" for one in disagreeing(claims, decided.source)]
    detail = "; ".join(part for part in (decided.detail, unread, *said) if part)
    return replace(decided, detail=detail, claims=claims)


def _weight(one: Evidence) -> int:
    return 2 if one.delivered_at is not None else 0 if one.readable else 1


def _asked(
    name: EvidenceSource, source: Callable[[Partition], Evidence | None], partition: Partition
) -> Evidence | None:
    try:
        return source(partition)
    except Exception as error:  # noqa: BLE001  # one guard per probe: no path and no storage may end a tick
        problem = error.message.rstrip(".") if isinstance(error, DqError) else type(error).__name__
        return Evidence(name, readable=False, problem=problem)


def _whole(parts: Iterable[Evidence | None]) -> Evidence | None:
    """One answer from those of a set of partitions."""
    found = list(parts)
    unreadable = next((one for one in found if one is not None and not one.readable), None)
    if unreadable is not None:
        return unreadable
    there = [one for one in found if one is not None]
    arrived = [(one.delivered_at, one) for one in there if one.delivered_at is not None]
    if not there:
        return None
    if len(arrived) < len(found):
        coming = [one for one in there if one.arriving is not None]
        told = [f"{len(arrived)} of {len(found)} partitions"] if len(found) > 1 else []
        newest = max((one.arriving for one in coming if one.arriving is not None), default=None)
        detail = "; ".join([*told, *(one.detail for one in coming[:1])])
        return replace(there[0], delivered_at=None, rows=None, detail=detail, arriving=newest)
    _, last = max(arrived, key=lambda pair: pair[0])
    rows = [one.rows for _, one in arrived if one.rows is not None]
    return replace(last, rows=sum(rows) if len(rows) == len(arrived) else None)


def _receipt(slo: Slo, cycle: Cycle, partition: Partition, receipts: Receipts) -> Evidence | None:
    named = receipts.get(f"due:{cycle.due_at.isoformat()}")
    found = named or receipts.get(label(partition))
    if found is None:
        return None
    detail = ""
    if found.server and all(found.server != one.server for one in slo.contract.servers):
        # Renamed or removed, nobody can tell: it counts, and whoever reads the verdict sees by what.
        detail = f"that receipt is of the server {found.server!r}, which the contract has no more"
    return Evidence(
        "receipt", found.delivered_at, rows=found.rows, detail=detail, names_cycle=named is not None
    )


def _marker(place: DeliveryPlace, inside: Iterable[Seen]) -> Evidence | None:
    seen = next((one for one in inside if one.name == place.marker), None)
    return Evidence("marker", seen.modified_at) if seen else None


def _alone(slo: Slo, partition: Partition, place: DeliveryPlace, files: Files) -> list[Seen]:
    seen = files.stat(f"{folder(slo, partition, place)}/{place.marker}")
    return [seen] if seen else []


def _commit(
    slo: Slo, place: DeliveryPlace, partition: Partition, commit: Callable[[Partition], Evidence | None]
) -> Evidence | None:
    if place.format in LAKEHOUSE:
        return commit(partition)
    if slo.delivery.evidence == ["commit"]:
        problem = (
            f"files of {place.format} have no commits; name another evidence, or the format of the table"
        )
        return Evidence("commit", readable=False, problem=problem)
    return None


def asked_for(slo: Slo, place: DeliveryPlace) -> list[EvidenceSource]:
    """The sources that are looked at. Files of a table with commits count when a commit says so."""
    named = slo.delivery.evidence
    files_are_commits = place.format in LAKEHOUSE and "commit" in named
    return [one for one in named if not (one == "file" and files_are_commits)]


def _file(inside: Iterable[Seen], now: datetime) -> Evidence | None:
    data = [one for one in inside if is_data_name(one.name) and one.size > 0]
    if not data:
        return None
    newest = max(one.modified_at for one in data)
    # What is far in the future comes from a clock that is wrong, and settles never.
    if abs(now - newest) >= STABLE_AFTER:
        return Evidence("file", newest)
    detail = f"data is still being written, {newest:%F %T}Z last"
    return Evidence("file", arriving=newest, detail=detail)


def folder(slo: Slo, partition: Partition, place: DeliveryPlace) -> str:
    """The folder of a partition: where it was published, else below the table, its columns in their order."""
    own = dict(place.folders).get(label(partition)) if place.folders else None
    if own is not None:
        return own
    order = {key.column: number for number, key in enumerate(slo.object.partition_keys())}
    keys = sorted(partition, key=lambda pair: order.get(pair[0], len(order)))
    return f"{place.path.rstrip('/')}/{partition_folder(keys)}" if keys else place.path.rstrip("/")
