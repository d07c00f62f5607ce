"""The delivery promises of a contract, and the cycles that follow from them."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import product

from dq.contracts import extension
from dq.contracts.extension import Delivery
from dq.contracts.model import Contract, Node, SchemaObject, SlaProperty
from dq.contracts.outcome import (
    MONTHS,
    SECONDS,
    Finding,
    Severity,
    TextFault,
    mistake,
    parse_elapsed,
    suggestion,
)
from dq.contracts.schedule.calendar import TZDATA_VERSION, DayEffect, FreeDays
from dq.contracts.schedule.clock import DstPolicy, Due, Note, Schedule, parse
from dq.contracts.schedule.cron import Dialect

# Promised deliveries, each with its identity, breach instant and expected partitions.

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


def render(template: str, due: Due) -> str:
    """The partition value a template means for a due. Raises ValueError for a faulty template."""
    parts = compiled(template)
    if isinstance(parts, TextFault):
        raise ValueError(str(parts))
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

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its SLO."""
        return (self.contract, self.object, self.slo)


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
    `check`; a faulty one raises ValueError.
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
    values = [dict.fromkeys(render(template, due) for template in listed) for listed in templates.values()]
    return tuple(tuple(zip(templates, combination, strict=True)) for combination in product(*values))


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


# The delivery promises of a contract, ready to be asked: schedule, grace, partitions, objective.
#
# A rule of the gate and the watcher read them through the same door, so what passes the gate can be
# watched.

# A missing snapshot is given up when three more were due; a missing partition can still be delivered.
GIVE_UP_PARTITION = timedelta(days=14)

HISTORY_KEPT = timedelta(days=400)
"""How long each cycle is kept at least: budgets are counted from them, and trends over a year."""

# What a contract of such a status promises is not owed: not yet, or no more.
NOT_IN_FORCE = ("draft", "proposed", "retired")

# Each is looked for at every tick until it is there.
MOST_PARTITIONS = 1_000

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%")


