"""One tick of the watcher: which cycles came due, what arrived, whose status changed, who must be told.

Needs no JVM. Evidence is looked at between two short transactions; the second one writes the new
statuses and hands each breach and recovery to `tell` in the same transaction, so that a kill at any
point leaves either all of it or nothing, and the next tick does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.shared.outcome import Breach, CycleStatus, IncidentKey, Recovery
from dq.contracts.slo import Slo
from dq.dataquality.delivery import blindness, ledger, mass
from dq.dataquality.delivery.budget_alerts import budgets, tell_budgets
from dq.dataquality.delivery.lake.files import Files
from dq.dataquality.delivery.ledger import Kept
from dq.dataquality.delivery.sources import commit_history
from dq.dataquality.delivery.sources.commit_evidence import CycleWindow, delivered
from dq.dataquality.delivery.sources.commit_history import CommitHistory
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.dataquality.delivery.sources.probe import DeliveryPlace, Receipts, label, look
from dq.dataquality.delivery.sources.sight import Sight
from dq.dataquality.delivery.sources.snapshot import of_snapshot, window_of
from dq.dataquality.delivery.state import excuses, watermarks
from dq.dataquality.delivery.state.excuses import Excuse
from dq.dataquality.delivery.state.receipts import all_receipts
from dq.dataquality.delivery.status import CycleVerdict, Grounds, judge_on
from dq.dataquality.delivery.turn import Key, Tell, Turn, ended, tell_platform
from dq.dataquality.delivery.withdrawal import withdraw
from dq.dataquality.delivery.wording import promised, seen
from dq.store.engine import Store

_ENDED_BADLY = (CycleStatus.LATE, CycleStatus.NEVER)

# Evidence can become visible late; an alert waits this long after the breach. It changes no status.
SETTLE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Watched:
    """An SLO together with where its data lies and what reads it."""

    slo: Slo
    place: DeliveryPlace
    files: Files


@dataclass(frozen=True, slots=True)
class PastMiss:
    """A cycle that ended badly before anybody was told that it was broken."""

    slo: Slo
    kept: Kept
    verdict: CycleVerdict


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick did. `open` are the cycles whose status can still change after it."""

    at: datetime
    slos: int
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
) -> Tick:
    """Brings every watched SLO up to `now`, an aware instant.

    An SLO that was never watched starts at `since`, or at `now`: what was due before has no cycles.
    Running it again at the same instant changes nothing. `unread` are contracts, by key, that are as they
    were and of which nothing is due. `withdrawn` says of an SLO by its key why it is
    promised no more, or None: others may watch it. `past` is handed what broke and ended untold.
    """
    gone = withdraw(store, withdrawn, now, tell)
    new = _enumerate(store, watched, now, since or now, unread)
    with store.read() as tx:
        standing = ledger.open_cycles(tx, now)
        at_hand = {one.slo.key[0] for one in watched if one.slo.key in standing}
        receipts, words = all_receipts(tx, at_hand), excuses.said(tx, at_hand)
        delivered_once = watermarks.ever_delivered(tx)
        logs = [one.place for one in watched if one.slo.key in standing and one.place.format in LAKEHOUSE]
        history = commit_history.load(tx, {place.path.rstrip("/") for place in logs}, now)
    sight = Sight(delivered_once)
    judged = [
        (one, kept, result, evidence)
        for one in watched
        for kept in (_worded(kept, words) for kept in standing.get(one.slo.key, ()))
        if kept.cycle.due_at <= now
        for result, evidence in (
            _excused(kept, now) or _judged(one, kept, receipts.get(one.slo.key[:2], {}), history, now, sight),
        )
        # What was given up stays so, unless it came after all.
        if kept.status is not CycleStatus.NEVER or result.lateness is not None
    ]
    known = [(one, kept, _as_known(kept, result), evidence) for one, kept, result, evidence in judged]
    blind = tuple(blindness.events(known, now, SETTLE))
    changes = _write(store, known, blind, history, now, tell, past)
    closed = sum(1 for change in changes if change.after not in ledger.OPEN)
    return Tick(
        at=now,
        slos=len(watched),
        new_cycles=new,
        changes=gone + tuple(change for change in changes if change.after is not change.kept.status),
        unknown=tuple(
            Turn(kept, result.status, result.reason)
            for _, kept, result, evidence in judged
            if result.status is CycleStatus.UNKNOWN
            # What will never be known is said once.
            if evidence is None or not evidence.settled or kept.status is not CycleStatus.UNKNOWN
        ),
        open=len(judged) - closed,
    )


