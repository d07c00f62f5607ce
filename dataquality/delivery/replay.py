"""Cycles as of an earlier instant, evaluated again, audited against their contracts, and excused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from dq.contracts.outcome import CycleStatus, IncidentKey
from dq.contracts.schedule.calendar import TZDATA_VERSION
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle, cycle_store
from dq.dataquality.delivery.budget import budgets, tell_budgets
from dq.dataquality.delivery.cycle_store import SHOWN, Excuse, Move, Tell, claims_of, move_all
from dq.dataquality.delivery.notify import closing_event, emit_platform_recoveries
from dq.dataquality.delivery.tables import Key, cycle_event, cycle_state, key_of, parts
from dq.dataquality.delivery.tables import cycle as cycles_table

# Cycles as they stood at an earlier instant, and judged again on what was known then.

# The changes of cycles as they were written, with what each verdict rested on.


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change of one cycle. `grounds` of None: it was no verdict, or an older dq wrote it."""

    at: datetime
    before: CycleStatus
    after: CycleStatus
    reason: str
    grounds: cycle.Grounds | None


def keys(tx: Connection) -> list[Key]:
    """Every SLO that has cycles, in order."""
    columns = key_of(cycles_table)
    asked = select(*columns).distinct().order_by(*columns)
    return [(contract, one, slo) for contract, one, slo in tx.execute(asked)]


def with_changes(tx: Connection, key: Key) -> Iterator[tuple[cycle.Kept, list[StatusChange]]]:
    """The cycles of an SLO, oldest first, each with its changes."""
    cycles = cycle_store.all_cycles(tx, key)
    changes = changes_of(tx, [kept.id for kept in cycles])
    for kept in cycles:
        yield kept, changes.get(kept.id, [])


def changes_of(tx: Connection, ids: Iterable[int]) -> dict[int, list[StatusChange]]:
    """The changes of cycles by id, in the order in which they were written."""
    found: dict[int, list[StatusChange]] = {}
    for part in parts(list(ids)):
        asked = select(cycle_event).where(cycle_event.c.cycle_id.in_(part)).order_by(cycle_event.c.id)
        for row in tx.execute(asked):
            found.setdefault(row.cycle_id, []).append(change(row))
    return found


def change(row: Row) -> StatusChange:  # type: ignore[type-arg]  # rows of a plain select have no shape to name
    """Return a row of `cycle_event` as values."""
    return StatusChange(
        row.at,
        CycleStatus(row.before),
        CycleStatus(row.after),
        row.reason,
        cycle_store.grounds_from_json(row.proof) if row.proof is not None else None,
    )


# Cycles as they stood at an earlier instant, from the changes that were written by then.
#
# Every reader with `--as-of` takes its cycles from here. What was known then is what was stored then: a
# verdict is not asked again, so that the past reads as it was printed.


def rewound(tx: Connection, cycles: Sequence[cycle.Kept], at: datetime | None) -> list[cycle.Kept]:
    """Return those of the cycles that were due by an instant, as they stood then, in the same order.

    Args:
        tx: A reading transaction.
        cycles: Cycles as they stand now.
        at: The instant; None leaves the cycles as they are.
    """
    if at is None:
        return list(cycles)
    due = [kept for kept in cycles if kept.known_at(at)]
    ids = [kept.id for kept in due]
    states, changes = _states(tx, ids, at), changes_of(tx, ids)
    return [
        _as_stored(kept, states[kept.id]) if kept.id in states else _at(kept, changes.get(kept.id, ()), at)
        for kept in due
    ]


def _states(tx: Connection, ids: Iterable[int], at: datetime) -> dict[int, Any]:
    """Return the last row of `cycle_state` by an instant, by cycle."""
    found: dict[int, Any] = {}
    for part in parts(list(ids)):
        asked = select(cycle_state).where(cycle_state.c.cycle_id.in_(part), cycle_state.c.at <= at)
        for row in tx.execute(asked.order_by(cycle_state.c.id)):
            found[row.cycle_id] = row
    return found


def _as_stored(kept: cycle.Kept, state: Any) -> cycle.Kept:
    shown = {name: getattr(state, name) for name in SHOWN} | {"status": CycleStatus(state.status)}
    excuse = kept.excuse if shown["status"] is CycleStatus.EXCUSED else ""
    return replace(kept, **shown, claims=claims_of(state.claims), excuse=excuse)


