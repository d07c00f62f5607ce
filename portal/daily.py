"""Deliveries by day: how many were on time, not on time and unknown in the last 30 days.

A product has them as a string, since the caches of all builds and all products are in memory: the number of
its last day, and for each day from there back `good.bad.unknown`, shortened where the end is zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from dq.contracts.incident import CycleStatus
from dq.contracts.schedule.calendar import parse_zone
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleRecord

DAYS = 30
# The longest time since the start of yesterday: a day may have 25 hours.
_SINCE_YESTERDAY = timedelta(hours=50)


class DayCounts(NamedTuple):
    """Numbers of deliveries due on one day in UTC that were on time, not on time, and unknown."""

    good: int = 0
    bad: int = 0
    unknown: int = 0

    @property
    def share(self) -> float | None:
        """Share on time of those that are known, or None without any."""
        counted = self.good + self.bad
        return self.good / counted if counted else None

    def as_text(self, unit: str = "") -> str:
        """Return the numbers as text, "-" for no delivery. `unit` follows the number of those that count."""
        counted = self.good + self.bad
        texts = [f"{self.good:,} of {counted:,}{unit}"] if counted else []
        return ", ".join(texts + ([f"{self.unknown:,} unknown"] if self.unknown else [])) or "-"


def day_start(slo: Slo, now: datetime) -> datetime:
    """Return the start of the day of `now` in the zone of the SLO's schedule, as an instant in UTC."""
    zone = parse_zone(slo.schedule.timezone)
    local = now.astimezone(zone if isinstance(zone, ZoneInfo) else UTC)
    return datetime.combine(local.date(), time(), local.tzinfo).astimezone(UTC)


def is_miss(record: CycleRecord) -> bool:
    """Return True if a delivery was not on time, or it is not known whether it was."""
    return record.status.bad or record.status is CycleStatus.UNKNOWN


def is_recent_miss(record: CycleRecord, now: datetime) -> bool:
    """Return True if a delivery was not on time that may be of yesterday or today, in any time zone."""
    return is_miss(record) and record.cycle.due_at > now - _SINCE_YESTERDAY


def encode_days(cycles: Iterable[Sequence[CycleRecord]], now: datetime) -> str:
    """Return the deliveries of the last days up to `now`. Cycles are those of each SLO, oldest first."""
    today = now.astimezone(UTC).date().toordinal()
    numbers = [[0, 0, 0] for _ in range(DAYS)]
    for of_slo in cycles:
        for record in reversed(of_slo):
            ago = today - record.cycle.due_at.astimezone(UTC).toordinal()
            if ago >= DAYS:
                break
            status = record.status
            kind = 0 if status.good else 1 if status.bad else 2 if status is CycleStatus.UNKNOWN else None
            if kind is not None and ago >= 0:
                numbers[ago][kind] += 1
    days = ",".join(_encode(day) for day in numbers).rstrip(",")
    return f"{today}:{days}" if days else ""


def _encode(numbers: Sequence[int]) -> str:
    good, bad, unknown = numbers
    return f"{good}.{bad}.{unknown}" if unknown else f"{good}.{bad}" if bad else f"{good}" if good else ""


def days_of(texts: Iterable[str], now: datetime) -> tuple[DayCounts, ...]:
    """Return the sums of encoded deliveries for each of the last days up to `now`, oldest first."""
    today = now.astimezone(UTC).date().toordinal()
    sums = [[0, 0, 0] for _ in range(DAYS)]
    # Most products of a registry have the same days.
    for text, times in Counter(filter(None, texts)).items():
        last, _, days = text.partition(":")
        for ago, day in enumerate(days.split(","), today - int(last)):
            if day and 0 <= ago < DAYS:
                for kind, number in enumerate(day.split(".")):
                    sums[-1 - ago][kind] += times * int(number)
    return tuple(DayCounts(*numbers) for numbers in sums)


def total(days: Iterable[DayCounts]) -> DayCounts:
    """Return the sum of some days."""
    listed = list(days)
    return DayCounts(
        sum(day.good for day in listed), sum(day.bad for day in listed), sum(day.unknown for day in listed)
    )
