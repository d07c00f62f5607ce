"""What a check is told besides the data: when it runs, on which partitions, and what earlier runs counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

Partition = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Earlier:
    """How many rows an earlier run counted for a clause, when, and in which partition (`()`: the table)."""

    check: str
    clause: str
    at: datetime
    rows: int
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class Occasion:
    """The circumstances of one run. `now` is an aware instant; without it, nothing that ages is tested.

    `history` None: nobody handed one in, which is not the same as an empty one.
    """

    now: datetime | None = None
    partitions: tuple[Partition, ...] = ()
    history: tuple[Earlier, ...] | None = None


NOWHEN = Occasion()