def _at(kept: cycle.Kept, changes: Sequence[StatusChange], at: datetime) -> cycle.Kept:
    """Return a cycle that had not changed by then, or that an older dq changed, by its events."""
    before = [one for one in changes if one.at <= at]
    seen = kept.first_seen_at if kept.first_seen_at and kept.first_seen_at <= at else None
    arriving = kept.arriving_since if kept.arriving_since and kept.arriving_since <= at else None
    anew = kept.anew_at if kept.anew_at and kept.anew_at <= at else None
    gone = kept.gone_since if kept.gone_since and kept.gone_since <= at else None
    if len(before) == len(changes):
        return replace(kept, first_seen_at=seen, arriving_since=arriving, anew_at=anew, gone_since=gone)
    last = before[-1] if before else None
    grounds = last.grounds if last else None
    evidence = grounds.evidence if grounds else None
    delivered = None
    if grounds is not None and last is not None and last.after not in cycle.OPEN:
        delivered = cycle.judge_on(kept.cycle, grounds, last.at).delivered_at(kept.cycle)
    excused = last is not None and last.after is CycleStatus.EXCUSED
    return replace(
        kept,
        status=last.after if last else CycleStatus.PENDING,
        reason=last.reason if last else "",
        delivered_at=delivered,
        first_seen_at=evidence.first_seen if evidence and delivered else None,
        source=evidence.source if evidence and delivered else None,
        claims=_claims(kept, evidence, delivered),
        arriving_since=evidence.arriving if evidence else None,
        anew_at=anew if delivered else None,
        gone_since=gone if grounds and grounds.revoked else None,
        excuse=kept.excuse if excused else "",
    )


def _claims(
    kept: cycle.Kept, evidence: cycle.Evidence | None, delivered: datetime | None
) -> tuple[cycle.SourceAnswer, ...]:
    if evidence is None or delivered is None:
        return ()
    if kept.claims and delivered == kept.delivered_at:
        return kept.claims
    # Of what was judged anew since, the store has the deciding source alone.
    return (cycle.SourceAnswer(evidence.source, evidence.delivered_at, evidence.rows),)


# History judged again from what is stored: each verdict from its grounds, each row from its verdicts.


@dataclass(frozen=True, slots=True)
class Replayed:
    """A cycle as it is derived from its changes. `differences` are what the store says otherwise, in words.

    `proven` is whether every change of it carries its grounds; what was withdrawn, or taken back by somebody,
    is no verdict and needs none.
    """

    kept: cycle.Kept
    status: CycleStatus
    delivered_at: datetime | None
    reason: str
    proven: bool
    differences: tuple[str, ...] = ()


def replay(tx: Connection, keys: Iterable[Key], as_of: datetime | None = None) -> Iterator[Replayed]:
    """The cycles of these SLOs, judged again from their grounds; oldest first for each.

    As of an instant: what was due by then, as what was known by then makes it. A verdict of then is asked
    again at that instant, so that a watcher which was down at the time makes no difference but in what it had
    seen. Without one, the rows as they stand are compared too.
    """
    for key in keys:
        for kept, done in with_changes(tx, key):
            if as_of is None:
                yield _replayed(kept, done)
            elif kept.cycle.due_at <= as_of:
                yield _as_of(kept, [one for one in done if one.at <= as_of], as_of)


def _replayed(kept: cycle.Kept, done: Sequence[StatusChange]) -> Replayed:
    status, wrong = CycleStatus.PENDING, list[str]()
    delivered, reason = None, ""
    for one in done:
        at = f"at {one.at.isoformat()}"
        if one.before is not status:
            wrong.append(f"{at} it was {status}, and the change says {one.before}")
        status, delivered, reason = one.after, None, one.reason
        if one.grounds is None:
            continue
        verdict = cycle.judge_on(kept.cycle, one.grounds, one.at)
        if verdict.status is not one.after:
            wrong.append(f"{at} its grounds make it {verdict.status}, stored is {one.after}")
        elif verdict.reason != one.reason:
            wrong.append(f"{at} its grounds say {verdict.reason!r}, stored is {one.reason!r}")
        delivered = verdict.delivered_at(kept.cycle)
    if kept.status is not status:
        wrong.append(f"its changes make it {status}, its row says {kept.status}")
    if kept.delivered_at != delivered and _proven(done):
        wrong.append(f"its changes make it delivered {delivered}, its row says {kept.delivered_at}")
    return Replayed(kept, status, delivered, reason, _proven(done), tuple(wrong))


