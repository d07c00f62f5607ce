"""Cycles are excused by somebody, with a reason, and counted again: rows, incidents and budgets follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.shared.outcome import CycleStatus, IncidentKey
from dq.contracts.slo import Slo
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.budget import budgets, tell_budgets
from dq.dataquality.delivery.cycle import CycleVerdict, Grounds, Kept, Turn
from dq.dataquality.delivery.cycle_store import Excuse, Move, Tell, move_all
from dq.dataquality.delivery.evaluate import judge_on
from dq.dataquality.delivery.history import replay
from dq.dataquality.delivery.notify import closing_event, emit_platform_recoveries
from dq.dataquality.delivery.tables import Key


def excuse(
    tx: Connection, slos: Mapping[Key, Slo], words: Sequence[Excuse], now: datetime, tell: Tell
) -> list[Turn]:
    """Records these words, and moves the cycles that they are about and that have a row.

    A cycle that is not due yet is excused when it is. What was withdrawn stays so. An open incident ends as
    excused; a cycle that counts again is judged by the next tick, or at once where its delivery is known.
    """
    cycle_store.record_excuses(tx, words)
    turns: list[Turn] = []
    rows = {(key, kept.cycle.due_at): kept for key in slos for kept in cycle_store.all_cycles(tx, key)}
    for word in words:
        kept = rows.get((word.key, word.due_at))
        if kept is None or kept.status is CycleStatus.WITHDRAWN:
            continue
        if word.undone:
            turns += _counted_again(tx, kept, word, now)
        elif kept.status is not CycleStatus.EXCUSED:
            turns += _excused(tx, kept, word, now, tell)
    moved = [slos[key] for key in dict.fromkeys(_key(turn.kept) for turn in turns)]
    tell_budgets(tx, moved, budgets(tx, moved, now), now, tell)
    emit_platform_recoveries(tx, turns, now, tell)
    return turns


def _excused(tx: Connection, kept: Kept, word: Excuse, now: datetime, tell: Tell) -> list[Turn]:
    verdict = judge_on(kept.cycle, Grounds(excused=word.text), now)
    # Nobody is told of it any more; if it counts again and is missing still, it is news.
    if not move_all(tx, [Move(kept, verdict)], now):
        return []
    if kept.told and kept.status in (CycleStatus.MISSING, CycleStatus.UNKNOWN, CycleStatus.NEVER):
        tell(tx, closing_event(IncidentKey(*_key(kept)), kept, verdict, now))
    return [Turn(kept, verdict.status, verdict.reason)]


def _counted_again(tx: Connection, kept: Kept, word: Excuse, now: datetime) -> list[Turn]:
    if kept.status is not CycleStatus.EXCUSED:
        return []
    grounds = [one.grounds for one in replay.of_cycle(tx, kept.id) if one.grounds and not one.grounds.excused]
    verdict = judge_on(kept.cycle, grounds[-1], now) if grounds else None
    if verdict is None or verdict.lateness is None:
        # Whoever excused it looked for nothing meanwhile: only a tick can say what came.
        verdict = CycleVerdict(CycleStatus.PENDING, None, f"Counted again by {word.by}: {word.reason}")
    evidence = verdict.grounds.evidence if verdict.grounds else None
    changed = move_all(tx, [Move(kept, verdict, evidence)], now)
    return [Turn(kept, verdict.status, verdict.reason)] if changed else []


def _key(kept: Kept) -> Key:
    return (kept.cycle.contract, kept.cycle.object, kept.cycle.slo)
