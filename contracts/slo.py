"""Delivery SLOs of a contract, and their cycles."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import product

from dq.contracts import extension
from dq.contracts.access.data_location import unlisted_problem
from dq.contracts.extension import Delivery
from dq.contracts.model import Contract, Node, SchemaObject, SlaProperty
from dq.contracts.outcome import (
    MONTHS,
    SECONDS,
    Finding,
    Severity,
    ValueProblem,
    error_finding,
    parse_elapsed,
    suggestion,
)
from dq.contracts.schedule.calendar import TZDATA_VERSION, DayEffect, HolidayCalendar, load_zone
from dq.contracts.schedule.clock import DstNote, DstPolicy, DueTime, Schedule, parse, shortest_gap
from dq.contracts.schedule.cron import Dialect

# Promised deliveries, each with its identity, breach instant and expected partitions.

# Partition templates such as `{due - 1d:%Y-%m-%d}`: the partitions that a delivery must contain.
#
# Arithmetic with days and longer units is civil, in the schedule's zone: a day before is the same time on
# the previous date, whether 23, 24 or 25 hours long. Hours and minutes are elapsed time: an hour before is an
# hour that existed. `due` and `due.local` are the civil time the schedule names.

# Not strftime, whose output for %y, %e or a year below 1000 depends on the platform.
_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda t: f"{t.year:04}",
    "y": lambda t: f"{t.year % 100:02}",
    "m": lambda t: f"{t.month:02}",
    "d": lambda t: f"{t.day:02}",
    "j": lambda t: f"{t.timetuple().tm_yday:03}",
    "H": lambda t: f"{t.hour:02}",
    "M": lambda t: f"{t.minute:02}",
    "S": lambda t: f"{t.second:02}",
    # As Spark names the folders of integer columns.
    "-m": lambda t: str(t.month),
    "-d": lambda t: str(t.day),
    "-H": lambda t: str(t.hour),
    "-M": lambda t: str(t.minute),
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
_DIRECTIVE = re.compile(r"%(-?.?)", re.DOTALL)
_ELAPSED_UNITS = ("h", "m")
_FURTHEST = 400 * 366 * 86_400
_HINT = "Write {due:%Y-%m-%d}, or with arithmetic {due - 1d:%Y-%m-%d}; units are m h d w mo y."


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """One `{due ...}`: civil months and days to add, then elapsed time, then the format."""

    months: int
    days: timedelta
    elapsed: timedelta
    date_format: str

    def text(self, due: DueTime, timezone: str) -> str:
        moment = add_months(due.nominal, self.months) + self.days
        if self.elapsed:
            is_second = due.note is DstNote.SECOND_OF_TWO and moment == due.nominal
            local = moment.replace(tzinfo=load_zone(timezone), fold=int(is_second))
            instant = local.astimezone(UTC) + self.elapsed
            moment = instant.astimezone(local.tzinfo).replace(tzinfo=None)
        return _DIRECTIVE.sub(lambda match: _DIRECTIVES[match[1]](moment), self.date_format)


@lru_cache(maxsize=16_384)
def parse_template(template: str) -> tuple[str | _Placeholder, ...] | ValueProblem:
    """Return a template as literal texts and placeholders, or its problem."""
    if len(template) > 1_000:
        return ValueProblem(
            "PARTITION_FORM", f"the template has {len(template):,} characters, which is too long.", _HINT
        )
    parts: list[str | _Placeholder] = []
    for piece in _PIECE.finditer(template):
        text = piece[0]
        if text in ("{{", "}}"):
            parts.append(text[0])
        elif text in ("{", "}"):
            return ValueProblem(
                "PARTITION_BRACE",
                f"{template!r} has an unmatched {text!r}.",
                "Write {{ or }} for a brace.",
            )
        elif piece[1] is None:
            parts.append(text)
        else:
            placeholder = _parse_placeholder(piece[1], template)
            if isinstance(placeholder, ValueProblem):
                return placeholder
            parts.append(placeholder)
    return tuple(parts)


def template_problem(template: str) -> ValueProblem | None:
    """Return the problem of a template, or None."""
    parsed = parse_template(template)
    return parsed if isinstance(parsed, ValueProblem) else None


def render(template: str, due: DueTime, timezone: str = "UTC") -> str:
    """Return the partition value of a template at a due time in a time zone.

    Raises ValueError for an invalid template.
    """
    parts = parse_template(template)
    if isinstance(parts, ValueProblem):
        raise ValueError(str(parts))
    return "".join(part if isinstance(part, str) else part.text(due, timezone) for part in parts)


def _parse_placeholder(text: str, template: str) -> _Placeholder | ValueProblem:
    match = _PLACE.fullmatch(text)
    if match is None:
        return ValueProblem("PARTITION_PLACE", f"{'{' + text + '}'!r} in {template!r} is not valid.", _HINT)
    if not match[2]:
        return ValueProblem(
            "PARTITION_FORM", f"{'{' + text + '}'!r} in {template!r} has no date format.", _HINT
        )
    if "%" not in match[2]:
        return ValueProblem(
            "PARTITION_FORM", f"{match[2]!r} in {template!r} has no directive of a date, e.g. %d.", _HINT
        )
    for directive in _DIRECTIVE.findall(match[2]):
        if directive not in _DIRECTIVES:
            return ValueProblem(
                "PARTITION_DIRECTIVE",
                f"'%{directive}' in {template!r} is not allowed: it is locale-dependent or not a date.",
                f"Write one of {' '.join('%' + name for name in _DIRECTIVES)}.",
            )
    months = civil_seconds = elapsed_seconds = 0
    for sign, number, unit in _TERM.findall(match[1]):
        amount = int(sign + number)
        months += amount * MONTHS.get(unit, 0)
        if unit in _ELAPSED_UNITS:
            elapsed_seconds += amount * SECONDS[unit]
        else:
            civil_seconds += amount * SECONDS.get(unit, 0)
    if abs(months) > 4_800 or max(abs(civil_seconds), abs(elapsed_seconds)) > _FURTHEST:
        return ValueProblem(
            "PARTITION_FAR", f"{'{' + text + '}'!r} in {template!r} is over 400 years away.", _HINT
        )
    return _Placeholder(
        months, timedelta(seconds=civil_seconds), timedelta(seconds=elapsed_seconds), match[2]
    )


def add_months(moment: datetime, months: int) -> datetime:
    """Return the same day some months later, or the last day of a shorter month."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