def _enumerate(
    store: Store, watched: Sequence[Watched], now: datetime, start: datetime, unread: Collection[str]
) -> int:
    """Gives every cycle that came due since the last tick its row; how many there were."""
    with store.read() as tx:
        marks, roots = watermarks.through(tx), watermarks.roots(tx)
    due = []
    for one in watched:
        mark, root = marks.get(one.slo.key), blindness.root_of(one)
        new = list(one.slo.cycles(mark or start, now))
        if new or mark is None or roots.get(one.slo.key) != root:
            due.append((one.slo, new, root))
    if watched or unread:
        with store.write() as tx:
            # Another watcher may have been here meanwhile; who is second finds the rows.
            marks = watermarks.through(tx)
            for slo, new, root in due:
                ledger.enumerate_to(tx, slo, new, now, first=slo.key not in marks)
                if roots.get(slo.key) != root:
                    watermarks.note_root(tx, slo.key, root)
            watermarks.advance(tx, [one.slo.key for one in watched], unread, now)
    return sum(len(new) for _, new, _ in due)


def _as_known(kept: Kept, result: CycleVerdict) -> CycleVerdict:
    """A miss that was seen stays one: what cannot be read afterwards takes nothing back."""
    if kept.status is CycleStatus.MISSING and result.status is CycleStatus.UNKNOWN:
        return CycleVerdict(CycleStatus.MISSING, None, kept.reason)
    return result


def _excused(kept: Kept, now: datetime) -> tuple[CycleVerdict, None] | None:
    """The verdict on a cycle that the calendar or somebody excuses; then nothing is looked for."""
    return (judge_on(kept.cycle, Grounds(excused=kept.excuse), now), None) if kept.excuse else None


def _worded(kept: Kept, words: Mapping[tuple[Key, datetime], Excuse]) -> Kept:
    """The cycle with what somebody said of it, which goes before the calendar."""
    cycle = kept.cycle
    word = words.get(((cycle.contract, cycle.object, cycle.slo), cycle.due_at))
    if word is None:
        return kept
    since = word.at if word.undone else None
    return replace(kept, excuse="" if word.undone else word.text, counts_since=since)


def _judged(
    one: Watched, kept: Kept, receipts: Receipts, history: CommitHistory, now: datetime, sight: Sight
) -> tuple[CycleVerdict, Evidence | None]:
    slo, cycle = one.slo, kept.cycle
    # Where a partition's path tells what came, no time does.
    placed = bool(cycle.partitions) and one.place.format not in LAKEHOUSE
    window, ahead = (CycleWindow(None, None, None), None) if placed else window_of(slo, cycle)

    def commit(partition: Partition) -> Evidence | None:
        seen = history.of(one.place.path.rstrip("/"), one.place.format, one.files)
        return delivered(slo, cycle, partition, seen, window)

    evidence = look(slo, cycle, one.place, one.files, receipts, commit, now)
    if evidence is None and now > cycle.breach_at:
        evidence = sight.lost(slo, one.place, one.files)
    give_up_at = cycle.due_at + slo.give_up_after if slo.give_up_after else None
    if not cycle.partitions:
        evidence, give_up_at = of_snapshot(
            kept.status is CycleStatus.MISSING, evidence, window, give_up_at or ahead
        )
    if evidence is not None and evidence.delivered_at is not None:
        evidence = replace(evidence, first_seen=kept.first_seen_at or now)
    grounds = Grounds(evidence, give_up_at, slo.delivery.empty == "allowed")
    verdict = judge_on(cycle, grounds, now)
    # What is no delivery, being empty, is no evidence of one.
    return verdict, None if grounds.is_empty else evidence


