"""Parts of missing deliveries, and whether anything of them may be there by now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.schedule.cycle import Partition
from dq.contracts.slo import Slo
from dq.dataquality.delivery.sources.lookout import Errand, Lookout
from dq.dataquality.delivery.sources.probe import DeliveryPlace, asked_for, folder
from dq.lake.storage import Files

# The id of a cycle, its status, whether it was told, and until when that is held back.
CycleState = tuple[int, str, bool, datetime | None]

_BY_FILES = ("marker", "file")


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A part of a missing cycle, with the cycle as it stood.

    `label` is how receipts call the partition. `path` is where it would lie, under `root`; both None where
    nothing but a receipt shows it.
    """

    cycle_id: int
    part: int
    status: str
    told: bool
    held_until: datetime | None
    label: str
    root: str | None = None
    path: str | None = None

    @property
    def state(self) -> CycleState:
        return (self.cycle_id, self.status, self.told, self.held_until)


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