# Cycles: promised deliveries, each with its own identity, breach instant and expected partitions.

Partition = tuple[tuple[str, str], ...]
"""One partition as (column, value) pairs in the order of the contract."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One promised delivery, identified by (contract key, object, slo, due_at).

    Instants are aware, in UTC.

    Attributes:
        nominal: Civil time in the schedule's zone.
        partitions: All partitions that must arrive; empty for a snapshot without partitions.
        excuse: Why the calendar excludes it from the SLO, or "".
        calendar: Release of the public holidays that were used, or "".
    """

    contract: str
    object: str
    slo: str
    due_at: datetime
    breach_at: datetime
    nominal: datetime
    note: DstNote
    partitions: tuple[Partition, ...] = ()
    tzdata: str = TZDATA_VERSION
    excuse: str = ""
    calendar: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Key of its SLO."""
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
    """Yield the cycles with start < due_at <= end, ascending.

    `grace` is elapsed time. If columns have lists of templates, every combination is expected, also for every
    day that the calendar has moved onto another. Templates must have passed `template_problem`; an invalid
    one raises ValueError.
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


def _expected(
    templates: Mapping[str, Sequence[str]], schedule: Schedule, due: DueTime
) -> tuple[Partition, ...]:
    """Return the partitions of the civil times in the cron expression, before the calendar moves them."""
    partitions_by_time = (
        _partitions(templates, due._replace(nominal=nominal), schedule.timezone)
        for nominal in schedule.origins(due)
    )
    return tuple(dict.fromkeys(partition for partitions in partitions_by_time for partition in partitions))


def _partitions(templates: Mapping[str, Sequence[str]], due: DueTime, timezone: str) -> tuple[Partition, ...]:
    # dict.fromkeys keeps the order and drops a value that two templates of one column share.
    values = [
        dict.fromkeys(render(template, due, timezone) for template in column_templates)
        for column_templates in templates.values()
    ]
    return tuple(tuple(zip(templates, combination, strict=True)) for combination in product(*values))


# Days of a schedule that its calendar changes.


@dataclass(frozen=True, slots=True)
class ChangedDay:
    """A civil date of the schedule that the calendar changes. `due_on` is set if it is moved."""

    day: date
    effect: DayEffect
    reason: str
    due_on: date | None = None


