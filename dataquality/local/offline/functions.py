"""TABLE: what functions of users' SQL compute in memory, NULL where an argument is, and which days exist."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping

from dq.dataquality.local.offline.values import Incomparable, as_day, as_decimal, key, remainder
from dq.dataquality.model.predicate import DayShape
from dq.dataquality.model.reading import NoReading

Compute = Callable[..., object]


def _added(one: object, other: object) -> object:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    raise Incomparable("a sum of something else than integers")


def since_1970(type_: str) -> Callable[[dt.date], int]:
    """The days of a date. Raises NoReading for other types: how a timestamp counts depends on its zone."""
    if type_ != "date":
        raise NoReading("the time since 1970 needs Spark")
    return lambda day: (day - _EPOCH).days


_EPOCH = dt.date(1970, 1, 1)


STRICT: Mapping[str, Compute] = {
    "array_distinct": lambda items: list({key(item): item for item in items}.values()),
    "concat": lambda *texts: "".join(texts),
    # Of small integers alone.
    "div": lambda one, other: int(one / other),
    "endswith": lambda value, part: value.endswith(part),
    "instr": lambda value, part: value.find(part) + 1,
    "left": lambda value, count: value[:count],
    "lower": lambda value: value.lower(),
    "map_keys": lambda pairs: [one for one, _ in pairs],
    "map_values": lambda pairs: [value for _, value in pairs],
    "mod": remainder,
    "negative": lambda value: -value,
    "plus": _added,
    "size": len,
    "startswith": lambda value, part: value.startswith(part),
    "try_date": as_day,
    "try_decimal": as_decimal,
    "upper": lambda value: value.upper(),
}


def has_day(pattern: re.Pattern[str], shape: DayShape, text: object) -> bool:
    """Whether a text has the shape, whose pattern this is, and names a day that exists."""
    match = pattern.search(text) if isinstance(text, str) else None
    if match is None:
        return False
    month = match[shape.month] or ""
    if shape.months:
        month = str((shape.months.find(month[:3]) + 3) // 3)
    return as_day(f"{shape.century}{match[shape.year]}-{month}-{match[shape.day]}") is not None
