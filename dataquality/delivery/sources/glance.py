"""What stands at the place of a delivery that did not come, for whoever has to find out why."""

from __future__ import annotations

from collections.abc import Callable

from dq.contracts.schedule import Cycle
from dq.contracts.shared.counts import first_of
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import DeliveryPlace, label
from dq.dataquality.delivery.sources.commit_history import SeenCommits
from dq.dataquality.delivery.sources.probe import asked_for, folder
from dq.lake.paths import is_data_name
from dq.lake.storage import Files, Seen

# Of a set of partitions, so many are looked at: each is a question to the storage.
_LOOKED_AT = 3
_NAMED = 3


def glance(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, files: Files, commits: Callable[[], SeenCommits]
) -> tuple[str, str]:
    """Where it was looked for, and what stands there; the second is empty where that cannot be told.

    Instants are in UTC. Nothing is raised: the verdict is known already, and this is a help only.
    """
    asked = asked_for(slo, place)
    path = place.path.rstrip("/")
    if asked == ["receipt"]:
        return "the receipts of dq publish", "no receipt"
    try:
        if place.format in LAKEHOUSE and "commit" in asked:
            return f"the commits of {path}", _committed(path, files, commits)
        for partition in (cycle.partitions or ((),))[:_LOOKED_AT]:
            where = folder(slo, partition, place)
            seen = _seen(where, place.marker if "marker" in asked and "file" not in asked else "", files)
            if seen or not cycle.partitions:
                return where, seen
        return folder(slo, cycle.partitions[0], place), ""
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return path, ""


def _committed(path: str, files: Files, commits: Callable[[], SeenCommits]) -> str:
    if not files.holds(path):
        return "no table"
    seen = commits().commits
    if not seen:
        return "no commit at all"
    last = seen[-1]
    parts = [label(one.partition) for one in last.brought if one.partition]
    brought = f", it brought {first_of(parts, _NAMED)}" if parts else ""
    return f"no commit that brought it; the last one is of {last.at:%Y-%m-%d %H:%M} UTC{brought}"


def _seen(where: str, marker: str, files: Files) -> str:
    """What stands in the folder; empty where all that was asked for does."""
    inside = files.inside(where)
    data = [one for one in inside if is_data_name(one.name) and one.size > 0]
    if data:
        lacks = f", and no {marker}" if marker and marker not in {one.name for one in inside} else ""
        newest = max(one.modified_at for one in data)
        files_ = f"{len(data)} file{'' if len(data) == 1 else 's'}"
        return f"{files_} ({_size(data)}), the newest of {newest:%Y-%m-%d %H:%M} UTC{lacks}"
    if inside:
        return f"no data, only {first_of(sorted(one.name for one in inside), _NAMED)}"
    folders = sorted(files.folders(where))
    if folders:
        return f"no data, only the folder{'s' if len(folders) > 1 else ''} {', '.join(folders[:_NAMED])}"
    return "an empty folder" if files.holds(where) else "no such folder"


def _size(files: list[Seen]) -> str:
    size, unit = float(sum(one.size for one in files)), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
