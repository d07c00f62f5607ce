"""Service levels about the age of data: which column shows it, and how long is allowed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dq.contracts.columns import physical_type
from dq.contracts.diff.level import name_of
from dq.contracts.model import Contract, SchemaObject, SlaProperty
from dq.contracts.service_levels import time_unit
from dq.contracts.shared.fault import TextFault
from dq.contracts.shared.outcome import CheckResult, Severity, Status
from dq.contracts.shared.units import MONTHS, SECONDS, Duration, parse_duration
from dq.dataquality.clauses.clause import (
    Clause,
    Extent,
    KindTerms,
    RowScope,
    asking,
    left_out,
    refuse,
    terms_of,
)
from dq.dataquality.clauses.judge import ending, result, subject
from dq.dataquality.clauses.time_column import TimeColumn, before, find, held_as, in_words, micros_of, zone_of
from dq.dataquality.model.column import single_columns
from dq.dataquality.model.threshold import Unusable
from dq.dataquality.sql.literal import logical

_CENTURY_OF_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class Promise:
    """What an age clause hands to its judge."""

    time: TimeColumn
    length: Duration


def promises(level: str, allowed: str, contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    """The clauses of an object that a service level of this name makes, whatever its spelling.

    Its terms are a Promise where it can be tested; `allowed` is how the length is said then. It speaks of the
    whole table.
    """
    for sla in contract.sla_properties:
        if name_of(sla.property) != level:
            continue
        parts = elements(contract, one, sla)
        for number, part in enumerate(parts):
            several = len(parts) > 1
            path = f"{sla.path('element')}[{number}]" if several else sla.path()
            made = Clause(
                level, path, one.name, "", sla.at(), Severity.ERROR, "", extent=Extent(RowScope.TABLE)
            )
            made = replace(made, covers=(sla.path(),) if several else ())
            yield (
                _clause(made, one, sla, part, allowed)
                if part
                else left_out(made, _unnamed(contract, one, sla))
            )


def elements(contract: Contract, one: SchemaObject, sla: SlaProperty) -> list[str]:
    """What a service level names inside of an object: paths of columns, or the empty text for the object.

    As ODCS says, the object's name may be left out where the contract has one object. Without an element
    the service level speaks of every object.
    """
    written = sla.element or contract.sla_default_element
    names = {one.name, one.column, one.id or one.name}
    found = []
    for part in (text.strip() for text in written.split(",")) if written else (one.name,):
        holder, _, rest = part.partition(".")
        if holder in names:
            found.append(rest)
        elif len(contract.objects) == 1 and part:
            found.append(part)
    return found


def _unnamed(contract: Contract, one: SchemaObject, sla: SlaProperty) -> str:
    """Why the age of an object by itself is not told: a column of dates may be anybody's birthday."""
    if not (sla.element or contract.sla_default_element):
        return "it names no column whose values tell the age; write element: object.column"
    dated = [str(column) for way, column in single_columns(one.properties) if held_as(way[-1])]
    if not dated:
        return f"{one.name} has no column of dates or timestamps that could show the age"
    known = f"{one.name} has {', '.join(dated)}"
    return f"it names no column whose values tell the age; {known}; write element: {one.name}.<column>"


def _clause(made: Clause, one: SchemaObject, sla: SlaProperty, part: str, allowed: str) -> Clause:
    found = find(one, part)
    if isinstance(found, str):
        return left_out(made, found)
    prop, column = found
    made = replace(made, property=str(column))
    kind = held_as(prop)
    if kind is None:
        shown = physical_type(prop) or logical(prop) or "of an unknown type"
        reason = f"{column} is {shown}; the age of data is seen on a date or timestamp"
        return left_out(made, reason)
    try:
        length = promised(sla)
        time = TimeColumn(column, kind, zone_of(prop))
    except Unusable as error:
        return refuse(made, str(error))
    return asking(replace(made, allowed=allowed.format(length)), KindTerms(Promise(time, length)))


def promised(sla: SlaProperty) -> Duration:
    """The length of time that a service level promises. Raises Unusable, with the reason."""
    value, unit = sla.value, (sla.unit or "").strip()
    if isinstance(value, str) and not unit:
        found = parse_duration(value)
        if isinstance(found, TextFault):
            raise Unusable(f"its value: {found.message}")
        return found
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # Not NaN either; what is longer than a century is told below.
    if not number or not 0 <= value <= 1e12:
        raise Unusable(f"its value {value!r} is not a number of a unit of time")
    word = time_unit(unit)
    if word is None:
        both = f"{value:g} minutes to some tools and {value:g} months to others; write min or mo"
        known = "write s, min, h, d, w, mo or y"
        reason = both if unit.lower() == "m" else f"no unit of time; {known}"
        raise Unusable(f"its unit {unit!r} is {reason}" if unit else f"it has no unit; {known}")
    text = f"{value:g} {unit}"
    if word in MONTHS:
        months = value * MONTHS[word]
        if months != int(months) or months > 1_200:
            raise Unusable(f"{text} is no whole number of months up to a century")
        return Duration(int(months), dt.timedelta(), text)
    seconds = value * SECONDS["m" if word == "min" else word]
    if seconds > _CENTURY_OF_SECONDS:
        raise Unusable(f"{text} is longer than a century")
    return Duration(0, dt.timedelta(seconds=seconds), text)


def judged(clause: Clause, which: str, value: int, now: dt.datetime, more: str = "") -> CheckResult:
    """The result by the `newest` or the `oldest` value of a column; `more` is said of other values."""
    promise = terms_of(clause, Promise)
    end = promise.time.ends(value)
    age = max(micros_of(now) - end, 0)
    kept = end >= micros_of(before(now, promise.length, promise.time.zone))
    message = (
        f"{subject(clause)}: the {which} value is {promise.time.shown(value)}, {in_words(age)} old{more}"
    )
    message += ending(clause, kept)
    observed = f"{in_words(age)} old" if which == "newest" else f"oldest {in_words(age)}"
    return result(clause, Status.PASS if kept else Status.FAIL, observed, message, age / 1_000_000)


def untimed(clause: Clause) -> CheckResult:
    """The result of a run that was not told the time."""
    said = f"{subject(clause)}: how old the data is cannot be told without the time; hand it in: now=…"
    return result(clause, Status.ERROR, "not tested", said)
