"""Promised deliveries, each with its identity, breach instant and expected partitions."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import product

from dq.contracts.schedule.calendar import DayEffect
from dq.contracts.schedule.clock import Due, Note, Schedule
from dq.contracts.schedule.zone import TZDATA_VERSION
from dq.contracts.shared.outcome import TextFault
from dq.contracts.shared.units import MONTHS, SECONDS

# Partition templates such as `{due - 1d:%Y-%m-%d}`: which data a delivery must bring.
#
# Arithmetic is civil, in the schedule's zone: a day before is the same time on the previous date, whether
# 23, 24 or 25 hours long. `due` and `due.local` are the civil time the schedule names.

# Own renderings and not strftime: its answers for %y, %e or a year below 1000 depend on the platform.
_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda t: f"{t.year:04}",
    "y": lambda t: f"{t.year % 100:02}",
    "m": lambda t: f"{t.month:02}",
    "d": lambda t: f"{t.day:02}",
    "j": lambda t: f"{t.timetuple().tm_yday:03}",
    "H": lambda t: f"{t.hour:02}",
    "M": lambda t: f"{t.minute:02}",
    "S": lambda t: f"{t.second:02}",
    "G": lambda t: f"{t.isocalendar().year:04}",
    "V": lambda t: f"{t.isocalendar().week:02}",
    "u": lambda t: str(t.isoweekday()),
    "F": lambda t: f"{t.year:04}-{t.month:02}-{t.day:02}",
    "%": lambda _: "%",
}
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_PLACE = re.compile(
    r"\s*due(?:\.local)?\s*((?:[+-]\s*\d+\s*(?:mo|[mhdwy])\s*)*)(?::(.*))?", re.ASCII | re.DOTALL
)
_TERM = re.compile(r"([+-])\s*(\d+)\s*(mo|[mhdwy])", re.ASCII)
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_FURTHEST = 400 * 366 * 86_400
_MEND = "Write {due:%Y-%m-%d}, or with civil arithmetic {due - 1d:%Y-%m-%d}; units are m h d w mo y."


@dataclass(frozen=True, slots=True)
class _Place:
    """One `{due ...}`: civil months to add, then elapsed civil time, then the format."""

    months: int
    elapsed: timedelta
    form: str

    def text(self, nominal: datetime) -> str:
        moment = add_months(nominal, self.months) + self.elapsed
        return _DIRECTIVE.sub(lambda found: _DIRECTIVES[found[1]](moment), self.form)


@lru_cache(maxsize=16_384)
def compiled(template: str) -> tuple[str | _Place, ...] | TextFault:
    """A template as literal texts and places, or the fault in it."""
    if len(template) > 1_000:
        return TextFault("PARTITION_FORM", f"a template of {len(template):,} characters is none.", _MEND)
    parts: list[str | _Place] = []
    for piece in _PIECE.finditer(template):
        text = piece[0]
        if text in ("{{", "}}"):
            parts.append(text[0])
        elif text in ("{", "}"):
            return TextFault(
                "PARTITION_BRACE",
                f"{template!r} has a {text!r} without a partner.",
                "Write {{ or }} for a brace.",
            )
        elif piece[1] is None:
            parts.append(text)
        else:
            place = _place(piece[1], template)
            if isinstance(place, TextFault):
                return place
            parts.append(place)
    return tuple(parts)


def check(template: str) -> TextFault | None:
    """The fault of a template, found without a due, or None."""
    found = compiled(template)
    return found if isinstance(found, TextFault) else None


def render(template: str, due: Due) -> str | TextFault:
    """The partition value a template means for a due, or the fault of the template."""
    parts = compiled(template)
    if isinstance(parts, TextFault):
        return parts
    return "".join(part if isinstance(part, str) else part.text(due.nominal) for part in parts)


def _place(inside: str, template: str) -> _Place | TextFault:
    found = _PLACE.fullmatch(inside)
    if found is None:
        return TextFault("PARTITION_PLACE", f"{'{' + inside + '}'!r} in {template!r} is not readable.", _MEND)
    if not found[2]:
        return TextFault(
            "PARTITION_FORM", f"{'{' + inside + '}'!r} in {template!r} does not say how to write it.", _MEND
        )
    for directive in _DIRECTIVE.findall(found[2]):
        if directive not in _DIRECTIVES:
            return TextFault(
                "PARTITION_DIRECTIVE",
                f"'%{directive}' in {template!r} is not allowed: it depends on the machine or means no date.",
                f"Write one of {' '.join('%' + name for name in _DIRECTIVES)}.",
            )
    months = seconds = 0
    for sign, number, unit in _TERM.findall(found[1]):
        amount = int(sign + number)
        months += amount * MONTHS.get(unit, 0)
        seconds += amount * SECONDS.get(unit, 0)
    if abs(months) > 4_800 or abs(seconds) > _FURTHEST:
        return TextFault(
            "PARTITION_FAR", f"{'{' + inside + '}'!r} in {template!r} is over 400 years away.", _MEND
        )
    return _Place(months, timedelta(seconds=seconds), found[2])


def add_months(moment: datetime, months: int) -> datetime:
    """The same day some months on, or the last day of a shorter month."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


