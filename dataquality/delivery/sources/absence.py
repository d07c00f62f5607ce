"""Parts of missing deliveries, and whether anything of them may be there by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.shared.outcome import CycleStatus
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import DeliveryPlace, Kept, MissingPart, Watched, label
from dq.dataquality.delivery.sources.lookout import Errand, Lookout
from dq.dataquality.delivery.sources.probe import asked_for, folder
from dq.lake.storage import Files

_BY_FILES = ("marker", "file")


def path_of(slo: Slo, place: DeliveryPlace, partition: Partition) -> str | None:
    """Where files would show a partition; None where none are asked."""
    by_files = any(name in _BY_FILES for name in asked_for(slo, place))
    return folder(slo, partition, place) if by_files else None


def appeared(
    lookout: Lookout, parts: Sequence[MissingPart], files_of: Callable[[str], Files]
) -> list[MissingPart]:
    """Those of which something may be there now.

    What cannot be read may be there. A storage that is silent shows nothing: it would not to a closer look.
    """
    asked = [
        (part, Errand(part.root, files_of(part.path), _seen(part.path)))
        for part in parts
        if part.root is not None and part.path is not None
    ]
    answers = lookout.answers([errand for _, errand in asked])
    return [part for (part, _), answer in zip(asked, answers, strict=True) if answer is True]


def _seen(path: str) -> Callable[[Files], bool]:
    def work(files: Files) -> bool:
        try:
            return not files.nothing(path)
        except Exception:  # noqa: BLE001  # as with every probe: whoever looks closer says what is wrong
            return True

    return work


# As long as its own path, a receipt and the time alone can move it.
_MAY_REST = (CycleStatus.MISSING, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class CycleRest:
    """What of a cycle is looked for, and when it is judged again whatever is seen; None for never."""

    parts: tuple[MissingPart, ...]
    until: datetime | None


def rest_of(one: Watched, root: str, kept: Kept, now: datetime, settle: timedelta) -> CycleRest | None:
    """How a cycle may rest that was judged at `now`; None for one that has to be judged at every tick.

    It may where a partition's own path shows its delivery. That it cannot be seen moves no miss. `settle` is
    how long after its breach a miss is told.
    """
    cycle, slo = kept.cycle, one.slo
    if kept.status not in _MAY_REST or not cycle.partitions or one.place.format in LAKEHOUSE:
        return None
    if kept.excuse or kept.arriving_since is not None:
        return None
    times = [] if kept.told else [kept.held_until or cycle.breach_at + settle]
    if kept.status is CycleStatus.MISSING and slo.give_up_after:
        times.append(cycle.due_at + slo.give_up_after)
    if any(at <= now for at in times):
        return None
    places = [(partition, path_of(slo, one.place, partition)) for partition in cycle.partitions]
    state = (kept.status, kept.told, kept.held_until)
    parts = (
        MissingPart(kept.id, number, *state, label(partition), root if path else None, path)
        for number, (partition, path) in enumerate(places)
    )
    return CycleRest(tuple(parts), min(times, default=None))
