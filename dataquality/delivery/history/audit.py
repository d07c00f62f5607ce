"""Cycles computed again from the contracts that promised them, and compared with the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from sqlalchemy import Connection

from dq.contracts.schedule import TZDATA_VERSION, Cycle
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.tables import Key

# The SLOs of a contract's text, by the SHA-256 of it and their keys.
Promises = Mapping[tuple[str, Key], Slo]
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class WrongCycle:
    """A row that no contract gives, or a cycle of a contract that has no row."""

    key: Key
    due_at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of it: rows that agree, those whose contract is not at hand, and what is wrong."""

    agreeing: int
    unproven: tuple[Kept, ...]
    wrong: tuple[WrongCycle, ...]


def audit(tx: Connection, keys: Iterable[Key], promises: Promises, as_of: datetime | None = None) -> Audit:
    """Compares the rows of these SLOs with the cycles that the contracts of their time give.

    Between two rows of one contract's text every cycle must be there, and after the last one up to where the
    SLO is watched. With `as_of`, the rows that were there at that instant are compared.
    """
    agreeing, unproven, wrong = 0, list[Kept](), list[WrongCycle]()
    marks = cycle_store.watched_through(tx)
    for key in keys:
        history = cycle_store.all_cycles(tx, key)
        known = [kept for kept in history if as_of is None or kept.known_at(as_of)]
        later = {kept.cycle.due_at for kept in history} - {kept.cycle.due_at for kept in known}
        runs = [list(run) for _, run in groupby(known, lambda kept: kept.contract_hash)]
        for number, run in enumerate(runs):
            slo = promises.get((run[0].contract_hash, key))
            if slo is None:
                unproven += run
                continue
            end = run[-1].cycle.due_at
            if number == len(runs) - 1 and key in marks and _stands(promises, slo):
                end = max(end, min(marks[key], as_of or marks[key]))
            faults = [fault for fault in _compared(slo, run, end) if fault.due_at not in later]
            wrong += faults
            agreeing += len(run) - len({one.due_at for one in faults} & {one.cycle.due_at for one in run})
    return Audit(agreeing, tuple(unproven), tuple(wrong))


def _stands(promises: Promises, slo: Slo) -> bool:
    """Whether no newer text of the contract is at hand, so that its last run goes on."""
    return len({digest for digest, key in promises if key == slo.key}) == 1


def _compared(slo: Slo, run: Sequence[Kept], end: datetime) -> Iterator[WrongCycle]:
    given = {one.due_at: one for one in slo.cycles(run[0].cycle.due_at - _MOMENT, end)}
    rows = {one.cycle.due_at: one.cycle for one in run}
    for due in sorted(given.keys() | rows.keys()):
        if due not in given:
            yield WrongCycle(slo.key, due, f"its contract gives no such cycle{_release(rows[due], slo)}")
        elif due not in rows:
            what = "its contract gives it, and it has no row; was the promise withdrawn in between?"
            yield WrongCycle(slo.key, due, what)
        elif said := "; ".join(_differences(rows[due], given[due])):
            yield WrongCycle(slo.key, due, f"{said}{_release(rows[due], slo)}")


def _differences(row: Cycle, given: Cycle) -> Iterator[str]:
    parts = {
        "breach_at": (row.breach_at, given.breach_at),
        "nominal": (row.nominal, given.nominal),
        "note": (row.note, given.note),
        "partitions": (row.partitions, given.partitions),
        "excuse": (row.excuse, given.excuse),
    }
    for name, (stored, computed) in parts.items():
        if stored != computed:
            yield f"{name} is {_text(stored)}, its contract gives {_text(computed)}"


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _release(row: Cycle, slo: Slo) -> str:
    """What else than the contract may be the reason."""
    calendar = slo.schedule.calendar
    pairs = [(f"tzdata {row.tzdata}", f"tzdata {TZDATA_VERSION}")] if row.tzdata != TZDATA_VERSION else []
    here = calendar.release if calendar else ""
    pairs += [(row.calendar or "no holidays", here or "no holidays")] if row.calendar != here else []
    return "".join(f" (it was computed with {then}, here is {now})" for then, now in pairs)
