"""One tick of the watcher: which cycles came due, what arrived, whose status changed, who must be told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.outcome import LAKEHOUSE, Breach, CycleStatus, IncidentKey
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle_store, evidence, notify
from dq.dataquality.delivery.budget import budgets, tell_budgets, withdraw_budget
from dq.dataquality.delivery.cycle import (
    OPEN,
    SETTLE,
    CycleJudgement,
    CycleVerdict,
    Grounds,
    Kept,
    PastMiss,
    Turn,
    Watched,
    evaluate_cycle,
    judge_on,
)
from dq.dataquality.delivery.cycle_store import Excuse, Move, Tell, all_receipts, enumerate_all, move_all
from dq.dataquality.delivery.evidence import CommitHistory, Sight, View
from dq.dataquality.delivery.notify import background_facts, closing_event, emit_platform_recoveries
from dq.dataquality.delivery.notify import event_of as turn_event
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.tables import Key
from dq.store.engine import Store

# How what is promised no more ends.


def withdraw(
    store: Store, withdrawn: Callable[[Key], str | None], now: datetime, tell: Tell
) -> tuple[Turn, ...]:
    """Ends what is promised no more: open cycles, their incidents, and the watch itself."""
    with store.read() as tx:
        marked = cycle_store.watched_through(tx)
    reasons = {key: reason for key in marked if (reason := withdrawn(key)) is not None}
    if not reasons:
        return ()
    turns: list[Turn] = []
    with store.write() as tx:
        standing = cycle_store.open_cycles(tx, now, {key[0] for key in reasons})
        told = cycle_store.budgets_told(tx)
        for key, reason in reasons.items():
            withdraw_budget(tx, key, told.get(key), reason, now, tell)
            cycle_store.delete_watermark(tx, key)
            verdict = CycleVerdict(CycleStatus.WITHDRAWN, None, reason)
            open_ = [kept for kept in standing.get(key, ()) if kept.status in OPEN]
            moved = move_all(tx, [Move(kept, verdict, told=kept.told) for kept in open_], now)
            for kept in open_:
                if kept.id in moved:
                    turns.append(Turn(kept, verdict.status, reason))
                    if kept.told:
                        tell(tx, closing_event(IncidentKey(*key), kept, verdict, now))
        emit_platform_recoveries(tx, turns, now, tell)
    return tuple(turns)


# One tick of the watcher: which cycles came due, what arrived, whose status changed, who must be told.
#
# Needs no JVM. Evidence is looked at between two short transactions; the second one writes the new
# statuses and hands each breach and recovery to `tell` in the same transaction, so that a kill at any
# point leaves either all of it or nothing, and the next tick does it again.

_ENDED_BADLY = (CycleStatus.LATE, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick did. `begun` are the SLOs that were never watched before, `open` the cycles whose status
    can still change after it."""

    at: datetime
    slos: int
    begun: int
    new_cycles: int
    changes: tuple[Turn, ...]
    unknown: tuple[Turn, ...]
    open: int


def tick(
    store: Store,
    watched: Sequence[Watched],
    now: datetime,
    tell: Tell,
    *,
    since: datetime | None = None,
    unread: Collection[str] = (),
    withdrawn: Callable[[Key], str | None] = lambda _: None,
    past: Callable[[Connection, Sequence[PastMiss]], object] = lambda *_: None,
    settle: Callable[[Connection], object] = lambda _: None,
    lookout: Lookout | None = None,
    looked_at: datetime | None = None,
) -> Tick:
    """Brings every watched SLO up to `now`, an aware instant.

    An SLO that was never watched starts at `since`, or at `now`: what was due before has no cycles.
    Running it again at the same instant changes nothing. `unread` are contracts, by key, that are as they
    were and of which nothing is due. `withdrawn` says of an SLO by its key why it is promised no more, or
    None: others may watch it. `past` is handed what broke and ended untold, and `settle` is called when all
    of a tick is told. `lookout` is the one of the ticks before, and `looked_at` the instant of the last one
    that was done, if any.
    """
    gone = withdraw(store, withdrawn, now, tell)
    roots = {one.slo.key: notify.root_of(one) for one in watched}
    begun, new = _enumerate(store, watched, roots, now, since or now, unread)
    with store.read() as tx:
        standing = cycle_store.open_cycles(tx, now, {one.slo.key[0] for one in watched})
        at_hand = {one.slo.key[0]: one.place.elsewhere for one in watched if one.slo.key in standing}
        receipts, words = all_receipts(tx, at_hand), cycle_store.newest_excuses(tx, at_hand)
        sight = Sight(cycle_store.ever_delivered(tx))
        logs = [one.place for one in watched if one.slo.key in standing and one.place.format in LAKEHOUSE]
        history = evidence.load_history(tx, {place.path.rstrip("/") for place in logs}, now)
    due = [
        (one, kept)
        for one in watched
        for kept in (_worded(kept, words) for kept in standing.get(one.slo.key, ()))
        if kept.cycle.due_at <= now
    ]
    excused = [
        CycleJudgement(one, kept, judge_on(kept.cycle, Grounds(excused=kept.excuse), now), None)
        for one, kept in due
        if kept.excuse
    ]
    # For what does not count, nothing is looked for.
    wanted = [(one, kept) for one, kept in due if not kept.excuse]
    seen = View(now, roots, receipts, history, sight).all(lookout or Lookout(), wanted)
    judged = excused + [
        found
        for found in (evaluate_cycle(one, now, looked_at) for one in seen)
        # What was given up stays so, unless it came after all.
        if found.kept.status is not CycleStatus.NEVER or found.result.lateness is not None
    ]
    changes = _write(store, judged, history, now, tell, past, settle)
    return Tick(
        at=now,
        slos=len(watched),
        begun=begun,
        new_cycles=new,
        changes=gone + tuple(change for change in changes if change.after is not change.kept.status),
        unknown=tuple(
            Turn(one.kept, one.result.status, one.result.reason)
            for one in judged
            if one.result.status is CycleStatus.UNKNOWN
            # What will never be known is said once.
            if one.evidence is None or not one.evidence.settled or one.kept.status is not CycleStatus.UNKNOWN
        ),
        open=sum(1 for one in judged if one.result.status in OPEN),
    )


