"""Cycles: promised deliveries, each with its own identity, breach instant and expected partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

from dq.contracts.schedule.clock import Schedule
from dq.contracts.schedule.partition import render
from dq.contracts.schedule.words import Due, Note
from dq.contracts.schedule.zone import TZDATA_VERSION
from dq.contracts.shared.outcome import TextFault

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