# Cycles: promised deliveries, each with its own identity, breach instant and expected partitions.

Partition = tuple[tuple[str, str], ...]
"""One partition as (column, value) pairs in the order of the contract."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One promised delivery; (contract, object, slo, due_at) is its identity, the contract by its key.

    Instants are aware, in UTC; `nominal` is the civil time in the schedule's zone. `partitions` is what
    must have arrived, all of it; empty for a snapshot without partitions. `excuse` says why the calendar does
    not count it, and `calendar` which release of public holidays took part, if one did.
    """

    contract: str
    object: str
    slo: str
    due_at: datetime
    breach_at: datetime
    nominal: datetime
    note: Note
    partitions: tuple[Partition, ...] = ()
    tzdata: str = TZDATA_VERSION
    excuse: str = ""
    calendar: str = ""


def cycles(
    schedule: Schedule,
    start: datetime,
    end: datetime,
    *,
    contract: str,
    object: str,
    slo: str,
    grace: timedelta,
    partition: Mapping[str, str | Sequence[str]] | None = None,
) -> Iterator[Cycle]:
    """The cycles with start < due_at <= end, ascending.

    `grace` is elapsed time. A list of templates for a column makes a set: every combination over the
    columns is expected, for every day that the calendar has moved onto one. Templates must have passed
    `partition.check`; a faulty one raises ValueError.
    """
    release = schedule.calendar.release if schedule.calendar else ""
    templates = {
        column: [value] if isinstance(value, str) else list(value)
        for column, value in (partition or {}).items()
    }
    for due in schedule.between(start, end):
        yield Cycle(
            contract=contract,
            object=object,
            slo=slo,
            due_at=due.at,
            breach_at=due.at + grace,
            nominal=due.nominal,
            note=due.note,
            partitions=_expected(templates, schedule, due) if templates else (),
            excuse=schedule.excuse(due),
            calendar=release,
        )


def _expected(templates: Mapping[str, Sequence[str]], schedule: Schedule, due: Due) -> tuple[Partition, ...]:
    """The partitions of the civil times that the expression names, which a move does not change."""
    named = (_partitions(templates, due._replace(nominal=one)) for one in schedule.origins(due))
    return tuple(dict.fromkeys(partition for partitions in named for partition in partitions))


def _partitions(templates: Mapping[str, Sequence[str]], due: Due) -> tuple[Partition, ...]:
    # dict.fromkeys keeps the order and drops a value that two templates of one column share.
    values = [dict.fromkeys(_value(template, due) for template in templates[column]) for column in templates]
    return tuple(tuple(zip(templates, combination, strict=True)) for combination in product(*values))


def _value(template: str, due: Due) -> str:
    rendered = render(template, due)
    if isinstance(rendered, TextFault):
        raise ValueError(str(rendered))
    return rendered


# What is ahead of a schedule: the days that its calendar changes.


@dataclass(frozen=True, slots=True)
class ChangedDay:
    """A civil date that the expression names and the calendar changes. `due_on` is set where it moves."""

    day: date
    effect: DayEffect
    reason: str
    due_on: date | None = None


def changed_days(schedule: Schedule, start: datetime, end: datetime) -> Iterator[ChangedDay]:
    """The dates of deliveries in (start, end] that the calendar skips, moves or excuses, ascending."""
    calendar = schedule.calendar
    if calendar is None:
        return
    plain = replace(schedule, calendar=None)
    for day in dict.fromkeys(due.nominal.date() for due in plain.between(start, end)):
        effect = calendar.effect(day)
        if effect is not None:
            moved = calendar.due_on(day) if effect is DayEffect.MOVE else None
            yield ChangedDay(day, effect, calendar.reason(day), moved)
