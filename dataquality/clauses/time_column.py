"""Columns of dates and timestamps: which one shows the age of a row, and when a value of it was.

A value is asked for as a whole number, because Python's datetime ends with the year 9999 and PySpark reads
instants in the zone of the machine: days since 1970 for dates, microseconds for timestamps.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from dataclasses import dataclass

from dq.contracts.columns import physical_type
from dq.contracts.model import Property, SchemaObject
from dq.contracts.schedule.partition import add_months
from dq.contracts.shared.units import Duration
from dq.dataquality.model.column import Column, single_columns
from dq.dataquality.model.metric import Aggregate
from dq.dataquality.model.predicate import Compare, Predicate
from dq.dataquality.model.term import Since1970
from dq.dataquality.model.threshold import Unusable
from dq.dataquality.sql.literal import civil, logical

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - civil time, the zone is put on later
_DAY = 86_400_000_000
_TIMES = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column of dates or timestamps, and the zone in which its dates and civil times are meant."""

    column: Column
    type: str
    zone: dt.tzinfo

    def extreme(self, aggregate: str, until: dt.datetime | None = None) -> Aggregate:
        """The question for the newest (`max`) or oldest (`min`) value, of those up to an instant."""
        where = Compare(self.column.path, "<=", self._literal(until)) if until else None
        return Aggregate(aggregate, Since1970(self.column.path, self.type), where)

    def later_than(self, moment: dt.datetime) -> Predicate:
        """A predicate: the value lies after an instant; a date does when its day has not begun."""
        return Compare(self.column.path, ">", self._literal(moment))

    def since(self, moment: dt.datetime) -> Predicate:
        """A predicate: the value lies at an instant or after it; a date, when its day had not ended."""
        return Compare(self.column.path, ">=", self._literal(moment))

    def _literal(self, moment: dt.datetime) -> dt.date:
        here = moment.astimezone(self.zone)
        if self.type == "date":
            return here.date()
        return here if self.type == "timestamp" else here.replace(tzinfo=None)

    def starts(self, number: int) -> int:
        """The instant that a value names, in microseconds since 1970; a date's is its first."""
        if self.type == "timestamp":
            return number
        micros = number * _DAY if self.type == "date" else number
        try:
            there = (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=self.zone)
            return micros_of(there)
        except OverflowError:
            return micros

    def ends(self, number: int) -> int:
        """As `starts`; a date's is the end of its day, because it stands for all of it."""
        return self.starts(number + 1) if self.type == "date" else self.starts(number)

    def shown(self, number: int) -> str:
        """The value for a reader."""
        micros = number * _DAY if self.type == "date" else number
        try:
            moment = _EPOCH + dt.timedelta(microseconds=micros)
        except OverflowError:
            return "a value after the year 9999" if number > 0 else "a value before the year 1"
        if self.type == "date":
            return moment.date().isoformat()
        return moment.isoformat(" ", "seconds") + ("Z" if self.type == "timestamp" else "")


def micros_of(moment: dt.datetime) -> int:
    """An instant as microseconds since 1970."""
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def before(moment: dt.datetime, length: Duration, zone: dt.tzinfo) -> dt.datetime:
    """The instant that lies so long before: months by the calendar of the zone, the rest elapsed."""
    back = moment.astimezone(zone)
    if length.months:
        civil_time = add_months(back.replace(tzinfo=None), -length.months)
        back = civil_time.replace(tzinfo=zone)
    return back.astimezone(dt.UTC) - length.elapsed


def in_words(micros: int) -> str:
    """A length of time by its two largest units."""
    left = max(micros, 0) // 1_000_000
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, size)
        if amount:
            parts.append(f"{amount:,} {unit}")
    return " ".join(parts[:2]) or "0 s"


def find(one: SchemaObject, part: str) -> tuple[Property, Column] | str:
    """The column of this path; for the empty text the object's only timestamp, or else its only date.

    When there is none, the reason as a sentence.
    """
    known = [(way[-1], ".".join(prop.name or "" for prop in way), column)
             for way, column in single_columns(one.properties)]  # fmt: skip
    if part:
        for prop, names, column in known:
            if part in (names, str(column)):
                return prop, column
        return f"{one.name} has no column {part!r} that stands once in a row"
    for wanted in (("timestamp", "timestamp_ntz"), ("date",)):
        fitting = [(prop, column) for prop, _, column in known if held_as(prop) in wanted]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(str(column) for _, column in fitting)
            return f"it does not say which column shows the age: {names}; write element: {one.name}.<column>"
    return f"{one.name} has no column of dates or timestamps that could show the age"


def held_as(prop: Property) -> str | None:
    """The physical type that holds the column's times; None for texts and what is no time."""
    promised_type = physical_type(prop)
    if promised_type is not None:
        return promised_type.name if promised_type.name in _TIMES else None
    kind = logical(prop)
    if kind == "timestamp":
        return "timestamp_ntz" if civil(prop) else "timestamp"
    return "date" if kind == "date" else None


def zone_of(prop: Property) -> dt.tzinfo:
    options = prop.logical_type_options
    name = (options and options.default_timezone) or "UTC"
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Unusable(f"defaultTimezone {name!r} is not a time zone") from error