def _as_of(kept: cycle.Kept, done: Sequence[StatusChange], at: datetime) -> Replayed:
    if not done:
        return Replayed(kept, CycleStatus.PENDING, None, "Nobody had looked by then.", proven=True)
    last = done[-1]
    if last.grounds is None:
        return Replayed(kept, last.after, None, last.reason, _proven(done))
    verdict = cycle.judge_on(kept.cycle, last.grounds, at)
    return Replayed(kept, verdict.status, verdict.delivered_at(kept.cycle), verdict.reason, _proven(done))


def _proven(done: Iterable[StatusChange]) -> bool:
    free = (CycleStatus.WITHDRAWN, CycleStatus.PENDING)
    return all(one.grounds is not None or one.after in free for one in done)


# Cycles computed again from the contracts that promised them, and compared with the rows.

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
    unproven: tuple[cycle.Kept, ...]
    wrong: tuple[WrongCycle, ...]


def audit(tx: Connection, keys: Iterable[Key], promises: Promises, as_of: datetime | None = None) -> Audit:
    """Compares the rows of these SLOs with the cycles that the contracts of their time give.

    Between two rows of one contract's text every cycle must be there, and after the last one up to where the
    SLO is watched. With `as_of`, the rows that were there at that instant are compared.
    """
    agreeing, unproven, wrong = 0, list[cycle.Kept](), list[WrongCycle]()
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


def _compared(slo: Slo, run: Sequence[cycle.Kept], end: datetime) -> Iterator[WrongCycle]:
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


# Cycles are excused by somebody, with a reason, and counted again: rows, incidents and budgets follow.


def excuse(
    tx: Connection, slos: Mapping[Key, Slo], words: Sequence[Excuse], now: datetime, tell: Tell
) -> list[cycle.Turn]:
    """Records these words, and moves the cycles that they are about and that have a row.

    A cycle that is not due yet is excused when it is. What was withdrawn stays so. An open incident ends as
    excused; a cycle that counts again is judged by the next tick, or at once where its delivery is known.
    """
    cycle_store.record_excuses(tx, words)
    turns: list[cycle.Turn] = []
    rows = {(key, kept.cycle.due_at): kept for key in slos for kept in cycle_store.all_cycles(tx, key)}
    for word in words:
        kept = rows.get((word.key, word.due_at))
        if kept is None or kept.status is CycleStatus.WITHDRAWN:
            continue
        if word.undone:
            turns += _counted_again(tx, kept, word, now)
        elif kept.status is not CycleStatus.EXCUSED:
            turns += _excused(tx, kept, word, now, tell)
    moved = [slos[key] for key in dict.fromkeys(turn.kept.cycle.key for turn in turns)]
    tell_budgets(tx, moved, budgets(tx, moved, now), now, tell)
    emit_platform_recoveries(tx, turns, now, tell)
    return turns


def _excused(tx: Connection, kept: cycle.Kept, word: Excuse, now: datetime, tell: Tell) -> list[cycle.Turn]:
    verdict = cycle.judge_on(kept.cycle, cycle.Grounds(excused=word.text), now)
    # Nobody is told of it any more; if it counts again and is missing still, it is news.
    if not move_all(tx, [Move(kept, verdict)], now):
        return []
    if kept.told and kept.status in (CycleStatus.MISSING, CycleStatus.UNKNOWN, CycleStatus.NEVER):
        tell(tx, closing_event(IncidentKey(*kept.cycle.key), kept, verdict, now))
    return [cycle.Turn(kept, verdict.status, verdict.reason)]


def _counted_again(tx: Connection, kept: cycle.Kept, word: Excuse, now: datetime) -> list[cycle.Turn]:
    if kept.status is not CycleStatus.EXCUSED:
        return []
    changes = changes_of(tx, [kept.id]).get(kept.id, [])
    grounds = [one.grounds for one in changes if one.grounds and not one.grounds.excused]
    verdict = cycle.judge_on(kept.cycle, grounds[-1], now) if grounds else None
    if verdict is None or verdict.lateness is None:
        # Whoever excused it looked for nothing meanwhile: only a tick can say what came.
        verdict = cycle.CycleVerdict(CycleStatus.PENDING, None, f"Counted again by {word.by}: {word.reason}")
    evidence = verdict.grounds.evidence if verdict.grounds else None
    changed = move_all(tx, [Move(kept, verdict, evidence)], now)
    return [cycle.Turn(kept, verdict.status, verdict.reason)] if changed else []