Judged = tuple[Watched, Kept, CycleVerdict, Evidence | None]


def _write(
    store: Store,
    judged: Iterable[Judged],
    blind: Sequence[Breach],
    history: CommitHistory,
    now: datetime,
    tell: Tell,
    past: Callable[[Connection, Sequence[PastMiss]], object],
) -> list[Turn]:
    moved = [
        (one, kept, result, evidence, event, cause)
        for one, kept, result, evidence in judged
        for event in (_event(one.slo, kept, result, now),)
        for cause in (blindness.cause_of(one, result, evidence),)
        if event is not None or result.status is not kept.status or cause != kept.blind
    ]
    changes: list[Turn] = []
    if not moved and not blind and not history.has_news:
        return changes
    with store.write() as tx:
        history.write(tx)
        for unseen in blind:
            tell(tx, unseen)
        about = [(one, kept) for one, kept, _, _, own, _ in moved if isinstance(own, Breach)]
        many = mass.masses(tx, about)
        held = {kept.id: (one.root, now + mass.HOLD) for one in many for kept in one.cycles}
        for one_cause in many:
            tell(tx, mass.breach(one_cause, now))
        untold: list[PastMiss] = []
        told_of: list[tuple[Slo, Breach | Recovery]] = []
        charged: dict[Key, Slo] = {}
        for one, kept, result, evidence, event, cause in moved:
            own = None if kept.id in held else event
            told = kept.told or isinstance(own, Breach)
            hold = held.get(kept.id)
            if not ledger.change(tx, kept, result, evidence, now, told=told, blind=cause, held=hold):
                continue
            if result.status in _ENDED_BADLY and not kept.told:
                untold.append(PastMiss(one.slo, kept, result))
            changes.append(Turn(kept, result.status, result.reason))
            if own is not None:
                told_of.append((one.slo, own))
            if kept.id not in held and (result.status.good or result.status.bad or kept.status.bad):
                charged[one.slo.key] = one.slo
        found = budgets(tx, [*charged.values(), *(slo for slo, _ in told_of)], now)
        for slo, own in told_of:
            tell(tx, replace(own, facts=(*own.facts, ("budget", found[slo.key].line()))))
        tell_budgets(tx, charged.values(), found, now, tell)
        tell_platform(tx, changes, now, tell)
        if untold:
            past(tx, untold)
    return changes


def _event(slo: Slo, kept: Kept, judged: CycleVerdict, now: datetime) -> Breach | Recovery | None:
    """What the alerts room has to know about this judgement, if anything."""
    contract, one, group = slo.key
    key, subject = IncidentKey(contract, one, group), kept.cycle.due_at.isoformat()
    tell_at = kept.held_until or kept.cycle.breach_at + SETTLE
    if judged.status is CycleStatus.MISSING and not kept.told and now >= tell_at:
        what = label(kept.cycle.partitions[0]) if kept.cycle.partitions else "the snapshot"
        return Breach(
            key=key,
            severity=slo.severity,
            subject=subject,
            title=f"{one} is missing: {what}",
            # What counts again is news, whatever was told of it before.
            at=max(kept.cycle.breach_at, kept.counts_since or kept.cycle.breach_at),
            facts=(("promised", promised(slo, kept.cycle)), ("seen", judged.reason)),
        )
    if kept.told and judged.status not in ledger.OPEN:
        if judged.lateness is not None:
            at = kept.cycle.due_at + judged.lateness
            return Recovery(key, subject, at, (("delivered", seen(slo, kept.cycle, judged)),))
        return ended(key, kept, judged, now)
    return None