def _enumerate(
    store: Store,
    watched: Sequence[Watched],
    roots: Mapping[Key, str],
    now: datetime,
    start: datetime,
    unread: Collection[str],
) -> tuple[int, int]:
    """Gives every cycle that came due since the last tick its row; how many SLOs were new, and how many
    cycles."""
    with store.read() as tx:
        marks, before = cycle_store.watched_through(tx), cycle_store.watched_roots(tx)
    due: list[tuple[Slo, list[Cycle]]] = []
    moved: dict[Key, str] = {}
    for one in watched:
        mark, root = marks.get(one.slo.key), roots[one.slo.key]
        new = list(one.slo.cycles(mark or start, now))
        if before.get(one.slo.key) != root:
            moved[one.slo.key] = root
        if new or mark is None:
            due.append((one.slo, new))
    if watched or unread:
        # Another watcher may have been here meanwhile; who is second finds the rows.
        with store.write() as tx:
            enumerate_all(tx, due, now)
            cycle_store.note_roots(tx, moved)
            cycle_store.advance_watermarks(tx, [one.slo.key for one in watched], unread, now)
    return sum(one.slo.key not in marks for one in watched), sum(len(new) for _, new in due)


def _worded(kept: Kept, words: Mapping[tuple[Key, datetime], Excuse]) -> Kept:
    """The cycle with what somebody said of it, which goes before the calendar."""
    cycle = kept.cycle
    word = words.get((cycle.key, cycle.due_at))
    if word is None:
        return kept
    since = word.at if word.undone else None
    return replace(kept, excuse="" if word.undone else word.text, counts_since=since)


def _write(
    store: Store,
    judged: Sequence[CycleJudgement],
    history: CommitHistory,
    now: datetime,
    tell: Tell,
    past: Callable[[Connection, Sequence[PastMiss]], object],
    settle: Callable[[Connection], object],
) -> list[Turn]:
    blind = list(notify.outage_breaches(judged, now, SETTLE))
    moved = [
        (one, event, cause)
        for one in judged
        for event in (turn_event(one, now),)
        for cause in (notify.outage_source(one),)
        if event is not None or one.differs or cause != one.kept.blind
    ]
    if not moved and not blind and not history.has_news:
        return []
    with store.write() as tx:
        history.write(tx)
        for unseen in blind:
            tell(tx, unseen)
        many = notify.detect_correlated_misses(
            tx, [(one.one, one.kept) for one, event, _ in moved if isinstance(event, Breach)]
        )
        held = {
            kept.id: (mass_miss.root, now + notify.INHIBIT_OWNERS_FOR)
            for mass_miss in many
            for kept in mass_miss.cycles
        }
        for one_cause in many:
            tell(tx, notify.misses_breach(one_cause, now))
        moves = [
            _move(one, cause, held.get(one.kept.id), breach=isinstance(event, Breach))
            for one, event, cause in moved
        ]
        standing = move_all(tx, moves, now)
        done = [
            (one, None if one.kept.id in held else event)
            for one, event, _ in moved
            if one.kept.id in standing
        ]
        told_of = [(one, event) for one, event in done if event is not None]
        charged = {
            one.one.slo.key: one.one.slo
            for one, _ in done
            if one.kept.id not in held
            and (one.result.status.good or one.result.status.bad or one.kept.status.bad)
        }
        found = budgets(tx, [*charged.values(), *(one.one.slo for one, _ in told_of)], now)
        for one, event in told_of:
            slo, cycle = one.one.slo, one.kept.cycle
            came = (
                cycle_store.lately_delivered(tx, slo.key, cycle.due_at) if isinstance(event, Breach) else []
            )
            more = background_facts(slo, came, found[slo.key], broken=isinstance(event, Breach))
            tell(tx, replace(event, facts=(*event.facts, *more)))
        tell_budgets(tx, charged.values(), found, now, tell)
        changes = [Turn(one.kept, one.result.status, one.result.reason) for one, _ in done]
        emit_platform_recoveries(tx, changes, now, tell)
        untold = [
            PastMiss(one.one.slo, one.kept, one.result)
            for one, _ in done
            if one.result.status in _ENDED_BADLY and not one.kept.told
        ]
        if untold:
            past(tx, untold)
        settle(tx)
    return changes


def _move(one: CycleJudgement, cause: str | None, held: tuple[str, datetime] | None, *, breach: bool) -> Move:
    told = (one.kept.told and not one.revoked) or (breach and held is None)
    return Move(
        one.kept,
        one.result,
        one.evidence,
        told=told,
        blind=cause,
        held=held,
        look_again_at=one.look_again_at,
        gone_since=one.gone_since,
        anew_at=one.anew,
    )
