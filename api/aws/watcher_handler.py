"""`dq.aws.handler`: `dq watch` in AWS Lambda, for schedules, object events of S3, and ticks.

Needs the extras `aws` and `postgres`: in Lambda, the store is in PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dq.aws.events import Promise, Tick, read_event
from dq.contracts.outcome import ReadError, UsageError
from dq.dataquality.delivery.cycle import SETTLE
from dq.dataquality.delivery.probe_pool import ProbePool
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.object_events import ObjectEvent, Tables, event_tables, record_object_events
from dq.operations.registry_files import load
from dq.operations.runtime.context import RuntimeContext, runtime_context
from dq.operations.runtime.settings import Settings
from dq.operations.watch import (
    PromiseVerdicts,
    WatchOutcome,
    WatchRequest,
    heartbeat_url,
    run_tick,
    send_alerts,
    send_heartbeat,
    verdicts,
)
from dq.store.engine import Store

__all__ = ["handler"]

_REGISTRY = "registry"
# An evaluation that is a moment early, or that finds a breach, is repeated: alerts wait for SETTLE.
_LONGEST_WAIT = SETTLE + timedelta(seconds=30)
_AFTER = timedelta(milliseconds=100)
# Left of the function's time for a tick.
_RESERVE = timedelta(seconds=30)
# The first evaluation, one at the breach, and one for the alert.
_EVALUATIONS = 3
# The pool remembers between calls which storages do not respond.
_PROBE_POOL = ProbePool()
_TABLES: dict[tuple[Path, Path, Settings], Tables] = {}


def handler(event: object, context: Any) -> dict[str, object]:
    """Evaluate deliveries, as `dq watch` does, and return the verdicts as JSON values.

    Args:
        event: The payload of a schedule, for which only its contract is evaluated; object events of S3, which
            are recorded as evidence, and for which contracts are evaluated that wait for the object's
            partition; or `{"tick": true}` for all contracts. Events can be in messages of SNS and SQS.
        context: Lambda's context; its remaining time limits how long an alert is waited for, and how many
            contracts are evaluated. Without one, e.g. None, no alert is waited for, and all are evaluated.

    Returns:
        `verdicts` of each evaluated contract, `ticks`, numbers of `recorded` and `ignored` object events,
        `deferred` contracts, whose object events are recorded and which the next tick evaluates because the
        function's time ends, and for SQS `batchItemFailures`.

    Raises:
        UsageError: The event is not understood, or a setting is missing.
        ReadError: The contract of a schedule cannot be read.
        StoreError: The store cannot be read. Lambda repeats such a call, which changes nothing twice.
    """
    messages, deadline = read_event(event), _deadline(context)
    requests = [request for message in messages for request in message.requests]
    failures = [{"itemIdentifier": message.id} for message in messages if message.error is not None]
    runtime, registry = _runtime()
    answer: dict[str, object] = {"verdicts": [], "ticks": [], "recorded": 0, "ignored": 0, "deferred": []}
    with closing(runtime.store()) as store:
        watcher = _Watcher(store, registry, deadline)
        objects = [request for request in requests if isinstance(request, ObjectEvent)]
        waiting: tuple[str, ...] = ()
        if objects:
            recorded = record_object_events(runtime, store, _load_tables(runtime, store, registry), objects)
            answer |= {"recorded": recorded.recorded, "ignored": recorded.ignored}
            waiting = recorded.waiting
        promised = dict.fromkeys(request.contract for request in requests if isinstance(request, Promise))
        if any(isinstance(request, Tick) for request in requests):
            watcher.tick(None)
        watcher.watch(dict.fromkeys((*promised, *waiting)), promised)
        answer |= {"verdicts": watcher.verdicts, "ticks": watcher.ticks, "deferred": watcher.deferred}
    if any(message.id for message in messages):
        answer["batchItemFailures"] = failures
    return answer


class _Watcher:
    """Ticks of one call, and their results as JSON values."""

    def __init__(self, store: Store, registry: Path, deadline: float | None) -> None:
        self._store, self._registry, self._deadline = store, registry, deadline
        self.verdicts: list[dict[str, object]] = []
        self.ticks: list[dict[str, object]] = []
        self.deferred: list[str] = []

    def watch(self, contracts: Iterable[str], promised: Collection[str]) -> None:
        """Evaluate contracts; the `promised` ones again when a breach is certain and its alert is due."""
        current: dict[str, PromiseVerdicts] = {}
        pending = list(contracts)
        for _ in range(_EVALUATIONS):
            for contract in pending:
                if contract not in promised and self._deadline is not None and self._remaining() <= 0:
                    self.deferred.append(contract)
                else:
                    current[contract] = verdicts(self.tick(contract), self._store, contract)
            pending = [
                contract for contract in pending if contract in promised and self._is_soon(current[contract])
            ]
            times = [at for contract in pending if (at := current[contract].next_at) is not None]
            if not times:
                break
            time.sleep(max(_seconds_until(max(times)), 0))
        self.verdicts += [verdict for standing in current.values() for verdict in standing.as_dicts()]

    def _is_soon(self, standing: PromiseVerdicts) -> bool:
        """Return whether the function lives until the next evaluation."""
        longest = min(_LONGEST_WAIT.total_seconds(), self._remaining())
        return standing.next_at is not None and _seconds_until(standing.next_at) <= longest

    def _remaining(self) -> float:
        """Return the seconds until a tick could be too late to end, 0 without a deadline."""
        if self._deadline is None:
            return 0.0
        return self._deadline - time.monotonic() - _RESERVE.total_seconds()

    def tick(self, contract: str | None) -> RuntimeContext:
        """Run one tick with a context of its own, and send its alerts."""
        runtime, _ = _runtime()
        heartbeat_url(runtime)
        request = WatchRequest((self._registry,), contract=contract)
        pool = _PROBE_POOL.for_tick(runtime.settings.storage_seconds)
        outcome = send_alerts(runtime, self._store, request, run_tick(runtime, self._store, request, pool))
        if outcome.refused is not None:
            raise ReadError(
                f"nothing was evaluated: {outcome.refused}.",
                "Check the clocks of the function and the database.",
            )
        if contract is None:
            send_heartbeat(runtime, self._store, outcome)
        self.ticks.append(_as_dict(runtime, outcome))
        return runtime


def _as_dict(runtime: RuntimeContext, outcome: WatchOutcome) -> dict[str, object]:
    messages = {"alerts": runtime.messages.alerts, "notes": runtime.messages.notes}
    return {**outcome.as_dict(), "exit_code": outcome.exit_code, **messages}


def _seconds_until(instant: datetime) -> float:
    return (instant + _AFTER - datetime.now(UTC)).total_seconds()


def _runtime() -> tuple[RuntimeContext, Path]:
    """Return the context of a tick, and the registry. Raises UsageError in Lambda without a shared store."""
    registry = Path(runtime_context().settings.watch_registry or _REGISTRY)
    runtime = runtime_context(paths=[registry])
    # Lambda sets this variable. On a machine of its own, e.g. in `dq demo --aws`, SQLite outlives a call.
    is_in_lambda = "AWS_LAMBDA_FUNCTION_NAME" in runtime.environment
    if is_in_lambda and not runtime.settings.store_url.startswith("postgresql"):
        raise UsageError(
            "dq.aws.handler needs a store that outlives the function.",
            "Set DQ_STORE_URL to a PostgreSQL database.",
        )
    return runtime, registry


def _deadline(context: Any) -> float | None:
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return None if remaining is None else time.monotonic() + remaining() / 1000


def _load_tables(runtime: RuntimeContext, store: Store, registry: Path) -> Tables:
    """Return the tables of the registry, which is read once: the code of a function does not change."""
    key = (runtime.folder, registry, runtime.settings)
    if key not in _TABLES:
        loaded = resolve_key_owners(runtime, store, load([registry], runtime.note), [registry])
        _TABLES[key] = event_tables(runtime, loaded.contracts)
    return _TABLES[key]
