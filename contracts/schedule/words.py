"""The words of a promised-delivery clock: dialect, policy for clock changes, due."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Dialect(StrEnum):
    """Which cron a schedule is written in.

    `unix`: five fields. `seconds_first`: six fields, the first is one literal second. `eventbridge`:
    `cron(minute hour day month weekday year)` of AWS, in which Sunday is 1.
    """

    UNIX = "unix"
    SECONDS_FIRST = "seconds_first"
    EVENTBRIDGE = "eventbridge"


class DstPolicy(StrEnum):
    """What becomes of a civil time that a clock change skips or repeats.

    `vixie`: a fixed time in a gap is due at the change, a repeated one at its first occurrence; a
    schedule whose minute or hour starts with `*` follows real time instead. `skip`: no cycle in a gap,
    first occurrence only. `shift`: a time in a gap moves by the length of the gap, first occurrence only.
    """

    VIXIE = "vixie"
    SKIP = "skip"
    SHIFT = "shift"


class Note(StrEnum):
    """How a due instant relates to its civil time."""

    NORMAL = "normal"
    GAP = "gap"
    FIRST_OF_TWO = "first_of_two"
    SECOND_OF_TWO = "second_of_two"


class Due(NamedTuple):
    """One promised instant.

    A named tuple and not a dataclass: a year of 2,000 schedules makes millions of them.
    """

    at: datetime
    """The instant, aware, in UTC."""
    nominal: datetime
    """The civil time in the schedule's zone that the expression names, without a zone."""
    note: Note