def changed_days(schedule: Schedule, start: datetime, end: datetime) -> Iterator[ChangedDay]:
    """Yield the dates of deliveries in (start, end] that the calendar skips, moves or excuses, ascending."""
    calendar = schedule.calendar
    if calendar is None:
        return
    without_calendar = replace(schedule, calendar=None)
    for day in dict.fromkeys(due.nominal.date() for due in without_calendar.between(start, end)):
        effect = calendar.effect(day)
        if effect is not None:
            moved_to = calendar.due_on(day) if effect is DayEffect.MOVE else None
            yield ChangedDay(day, effect, calendar.reason(day), moved_to)


# Delivery SLOs of a contract: schedule, grace, partitions, objective.
#
# Validation and the watcher use the same function, so what passes validation can be watched.

# A missing snapshot is given up after three further due times; a missing partition can still be delivered.
GIVE_UP_PARTITION = timedelta(days=14)

CYCLE_RETENTION = timedelta(days=400)
"""Minimum retention of cycles: error budgets and yearly trends are computed from them."""

# Statuses of contracts whose SLOs do not apply, not yet or no longer.
NOT_IN_FORCE = ("draft", "proposed", "retired")

# Each is looked for at every tick until it arrives.
MAX_PARTITIONS = 1_000

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%")


MAX_COMPARED_CYCLES = 500
"""Maximum number of earlier cycles from which the time of an early warning is derived."""

