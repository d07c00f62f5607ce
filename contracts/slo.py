"""The delivery promises of a contract, ready to be asked: schedule, grace, partitions, objective.

A rule of the gate and the watcher read them through the same door, so what passes the gate can be watched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

from dq.contracts import extension
from dq.contracts.extension import Delivery
from dq.contracts.model import Contract, Node, SchemaObject, SlaProperty
from dq.contracts.schedule.calendar import FreeDays
from dq.contracts.schedule.clock import Dialect, DstPolicy, Schedule, parse
from dq.contracts.schedule.cycle import Cycle, check, cycles
from dq.contracts.shared.outcome import Finding, Severity, TextFault, mistake
from dq.contracts.shared.units import parse_elapsed
from dq.contracts.shared.wording import suggestion

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

    @property
    def key(self) -> tuple[str, str, str]:
        """(contract's key, object name, SLO id): what its cycles and incidents are filed under."""
        return (self.contract.key, self.object.name, self.id)

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
