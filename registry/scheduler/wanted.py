"""From delivery promises to the schedules that they ask for, and the findings about what AWS cannot say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dq.contracts import slo as promises
from dq.contracts.model import Contract
from dq.contracts.schedule import DayEffect, Dialect, FreeDays, Schedule, TextFault, convert, parse
from dq.contracts.shared.outcome import Finding, Severity
from dq.contracts.slo import Slo
from dq.registry.scheduler.entry import ScheduleEntry, entry_name
from dq.registry.table import RETIRED

UNSAYABLE = "schedule-unsayable"
_LONGEST = 256
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""What EventBridge replaces by the instant at which a schedule was due, in UTC."""


@dataclass(slots=True)
class WantedSchedules:
    """The schedules that promises ask for, by name, and what each was read from.

    `unclear` are the keys of contracts with a promise that AWS cannot keep or nobody can read: what they
    have stays. `understood` are those of all others.
    """

    entries: dict[str, ScheduleEntry] = field(default_factory=dict)
    slos: dict[str, Slo] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)
    understood: set[str] = field(default_factory=set)


def wanted_schedules(contracts: Iterable[Contract], registry: str) -> WantedSchedules:
    """The schedules of these contracts' promises; those of retired ones stand still."""
    made = WantedSchedules()
    for contract in contracts:
        slos, wrong = promises.read(contract)
        made.findings += wrong
        for slo in slos:
            texts = _expressions(slo.schedule)
            if isinstance(texts, TextFault):
                wrong.append(_finding(slo, texts, Severity.ERROR))
                made.findings.append(wrong[-1])
                continue
            left_out = _left_out(slo.schedule.calendar)
            if left_out is not None:
                made.findings.append(_finding(slo, left_out, Severity.WARNING))
                continue
            for number, text in enumerate(texts, 1):
                entry = _entry(slo, text, registry, number)
                made.entries[entry.name], made.slos[entry.name] = entry, slo
        (made.unclear if wrong else made.understood).add(contract.key)
    return made


def _entry(slo: Slo, expression: str, registry: str, number: int) -> ScheduleEntry:
    contract, one, id_ = slo.key
    told = {
        "contract": slo.contract.id,
        "version": slo.contract.version,
        "object": one,
        "slo": id_,
        "due": SCHEDULED_TIME,
        "grace_seconds": int(slo.grace.total_seconds()),
        "registry": registry,
    }
    promise = "/".join(slo.key)
    name = entry_name(promise.replace("/", "-"), registry, contract, one, id_, str(number))
    payload = json.dumps(told, ensure_ascii=False)
    running = slo.contract.status != RETIRED
    return ScheduleEntry(name, contract, promise, expression, slo.schedule.timezone, payload, running)


def _expressions(schedule: Schedule) -> list[str] | TextFault:
    if schedule.dialect is Dialect.EVENTBRIDGE:
        return [schedule.expression.strip()]
    texts = convert.to_eventbridge(schedule)
    if isinstance(texts, TextFault):
        return replace(texts, message=f"EventBridge cannot say it. {texts.message}")
    if any(len(text) > _LONGEST for text in texts):
        return TextFault(
            "CRON_CONVERT",
            f"EventBridge takes {_LONGEST} characters, and it would be {max(map(len, texts))}.",
            "Promise it in two entries.",
        )
    return texts


def _left_out(calendar: FreeDays | None) -> TextFault | None:
    """Why AWS cannot follow a calendar; one that only excuses lets every delivery be due."""
    if calendar is None:
        return None
    rests = calendar.weekdays_only or calendar.holidays
    if calendar.skip or calendar.moves or (rests and calendar.free_days is not DayEffect.EXCUSE):
        return TextFault(
            "CALENDAR",
            "EventBridge knows no calendar and would start on its free days, so no schedule is made.",
            "'dq watch' judges the promise all the same.",
        )
    return None


def _finding(slo: Slo, fault: TextFault, severity: Severity) -> Finding:
    at, path = slo.sla.at("schedule"), slo.sla.path("schedule")
    return Finding(UNSAYABLE, severity, fault.message, fault.mend, at, path, contract=slo.contract.id)


def as_schedules(entries: Iterable[ScheduleEntry]) -> list[Schedule]:
    """What entries mean, so that it can be held against the promise."""
    read = (parse(one.expression, timezone=one.timezone, dialect=Dialect.EVENTBRIDGE) for one in entries)
    return [one for one in read if isinstance(one, Schedule)]