_QUARTER = timedelta(days=365.25) / 4
_PERIODS: Mapping[str, timedelta] = {
    "week": timedelta(weeks=1),
    "month": _QUARTER / 3,
    "quarter": _QUARTER,
    "year": 4 * _QUARTER,
}
_RATE = re.compile(r"([1-9]\d{0,3})\s*/\s*([A-Za-z]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class FalseWarnings:
    """Budget of false early warnings: at most `number` in any period of this length."""

    number: int
    period: timedelta
    text: str


def parse_false_warnings(text: str) -> FalseWarnings | ValueProblem:
    """Return the budget of e.g. `1/quarter`; a quarter is a fourth of 365.25 days."""
    match = _RATE.fullmatch(text.strip())
    if match is not None and match[2] in _PERIODS:
        return FalseWarnings(int(match[1]), _PERIODS[match[2]], f"{match[1]}/{match[2]}")
    default = f"Write a whole number and one of {', '.join(_PERIODS)}, e.g. 1/quarter."
    hint = suggestion(match[2], _PERIODS, default) if match is not None else default
    return ValueProblem("FALSE_WARNINGS", f"{text!r} is not a number of warnings in a period.", hint)


@dataclass(frozen=True, slots=True)
class Slo:
    """One delivery SLO of one object. `objective` is the promised share of good cycles, in (0, 1].

    `server` is set if the delivery names its servers; each of them is an SLO, e.g. `daily@eu`.
    `false_warnings` is the budget of its early warnings, or None without them.
    """

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
    server: str = ""
    false_warnings: FalseWarnings | None = None
    key: tuple[str, str, str] = field(init=False, repr=False, compare=False)
    """(contract key, object name, SLO id): key of its cycles and incidents."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.contract.key, self.object.name, self.id))

    @property
    def object_text(self) -> str:
        """The object for messages, with the server if the delivery names it."""
        return f"{self.object.name} on {self.server}" if self.server else self.object.name

    def is_on(self, server: str | None) -> bool:
        """True if the SLO may be about data on this server, or on any server for None."""
        return not self.server or server in (None, self.server)

    @property
    def is_implied(self) -> bool:
        """True if its schedule has no delivery terms of its own."""
        return self.delivery.place is self.sla.place

    @property
    def expects_new_data(self) -> bool:
        """True if any new data since the previous due time is a delivery."""
        return self.delivery.expect == "new_data"

    def period(self, due_at: datetime) -> timedelta | None:
        """Return the time from this due instant to the next, or None for the last one."""
        next_due = next(iter(self.schedule.after(due_at)), None)
        return next_due.at - due_at if next_due else None

    def cycles(self, start: datetime, end: datetime) -> Iterator[Cycle]:
        """The cycles with start < due_at <= end, ascending."""
        contract, object_name, slo = self.key
        return cycles(
            self.schedule,
            start,
            end,
            contract=contract,
            object=object_name,
            slo=slo,
            grace=self.grace,
            partition=self.partition,
        )


def read_slos(contract: Contract) -> tuple[list[Slo], list[Finding]]:
    """Return every valid delivery SLO, and findings for the invalid ones."""
    slos, findings, _ = _read(contract)
    return slos, findings


def unwatched_schedules(contract: Contract) -> list[Finding]:
    """Return a warning for each schedule without delivery terms that cannot be watched with the defaults."""
    return _read(contract)[2]


def _read(contract: Contract) -> tuple[list[Slo], list[Finding], list[Finding]]:
    slos: dict[tuple[str, str, str], Slo] = {}
    findings: list[Finding] = []
    without_terms: list[SlaProperty] = []
    for sla in contract.sla_properties:
        delivery, form_findings = extension.delivery(contract, sla)
        findings += form_findings
        if delivery is None:
            if not form_findings and is_arrival_schedule(sla):
                without_terms.append(sla)
            continue
        slo, slo_findings = _build_slo(contract, sla, delivery)
        slos_by_server = _by_server(slo) if slo is not None else []
        duplicate = next((copy for copy in slos_by_server if copy.key in slos), None)
        if duplicate is not None:
            slo_findings = [_duplicate_slo(duplicate, slos[duplicate.key])]
        findings += slo_findings
        if not form_findings and not slo_findings:
            slos |= {copy.key: copy for copy in slos_by_server}
    unwatched: list[Finding] = []
    for sla in without_terms:
        implied = _implied_slo(contract, sla, slos)
        if isinstance(implied, Slo):
            slos[implied.key] = implied
        else:
            unwatched.append(implied)
    return list(slos.values()), findings, unwatched


def _by_server(slo: Slo) -> list[Slo]:
    """Return the SLO of each server that the delivery names, or the SLO itself."""
    names = slo.delivery.servers
    return [replace(slo, id=f"{slo.id}@{name}", server=name) for name in names] or [slo]


# Schedules by the keys of ODCS alone, without delivery terms.
#
# ODCS does not define whether such a schedule starts a job or is a deadline, nor which partition is due. The
# implied terms therefore expect only what is true of both: new data since the previous due time.

NOT_WATCHED = "schedule-not-watched"

# A schedule of another service level is the time at which that level is evaluated.
_ARRIVALS = ("frequency", "timeofavailability")
_LONGEST_IMPLIED_GRACE = timedelta(hours=1)
_GRACE_SHARE = 4
_ANY_START = datetime(2000, 1, 1, tzinfo=UTC)


def is_arrival_schedule(sla: SlaProperty) -> bool:
    """Return True if the entry schedules arrivals of data, with or without delivery terms."""
    return sla.schedule is not None and sla.property.lower() in _ARRIVALS


def delivery_terms(contract: Contract, sla: SlaProperty) -> Delivery | None:
    """Return the delivery terms of an entry, those implied by its schedule, or None."""
    delivery, findings = extension.delivery(contract, sla)
    if delivery is not None or findings or not is_arrival_schedule(sla) or not _is_cron(sla):
        return delivery
    schedule = parse(sla.schedule or "")
    return _implied_delivery(sla, schedule) if isinstance(schedule, Schedule) else None


def _is_cron(sla: SlaProperty) -> bool:
    return (sla.scheduler or "cron").lower() == "cron"


@lru_cache(maxsize=4_096)
def _implied_grace(schedule: Schedule) -> str:
    gap = shortest_gap(schedule, _ANY_START)
    grace = min(_LONGEST_IMPLIED_GRACE, gap / _GRACE_SHARE) if gap else _LONGEST_IMPLIED_GRACE
    # Whole minutes, as schedules of breaches have no seconds.
    minutes = grace // timedelta(minutes=1)
    return f"{minutes // 60}h" if minutes and minutes % 60 == 0 else f"{minutes}m"


def _implied_delivery(sla: SlaProperty, schedule: Schedule) -> Delivery:
    """Return the terms of a schedule without any: grace is a quarter of the shortest gap, at most 1h."""
    return extension.implied_delivery(sla, _implied_grace(schedule))


def _implied_slo(
    contract: Contract, sla: SlaProperty, slos: Mapping[tuple[str, str, str], Slo]
) -> Slo | Finding:
    """Return the SLO of an entry without delivery terms, or why it cannot be watched."""

    def unwatched(key: str, message: str, hint: str, rule: str = NOT_WATCHED) -> Finding:
        message = f"{sla.property} is not watched: {message.removesuffix('.')}."
        location, path = sla.locate(key), sla.path(key)
        return Finding(rule, Severity.WARNING, message, hint, location, path, contract=contract.id)

    if not _is_cron(sla):
        return unwatched("scheduler", f"dq reads cron, not schedules of {sla.scheduler!r}", _AS_CRON)
    schedule = parse(sla.schedule or "")
    if isinstance(schedule, ValueProblem):
        return unwatched("schedule", schedule.message, schedule.hint, "cron-invalid")
    names = {part.partition(".")[0].strip() for part in _element(contract, sla).split(",")}
    if len(names) > 1 and len(contract.objects) > 1:
        return unwatched("element", "it names several objects", "Write an entry for each object.")
    schema_object = contract.objects[0] if len(contract.objects) == 1 else _object(contract, sla)
    if isinstance(schema_object, ValueProblem):
        # The rule of the key reports a name that does not exist.
        rule = "sla-element-unknown" if names != {""} else NOT_WATCHED
        return unwatched("element", schema_object.message, schema_object.hint, rule)
    place_problem = unlisted_problem(contract)
    if place_problem is not None:
        return unwatched("schedule", place_problem.message, place_problem.hint)
    slo, findings = _build_slo(contract, sla, _implied_delivery(sla, schedule), schema_object)
    if slo is None:
        return unwatched("schedule", findings[0].message, findings[0].hint)
    if slo.key in slos:
        duplicate = _duplicate_slo(slo, slos[slo.key])
        return unwatched("id" if sla.has("id") else "property", duplicate.message, duplicate.hint)
    return slo


_AS_CRON = "Write 'scheduler: cron' and five cron fields, in UTC or with delivery terms that have a timezone."


def _duplicate_slo(slo: Slo, first: Slo) -> Finding:
    """Return the finding for a second SLO that would share the cycles of the first."""
    key = "id" if slo.sla.has("id") else "property"
    line = first.sla.locate(key).line
    message = f"delivery {slo.id!r} of {slo.object.name!r} is already defined in line {line}."
    location, path = slo.sla.locate(key), slo.sla.path(key)
    return error_finding("duplicate-id", message, "Give each its own 'id'.", location, path)


def _build_slo(
    contract: Contract, sla: SlaProperty, delivery: Delivery, implied_object: SchemaObject | None = None
) -> tuple[Slo | None, list[Finding]]:
    findings: list[Finding] = []

    def report(rule: str, node: Node, key: str, message: str, hint: str) -> None:
        findings.append(error_finding(rule, message, hint, node.locate(key), node.path(key)))

    def parse_length(key: str, text: str) -> timedelta:
        elapsed = parse_elapsed(text)
        if isinstance(elapsed, ValueProblem):
            report("duration-invalid", delivery, key, f"{key}: {elapsed.message}", elapsed.hint)
            return timedelta(0)
        return elapsed

    terms = delivery.calendar
    calendar = terms.holiday_calendar() if terms else None
    if terms and calendar:
        for key, calendar_problem in calendar.problems():
            report(
                "calendar-invalid", terms, key, f"{key}: {calendar_problem.message}", calendar_problem.hint
            )
        calendar = None if findings else calendar
    schedule = _schedule(sla, delivery, calendar)
    if isinstance(schedule, ValueProblem):
        is_zone_problem = schedule.code.startswith("ZONE")
        node, key = (delivery, "timezone") if is_zone_problem else (sla, "schedule")
        rule = "unknown-timezone" if is_zone_problem else "cron-invalid"
        report(rule, node, key, schedule.message, schedule.hint)
        # The parser stops at an unknown zone; check the expression too.
        cron_problem = _schedule(sla, delivery, calendar, timezone="UTC") if is_zone_problem else None
        if isinstance(cron_problem, ValueProblem):
            report("cron-invalid", sla, "schedule", cron_problem.message, cron_problem.hint)
    schema_object = implied_object or _object(contract, sla)
    if isinstance(schema_object, ValueProblem):
        report("sla-element-unknown", sla, "element", schema_object.message, schema_object.hint)
    grace, window = parse_length("grace", delivery.grace), parse_length("window", delivery.window)
    give_up = parse_length("giveUpAfter", delivery.give_up_after) if delivery.give_up_after else None
    false_warnings = parse_false_warnings(delivery.false_warnings)
    if isinstance(false_warnings, ValueProblem):
        message = f"falseWarnings: {false_warnings.message}"
        report("false-warnings-invalid", delivery, "falseWarnings", message, false_warnings.hint)
    elif delivery.warn is None and delivery.has("falseWarnings"):
        message = "falseWarnings has no effect without early warnings."
        report(
            "false-warnings-invalid", delivery, "falseWarnings", message, "Add 'warn: usual', or remove it."
        )
    objective = parse_objective(delivery.objective)
    if isinstance(objective, ValueProblem):
        report("objective-invalid", delivery, "objective", objective.message, objective.hint)
    for column, templates in delivery.partition.items():
        for template in templates:
            problem = template_problem(template)
            if problem is not None:
                message = f"{column}: {problem.message}"
                report("partition-template-invalid", delivery, "partition", message, problem.hint)
    if delivery.partition and delivery.expect == "new_data":
        message = "'expect: new_data' counts new data in any partition."
        report("partition-template-invalid", delivery, "partition", message, "Remove one of the two.")
    known_servers = [server.server for server in contract.servers]
    for number, name in enumerate(delivery.servers):
        if name not in known_servers:
            hint = suggestion(name, known_servers, f"It has {', '.join(known_servers) or 'none'}.")
            report(
                "delivery-server-invalid", delivery, "servers", f"the contract has no server {name!r}.", hint
            )
        elif name in delivery.servers[:number]:
            message = f"the server {name!r} is listed twice."
            report("delivery-server-invalid", delivery, "servers", message, "Remove one of the two.")
    count = math.prod(len(templates) for templates in delivery.partition.values())
    if count > MAX_PARTITIONS:
        message = f"each delivery would have {count:,} partitions, more than {MAX_PARTITIONS:,}."
        advice = "Use fewer partitions per entry."
        report("partition-template-invalid", delivery, "partition", message, advice)
    if (
        findings
        or isinstance(schedule, ValueProblem)
        or isinstance(schema_object, ValueProblem)
        or isinstance(objective, ValueProblem)
        or isinstance(false_warnings, ValueProblem)
    ):
        return None, findings
    return Slo(
        contract=contract,
        object=schema_object,
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
        false_warnings=false_warnings if delivery.warn else None,
    ), []


def _schedule(
    sla: SlaProperty, delivery: Delivery, calendar: HolidayCalendar | None, timezone: str | None = None
) -> Schedule | ValueProblem:
    if sla.schedule is None:
        return ValueProblem(
            "CRON_MISSING", "a delivery needs a schedule.", "Add 'schedule: \"0 6 * * *\"' to the entry."
        )
    return build_schedule(sla.schedule, delivery, calendar, timezone)


def build_schedule(
    text: str, delivery: Delivery, calendar: HolidayCalendar | None, timezone: str | None = None
) -> Schedule | ValueProblem:
    """Return the schedule of a cron expression by the delivery's terms, in its zone or in `timezone`."""
    # Without `dst`, the dialect's default applies.
    dst = DstPolicy(delivery.dst) if delivery.has("dst") else None
    dialect = Dialect(delivery.dialect)
    return parse(text, timezone=timezone or delivery.timezone, dialect=dialect, dst=dst, calendar=calendar)


def _object(contract: Contract, sla: SlaProperty) -> SchemaObject | ValueProblem:
    """Return the object of the entry: its element, the default element, or the only object."""
    element = _element(contract, sla) or None
    names = [schema_object.name for schema_object in contract.objects]
    if element is None:
        if len(contract.objects) == 1:
            return contract.objects[0]
        return ValueProblem(
            "ELEMENT",
            "the entry has no 'element', and the contract has several objects.",
            f"Add 'element: {names[0]}'." if names else "Add an object under 'schema'.",
        )
    name = element.partition(".")[0]
    match = contract.object(name)
    if match is not None:
        return match
    hint = suggestion(name, names, f"It has {', '.join(names) or 'none'}.")
    return ValueProblem("ELEMENT", f"element {element!r} is not an object of this contract.", hint)


def _element(contract: Contract, sla: SlaProperty) -> str:
    return sla.element or contract.sla_default_element or ""


def parse_objective(text: str) -> Fraction | ValueProblem:
    """Return the share of an objective such as `99.5%`, in (0, 1], or its problem."""
    match = _PERCENT.fullmatch(text.strip())
    share = Fraction(match.group(1)) / 100 if match else Fraction(0)
    if 0 < share <= 1:
        return share
    return ValueProblem(
        "OBJECTIVE",
        f"objective {text!r} is not a percentage between 0% and 100%.",
        "Write a percentage, e.g. 95%.",
    )
