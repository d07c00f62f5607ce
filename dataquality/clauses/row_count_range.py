"""What earlier runs counted, and which numbers of rows are usual by that. Nothing here asks the data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from statistics import median
from typing import TypeVar

from dq.contracts.model import Quality, plain
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Occasion, Partition

# What a rule of dq's own engine calls this comparison; see `checks/row_count_anomaly.py`.
ANOMALY = "rowCountAnomaly"
# The median absolute deviation of a normal distribution is so much smaller than its standard deviation.
_NORMAL = 1.4826
# So many runs of the same weekday say more than all days together.
SAME_WEEKDAY = 3
R = TypeVar("R", Earlier, EarlierMeasure)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


def written_as_anomaly(quality: Quality) -> dict[str, object] | None:
    """The implementation of a rule that asks for unusual numbers of rows; None for every other rule."""
    if quality.type != "custom" or quality.engine != "dq":
        return None
    written = plain(quality.implementation)
    if isinstance(written, str):
        written = {"check": written.strip()}
    return written if isinstance(written, dict) and written.get("check") == ANOMALY else None


@dataclass(frozen=True, slots=True)
class Counted:
    """One earlier count, at the time that its rows are of."""

    of: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class Band:
    """The usual numbers of rows, both bounds included, and from what they were made; None: no bound."""

    least: int | None
    most: int | None
    middle: float
    counts: tuple[int, ...]
    days: str


def time_of(partition: Partition) -> datetime | None:
    """The day that a partition is of: a value with a date, or columns `year`, `month` and `day`."""
    for _, value in partition:
        found = _DATE.match(value)
        if found and (day := _day(*found.groups())):
            return day
    parts = {column.lower(): value for column, value in partition}
    return _day(parts.get("year", ""), parts.get("month", ""), parts.get("day", ""))


def _day(year: str, month: str, day: str) -> datetime | None:
    try:
        return datetime.combine(date(int(year), int(month), int(day)), time(), UTC)
    except ValueError:
        return None


def moment_of(occasion: Occasion) -> datetime | None:
    """The time that the rows of this run are of; None for several partitions, or without any time."""
    if len(occasion.partitions) > 1:
        return None
    return (time_of(occasion.partitions[0]) if occasion.partitions else None) or occasion.now


def comparable(occasion: Occasion, check: str, clause: str) -> list[Counted]:
    """The earlier counts of a clause that can be compared with this run, the oldest first."""
    counts = [one for one in occasion.history or () if isinstance(one, Earlier)]
    mine = [one for one in counts if (one.check, one.clause) == (check, clause)]
    return [Counted(of, one.rows) for of, one in before_this(occasion, mine)]


def before_this(occasion: Occasion, runs: Iterable[R]) -> list[tuple[datetime, R]]:
    """Those earlier runs that can be compared with this one, by the time that their rows are of.

    Those of the table with the table; those of partitions with partitions that differ in the date alone,
    of each the newest. Only what is of an earlier time counts.
    """
    here = moment_of(occasion)
    if here is None:
        return []
    mine = occasion.partitions[0] if occasion.partitions else ()
    found: dict[object, tuple[datetime, R]] = {}
    for one in sorted(runs, key=lambda one: one.at):
        of = time_of(one.partition) or one.at
        if of < here and same_kind(one.partition, mine) and (not mine or one.partition != mine):
            found[one.partition or one.at] = of, one
    return sorted(found.values(), key=lambda pair: pair[0])


def same_kind(one: Partition, other: Partition) -> bool:
    """Whether two partitions differ in nothing but what tells their date."""
    return _kind(one) == _kind(other)


def _kind(partition: Partition) -> Partition:
    """The partition without what tells its date."""
    if time_of(partition) is None:
        return tuple(sorted(partition))
    parts = ((column, "" if _of_date(column, value) else value) for column, value in partition)
    return tuple(sorted(parts))


def _of_date(column: str, value: str) -> bool:
    return _DATE.match(value) is not None or column.lower() in ("year", "month", "day")


def usual(
    earlier: Sequence[Counted], here: datetime, *, runs: int, deviations: float, slack: float, direction: str
) -> Band:
    """The band of usual counts: the median of the last runs, give or take what is larger, `deviations` times
    their robust standard deviation or the share `slack` of the median.

    Runs of the same weekday are taken where there are at least three. `earlier` must not be empty.
    """
    same = [one for one in earlier if one.of.weekday() == here.weekday()]
    weekly = len(same) >= SAME_WEEKDAY and len(same) < len(earlier)
    counts = tuple(one.rows for one in (same if weekly else earlier)[-runs:])
    middle, reach = reach_of(counts, deviations, slack)
    return Band(
        least=max(math.ceil(middle - reach), 0) if direction != "more" else None,
        most=math.floor(middle + reach) if direction != "fewer" else None,
        middle=middle,
        counts=counts,
        days=f"{len(counts)} {_WEEKDAYS[here.weekday()]}" if weekly else f"{len(counts)} runs",
    )


def reach_of(numbers: Sequence[float], deviations: float, slack: float) -> tuple[float, float]:
    """The median, and how far from it is usual: `deviations` times the robust standard deviation, or the
    share `slack` of the median, whichever is larger. There is at least one number."""
    middle = median(numbers)
    spread = _NORMAL * median(abs(number - middle) for number in numbers)
    return middle, max(deviations * spread, slack * abs(middle))


def nearest(earlier: Iterable[Counted], wanted: datetime, within: float) -> Counted | None:
    """The count nearest to a time, at most so many seconds away; of two as near, the earlier one."""
    near = [one for one in earlier if abs((one.of - wanted).total_seconds()) <= within]
    return min(near, key=lambda one: abs((one.of - wanted).total_seconds()), default=None)
