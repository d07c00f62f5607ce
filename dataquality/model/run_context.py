"""What a check is told besides the data: when it runs, on which partitions, and what earlier runs found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dq.dataquality.model.answer import Group

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
class EarlierMeasure:
    """The number that an earlier run measured for a clause, or one for each group; as `Earlier`.

    `of` tells what was measured: a rule that asks something else by now is not compared with it.
    """

    check: str
    clause: str
    of: str
    at: datetime
    number: float | None = None
    groups: tuple[tuple[Group, float], ...] = ()
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class Occasion:
    """The circumstances of one run. `now` is an aware instant; without it, nothing that ages is tested.

    `history` None: nobody handed one in, which is not the same as an empty one.
    """

    now: datetime | None = None
    partitions: tuple[Partition, ...] = ()
    history: tuple[Earlier | EarlierMeasure, ...] | None = None


NOWHEN = Occasion()
