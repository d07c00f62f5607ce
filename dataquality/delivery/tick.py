"""One tick of the watcher: new due cycles, their evidence, status changes and the resulting events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.incident import Breach, CycleStatus, IncidentKey
from dq.contracts.model import Contract
from dq.contracts.outcome import LAKEHOUSE
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle_store, early_warning, evidence, notify
from dq.dataquality.delivery.budget import budgets, emit_budget_events, withdraw_budget
from dq.dataquality.delivery.cycle import (
    OPEN,
    SETTLE,
    CycleEvaluation,
    CycleRecord,
    CycleTransition,
    CycleVerdict,
    UnnotifiedMiss,
    VerdictInputs,
    WatchTarget,
    evaluate_cycle,
    evaluate_inputs,
)
from dq.dataquality.delivery.cycle_store import (
    CycleUpdate,
    EmitEvent,
    Excuse,
    apply_updates,
    insert_cycles,
    receipts_by_slo,
    storage_events_by_slo,
)
from dq.dataquality.delivery.early_warning import InputsByProduct, WatchedWarning
from dq.dataquality.delivery.evidence import CommitHistory, ObservationContext, Reachability
from dq.dataquality.delivery.notify import background_facts, closing_event, emit_platform_recoveries
from dq.dataquality.delivery.notify import transition_event as turn_event
from dq.dataquality.delivery.probe_pool import ProbePool
from dq.dataquality.delivery.tables import Key
from dq.store.engine import Store

# Withdrawn SLOs.


def withdraw(
    store: Store,
    withdrawal_reason: Callable[[Key], str | None],
    now: datetime,
    emit: EmitEvent,
    settle: Callable[[Connection], object],
) -> tuple[CycleTransition, ...]:
    """End withdrawn SLOs: their open cycles, incidents and watermarks.

    `withdrawal_reason` returns why an SLO is withdrawn, or None if it is not.
    """
    with store.read() as tx:
        watched = cycle_store.watched_through(tx)
    reasons = {key: reason for key in watched if (reason := withdrawal_reason(key)) is not None}
    if not reasons:
        return ()
    transitions: list[CycleTransition] = []
    with store.write() as tx:
        open_cycles = cycle_store.open_cycles(tx, now, {key[0] for key in reasons})
        notified_levels = cycle_store.notified_budgets(tx)
        early_warning.withdraw_warnings(tx, reasons, now, emit)
        for key, reason in reasons.items():
            withdraw_budget(tx, key, notified_levels.get(key), reason, now, emit)
            cycle_store.delete_watermark(tx, key)
            verdict = CycleVerdict(CycleStatus.WITHDRAWN, None, reason)
            open_records = [record for record in open_cycles.get(key, ()) if record.status in OPEN]
            updated_ids = apply_updates(
                tx, [CycleUpdate(record, verdict, notified=record.notified) for record in open_records], now
            )
            for record in open_records:
                if record.id in updated_ids:
                    transitions.append(CycleTransition(record, verdict.status, reason))
                    if record.notified:
                        emit(tx, closing_event(IncidentKey(*key), record, verdict, now))
        emit_platform_recoveries(tx, transitions, now, emit)
        settle(tx)
    return tuple(transitions)


# The tick. Needs no JVM. Evidence is collected between two short transactions. The second one writes the new
# statuses and passes each breach and recovery to `emit`, so that a kill at any point leaves either all or
# nothing, and the next tick repeats it.

_ENDED_BADLY = (CycleStatus.LATE, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class TickResult:
    """Result of a tick. `new_slos` is the number of SLOs that were never watched before, `open_cycles` that
    of the cycles whose status can still change. `warned` are new early warnings.
    """

    as_of: datetime
    slos: int
    new_slos: int
    new_cycles: int
    changes: tuple[CycleTransition, ...]
    unknown: tuple[CycleTransition, ...]
    open_cycles: int
    warned: tuple[WatchedWarning, ...] = ()


def tick(
    store: Store,
    targets: Sequence[WatchTarget],
    now: datetime,
    emit: EmitEvent,
    *,
    since: datetime | None = None,
    unchanged_contracts: Collection[str] = (),
    withdrawal_reason: Callable[[Key], str | None] = lambda _: None,
    record_unnotified: Callable[[Connection, Sequence[UnnotifiedMiss]], object] = lambda *_: None,
    prepare: Callable[[Collection[Contract]], object] = lambda _: None,
    settle: Callable[[Connection], object] = lambda _: None,
    inputs_by_product: InputsByProduct = lambda _: {},
    probe_pool: ProbePool | None = None,
    last_tick_at: datetime | None = None,
) -> TickResult:
    """Bring every watched SLO up to `now`, an aware instant. Idempotent for the same instant.

    Args:
        store: The state store.
        targets: The SLOs to watch.
        now: The instant for which cycles are evaluated.
        emit: Receives each breach and recovery, in the transaction that writes it.
        since: Start of SLOs that were never watched, by default `now`; cycles due before have no rows.
        unchanged_contracts: Keys of contracts that are unchanged and have nothing due.
        withdrawal_reason: Returns why an SLO is withdrawn, or None if it is not: another watcher may watch
            it.
        record_unnotified: Receives the misses that ended before anyone was notified.
        prepare: Called before the transaction that emits breaches, with the contracts of these.
        settle: Called in each transaction that emitted events, when all of them are emitted.
        inputs_by_product: Returns the declared inputs of each product, for early warnings.
        probe_pool: The pool of the previous ticks.
        last_tick_at: The instant of the last completed tick, or None if there was none.
    """
    withdrawals = withdraw(store, withdrawal_reason, now, emit, settle)
    roots = {target.slo.key: notify.storage_root(target) for target in targets}
    new_slos, new_cycles = _enumerate(store, targets, roots, now, since or now, unchanged_contracts)
    to_warn = early_warning.cycles_to_warn(store, targets, now)
    warnings = to_warn.decided
    early = [
        (warning.target, early_warning.early_record(warning.cycle))
        for warning in warnings
        if early_warning.needs_probe(warning, now)
    ]
    with store.read() as tx:
        open_cycles = cycle_store.open_cycles(tx, now, {target.slo.key[0] for target in targets})
        observed_keys = {*open_cycles, *(target.slo.key for target, _ in early)}
        excluded_servers = {
            target.slo.key: target.place.other_servers
            for target in targets
            if target.slo.key in observed_keys
        }
        receipts, events, excuses = (
            receipts_by_slo(tx, excluded_servers),
            storage_events_by_slo(tx, excluded_servers, now),
            cycle_store.newest_excuses(tx, {key[0] for key in excluded_servers}),
        )
        reachability = Reachability(cycle_store.ever_delivered(tx))
        lakehouse_locations = [
            target.place
            for target in targets
            if target.slo.key in observed_keys and target.place.format in LAKEHOUSE
        ]
        history = evidence.load_history(tx, {place.path.rstrip("/") for place in lakehouse_locations}, now)
    due = [
        (target, record)
        for target in targets
        for record in (_with_excuse(record, excuses) for record in open_cycles.get(target.slo.key, ()))
        if record.cycle.due_at <= now
    ]
    due += [(target, _with_excuse(record, excuses)) for target, record in early]
    excused = [
        CycleEvaluation(
            target, record, evaluate_inputs(record.cycle, VerdictInputs(excused=record.excuse), now), None
        )
        for target, record in due
        if record.excuse
    ]
    # Excused cycles need no evidence.
    to_observe = [(target, record) for target, record in due if not record.excuse]
    observations = ObservationContext(now, roots, receipts, events, history, reachability).observe(
        probe_pool or ProbePool(), to_observe
    )
    evaluations = excused + [
        evaluation
        for evaluation in (evaluate_cycle(observation, now, last_tick_at) for observation in observations)
        # Given-up cycles stay so, unless they were delivered after all.
        if evaluation.record.status is not CycleStatus.NEVER or evaluation.result.lateness is not None
    ]
    # Cycles that are not due yet have no row.
    recorded = [evaluation for evaluation in evaluations if evaluation.record.cycle.due_at <= now]
    warned_cycles = {
        (warning.cycle.key, warning.cycle.due_at) for warning in warnings if warning.stored.is_open
    }
    changes = _commit_evaluations(
        store, recorded, warned_cycles, history, now, emit, record_unnotified, prepare, settle
    )
    warned = early_warning.emit_warnings(
        store, warnings, evaluations, now, emit, inputs_by_product, prepare, settle
    )
    early_warning.decide(store, to_warn.undecided, now)
    return TickResult(
        as_of=now,
        slos=len(targets),
        new_slos=new_slos,
        new_cycles=new_cycles,
        changes=withdrawals
        + tuple(transition for transition in changes if transition.after is not transition.record.status),
        unknown=tuple(
            CycleTransition(evaluation.record, evaluation.result.status, evaluation.result.reason)
            for evaluation in recorded
            if evaluation.result.status is CycleStatus.UNKNOWN
            # Permanently unknown cycles are reported only once.
            if evaluation.evidence is None
            or not evaluation.evidence.settled
            or evaluation.record.status is not CycleStatus.UNKNOWN
        ),
        open_cycles=sum(1 for evaluation in recorded if evaluation.result.status in OPEN),
        warned=warned,
    )


def _enumerate(
    store: Store,
    targets: Sequence[WatchTarget],
    roots: Mapping[Key, str],
    now: datetime,
    start: datetime,
    unchanged_contracts: Collection[str],
) -> tuple[int, int]:
    """Insert a row for every cycle that came due since the last tick; return the numbers of new SLOs and
    cycles.
    """
    with store.read() as tx:
        watermarks, stored_roots = cycle_store.watched_through(tx), cycle_store.watched_roots(tx)
    due: list[tuple[Slo, list[Cycle]]] = []
    changed_roots: dict[Key, str] = {}
    for target in targets:
        watermark, root = watermarks.get(target.slo.key), roots[target.slo.key]
        new_cycles = list(target.slo.cycles(watermark or start, now))
        if stored_roots.get(target.slo.key) != root:
            changed_roots[target.slo.key] = root
        if new_cycles or watermark is None:
            due.append((target.slo, new_cycles))
    if targets or unchanged_contracts:
        # Another watcher may have inserted the same rows meanwhile.
        with store.write() as tx:
            insert_cycles(tx, due, now)
            cycle_store.save_roots(tx, changed_roots)
            cycle_store.advance_watermarks(
                tx, [target.slo.key for target in targets], unchanged_contracts, now
            )
    return sum(target.slo.key not in watermarks for target in targets), sum(len(cycles) for _, cycles in due)


def _with_excuse(record: CycleRecord, excuses: Mapping[tuple[Key, datetime], Excuse]) -> CycleRecord:
    """Return the cycle with its user's excuse, which takes precedence over the calendar's."""
    cycle = record.cycle
    excuse = excuses.get((cycle.key, cycle.due_at))
    if excuse is None:
        return record
    counts_since = excuse.at if excuse.undone else None
    return replace(record, excuse="" if excuse.undone else excuse.text, counts_since=counts_since)


def _commit_evaluations(
    store: Store,
    evaluations: Sequence[CycleEvaluation],
    warned_cycles: Collection[tuple[Key, datetime]],
    history: CommitHistory,
    now: datetime,
    emit: EmitEvent,
    record_unnotified: Callable[[Connection, Sequence[UnnotifiedMiss]], object],
    prepare: Callable[[Collection[Contract]], object],
    settle: Callable[[Connection], object],
) -> list[CycleTransition]:
    outages = list(notify.outage_breaches(evaluations, now, SETTLE))
    changed = [
        (evaluation, event, outage)
        for evaluation in evaluations
        for event in (turn_event(evaluation, now),)
        for outage in (notify.outage_source(evaluation),)
        if event is not None or evaluation.differs or outage != evaluation.record.blind
    ]
    if not changed and not outages and not history.has_news:
        return []
    broken = {
        evaluation.target.slo.contract.key: evaluation.target.slo.contract
        for evaluation, event, _ in changed
        if isinstance(event, Breach)
    }
    prepare(broken.values())
    with store.write() as tx:
        history.write(tx)
        for outage_breach in outages:
            emit(tx, outage_breach)
        correlated = notify.detect_correlated_misses(
            tx,
            [
                (evaluation.target, evaluation.record)
                for evaluation, event, _ in changed
                if isinstance(event, Breach)
            ],
        )
        inhibited = {
            record.id: (mass_miss.root, now + notify.INHIBIT_OWNERS_FOR)
            for mass_miss in correlated
            for record in mass_miss.cycles
        }
        for misses in correlated:
            emit(tx, notify.misses_breach(misses, now))
        updates = [
            _cycle_update(
                evaluation, outage, inhibited.get(evaluation.record.id), breach=isinstance(event, Breach)
            )
            for evaluation, event, outage in changed
        ]
        updated_ids = apply_updates(tx, updates, now)
        committed = [
            (evaluation, None if evaluation.record.id in inhibited else event)
            for evaluation, event, _ in changed
            if evaluation.record.id in updated_ids
        ]
        with_event = [(evaluation, event) for evaluation, event in committed if event is not None]
        budget_slos = {
            evaluation.target.slo.key: evaluation.target.slo
            for evaluation, _ in committed
            if evaluation.record.id not in inhibited
            and (
                evaluation.result.status.good or evaluation.result.status.bad or evaluation.record.status.bad
            )
        }
        current_budgets = budgets(
            tx, [*budget_slos.values(), *(evaluation.target.slo for evaluation, _ in with_event)], now
        )
        for evaluation, event in with_event:
            slo, cycle = evaluation.target.slo, evaluation.record.cycle
            recent = (
                cycle_store.recent_deliveries(tx, slo.key, cycle.due_at) if isinstance(event, Breach) else []
            )
            background = background_facts(
                slo, recent, current_budgets[slo.key], is_breach=isinstance(event, Breach)
            )
            emit(tx, replace(event, facts=(*event.facts, *background)))
        emit_budget_events(tx, budget_slos.values(), current_budgets, now, emit)
        transitions = [
            CycleTransition(evaluation.record, evaluation.result.status, evaluation.result.reason)
            for evaluation, _ in committed
        ]
        emit_platform_recoveries(tx, transitions, now, emit)
        unnotified = [
            UnnotifiedMiss(evaluation.target.slo, evaluation.record, evaluation.result)
            for evaluation, _ in committed
            if evaluation.result.status in _ENDED_BADLY
            and evaluation.result.status is not evaluation.record.status
            and not evaluation.record.notified
            # People were notified by the early warning, whose incident ends with the outcome.
            and (evaluation.record.cycle.key, evaluation.record.cycle.due_at) not in warned_cycles
        ]
        if unnotified:
            record_unnotified(tx, unnotified)
        settle(tx)
    return transitions


def _cycle_update(
    evaluation: CycleEvaluation, outage: str | None, inhibition: tuple[str, datetime] | None, *, breach: bool
) -> CycleUpdate:
    notified = (evaluation.record.notified and not evaluation.revoked) or (breach and inhibition is None)
    return CycleUpdate(
        evaluation.record,
        evaluation.result,
        evaluation.evidence,
        notified=notified,
        outage_source=outage,
        inhibition=inhibition,
        look_again_at=evaluation.look_again_at,
        gone_since=evaluation.gone_since,
        anew_at=evaluation.rewritten_at,
    )