@dataclass(frozen=True, slots=True)
class Slo:
    """One delivery promise of one object. `objective` is the promised share of good cycles, in (0, 1]."""

    contract: Contract
    object: SchemaObject
    sla: SlaProperty
    delivery: Delivery
    id: str
    schedule: Schedule
    grace: timedelta
    objective: Fraction
    window: timedelta
    give_up_after: timedelta | None
    severity: Severity
    partition: Mapping[str, list[str]] = field(default_factory=dict)
    key: tuple[str, str, str] = field(init=False, repr=False, compare=False)
    """(contract's key, object name, SLO id): what its cycles and incidents are filed under."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.contract.key, self.object.name, self.id))

    def period(self, due_at: datetime) -> timedelta | None:
        """From this due instant to the next; None for the last one of all."""
        following = next(iter(self.schedule.after(due_at)), None)
        return following.at - due_at if following else None

    def cycles(self, start: datetime, end: datetime) -> Iterator[Cycle]:
        """The cycles with start < due_at <= end, ascending."""
        contract, one, slo = self.key
        return cycles(
            self.schedule,
            start,
            end,
            contract=contract,
            object=one,
            slo=slo,
            grace=self.grace,
            partition=self.partition,
        )


def read(contract: Contract) -> tuple[list[Slo], list[Finding]]:
    """Every delivery promise that can be understood, and findings for what cannot."""
    slos: dict[tuple[str, str, str], Slo] = {}
    findings: list[Finding] = []
    for sla in contract.sla_properties:
        delivery, form = extension.delivery(contract, sla)
        findings += form
        if delivery is None:
            continue
        slo, wrong = _slo(contract, sla, delivery)
        if slo is not None and slo.key in slos:
            wrong = [_same(slo, slos[slo.key])]
        findings += wrong
        if slo is not None and not form and not wrong:
            slos[slo.key] = slo
    return list(slos.values()), findings


def _same(slo: Slo, twin: Slo) -> Finding:
    """The finding for a second promise that would share the cycles of the first."""
    key = "id" if slo.sla.has("id") else "property"
    line = twin.sla.at(key).line
    message = f"delivery {slo.id!r} of {slo.object.name!r} is promised in line {line} already."
    at, path = slo.sla.at(key), slo.sla.path(key)
    return mistake("duplicate-id", message, "Give each an 'id' of its own.", at, path)


def _slo(contract: Contract, sla: SlaProperty, delivery: Delivery) -> tuple[Slo | None, list[Finding]]:
    findings: list[Finding] = []

    def wrong(rule: str, node: Node, key: str, message: str, mend: str) -> None:
        findings.append(mistake(rule, message, mend, node.at(key), node.path(key)))

    def length(key: str, text: str) -> timedelta:
        elapsed = parse_elapsed(text)
        if isinstance(elapsed, TextFault):
            wrong("duration-invalid", delivery, key, f"{key}: {elapsed.message}", elapsed.mend)
            return timedelta(0)
        return elapsed

    terms = delivery.calendar
    calendar = terms.days() if terms else None
    if terms and calendar:
        for key, odd in calendar.faults():
            wrong("calendar-invalid", terms, key, f"{key}: {odd.message}", odd.mend)
        calendar = None if findings else calendar
    schedule = _schedule(sla, delivery, calendar)
    if isinstance(schedule, TextFault):
        zone = schedule.code.startswith("ZONE")
        node, key = (delivery, "timezone") if zone else (sla, "schedule")
        rule = "unknown-timezone" if zone else "cron-invalid"
        message = schedule.message if zone else f"{schedule.code}: {schedule.message}"
        wrong(rule, node, key, message, schedule.mend)
        # The parser stops at an unknown zone; the expression may be wrong all the same.
        cron = _schedule(sla, delivery, calendar, timezone="UTC") if zone else None
        if isinstance(cron, TextFault):
            wrong("cron-invalid", sla, "schedule", f"{cron.code}: {cron.message}", cron.mend)
    one = _object(contract, sla)
    if isinstance(one, TextFault):
        wrong("sla-element-unknown", sla, "element", one.message, one.mend)
    grace, window = length("grace", delivery.grace), length("window", delivery.window)
    give_up = length("giveUpAfter", delivery.give_up_after) if delivery.give_up_after else None
    objective = _objective(delivery.objective)
    if isinstance(objective, TextFault):
        wrong("objective-invalid", delivery, "objective", objective.message, objective.mend)
    for column, templates in delivery.partition.items():
        for template in templates:
            fault = check(template)
            if fault is not None:
                message = f"{column}: {fault.message}"
                wrong("partition-template-invalid", delivery, "partition", message, fault.mend)
    count = math.prod(len(templates) for templates in delivery.partition.values())
    if count > MOST_PARTITIONS:
        message = f"each delivery would bring {count:,} partitions, more than {MOST_PARTITIONS:,}."
        mend = "Promise fewer in one entry."
        wrong("partition-template-invalid", delivery, "partition", message, mend)
    if (
        findings
        or isinstance(schedule, TextFault)
        or isinstance(one, TextFault)
        or isinstance(objective, TextFault)
    ):
        return None, findings
    return Slo(
        contract=contract,
        object=one,
        sla=sla,
        delivery=delivery,
        id=sla.id or sla.property,
        schedule=schedule,
        grace=grace,
        objective=objective,
        window=window,
        give_up_after=give_up or (GIVE_UP_PARTITION if delivery.partition else None),
        severity=Severity(delivery.severity),
        partition=delivery.partition,
    ), []


def _schedule(
    sla: SlaProperty, delivery: Delivery, calendar: FreeDays | None, timezone: str | None = None
) -> Schedule | TextFault:
    if sla.schedule is None:
        return TextFault(
            "CRON_MISSING", "a delivery needs a schedule.", "Add 'schedule: \"0 6 * * *\"' to the entry."
        )
    return schedule_of(sla.schedule, delivery, calendar, timezone)


def schedule_of(
    text: str, delivery: Delivery, calendar: FreeDays | None, timezone: str | None = None
) -> Schedule | TextFault:
    """The schedule of a cron by the terms of a delivery, in its own zone or in this one."""
    # An absent `dst` leaves the dialect its habit.
    dst = DstPolicy(delivery.dst) if delivery.has("dst") else None
    dialect = Dialect(delivery.dialect)
    return parse(text, timezone=timezone or delivery.timezone, dialect=dialect, dst=dst, calendar=calendar)


def _object(contract: Contract, sla: SlaProperty) -> SchemaObject | TextFault:
    """The object that the entry speaks about: its element, the default element, or the only one."""
    element = sla.element or contract.sla_default_element
    names = [one.name for one in contract.objects]
    if element is None:
        if len(contract.objects) == 1:
            return contract.objects[0]
        return TextFault(
            "ELEMENT",
            "the entry does not say which object it speaks about.",
            f"Add 'element: {names[0]}'." if names else "Add an object under 'schema'.",
        )
    name = element.partition(".")[0]
    found = contract.object(name)
    if found is not None:
        return found
    mend = suggestion(name, names, f"It has {', '.join(names) or 'none'}.")
    return TextFault("ELEMENT", f"element {element!r} names no object of this contract.", mend)


def _objective(text: str) -> Fraction | TextFault:
    match = _PERCENT.fullmatch(text.strip())
    share = Fraction(match.group(1)) / 100 if match else Fraction(0)
    if 0 < share <= 1:
        return share
    return TextFault(
        "OBJECTIVE", f"objective {text!r} is not a share of cycles.", "Write a percentage such as 95%."
    )
