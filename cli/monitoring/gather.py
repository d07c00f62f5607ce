"""The samples of all metrics, from one snapshot of the state store."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import version

from sqlalchemy import Connection

from dq.alerts import metrics
from dq.cli.monitoring.exposition import MetricSample
from dq.cli.world.environment import World
from dq.contracts.shared.install import NAME
from dq.contracts.shared.outcome import StoreError
from dq.dataquality.delivery import heartbeat
from dq.dataquality.delivery.history import compliance
from dq.store.engine import open_as_it_is
from dq.store.version import head

Samples = dict[str, list[MetricSample]]


def gather(world: World) -> Samples:
    """Every metric as it is now. The store is only read. Raises StoreError where it cannot be."""
    began, now = time.monotonic(), world.now()
    store = open_as_it_is(world.store_url())
    try:
        with store.read() as tx:
            found = {**_promises(tx, now), **_ticks(tx, now, world.as_of), **_alerts(tx, now)}
    finally:
        store.close()
    return {
        **found,
        **_build(),
        "dq_store_up": [MetricSample((), 1)],
        "dq_metrics_read_duration_seconds": [MetricSample((), time.monotonic() - began)],
    }


def gather_or_down(world: World) -> tuple[Samples, StoreError | None]:
    """The same; where the store cannot be read, that as a figure, and why."""
    try:
        return gather(world), None
    except StoreError as error:
        return {**_build(), "dq_store_up": [MetricSample((), 0)]}, error


def _build() -> Samples:
    return {"dq_build": [MetricSample((version(NAME), head()), 1)]}


def _promises(tx: Connection, now: datetime) -> Samples:
    found: Samples = {
        "dq_slo_objective_ratio": [],
        "dq_slo_attainment_ratio": [],
        "dq_error_budget_allowed_cycles": [],
        "dq_error_budget_remaining_cycles": [],
    }
    for one in compliance.tallies(tx, now):
        labels = (one.product, one.contract, one.object, one.slo)
        found["dq_slo_objective_ratio"].append(MetricSample(labels, one.objective))
        if one.attainment is not None:
            found["dq_slo_attainment_ratio"].append(MetricSample(labels, one.attainment))
        found["dq_error_budget_allowed_cycles"].append(MetricSample(labels, one.allowed))
        found["dq_error_budget_remaining_cycles"].append(MetricSample(labels, one.allowed - one.bad))
    return {
        **found,
        "dq_watched_slos": [MetricSample((), len(found["dq_slo_objective_ratio"]))],
        "dq_open_cycles": [
            MetricSample((status.value,), count) for status, count in compliance.still_open(tx).items()
        ],
    }


def _ticks(tx: Connection, now: datetime, as_of: datetime | None) -> Samples:
    last, complete = heartbeat.last_tick(tx, as_of=as_of), heartbeat.last_tick(tx, heartbeat.COMPLETE, as_of)
    found: Samples = {}
    if last is not None:
        found["dq_last_tick_timestamp_seconds"] = [MetricSample((), last.timestamp())]
        found["dq_last_tick_age_seconds"] = [MetricSample((), (now - last).total_seconds())]
    if complete is not None:
        found["dq_last_complete_tick_timestamp_seconds"] = [MetricSample((), complete.timestamp())]
    return found


def _alerts(tx: Connection, now: datetime) -> Samples:
    backlog = metrics.backlog(tx, now)
    return {
        "dq_open_incidents": [
            MetricSample((severity.value, state), count)
            for (severity, state), count in metrics.open_incidents(tx, now).items()
        ],
        "dq_outbox_waiting_messages": _per_channel((name, one.owed) for name, one in backlog.items()),
        "dq_outbox_oldest_age_seconds": _per_channel(
            (name, one.oldest.total_seconds()) for name, one in backlog.items()
        ),
        "dq_outbox_refused_messages": _per_channel((name, one.dead) for name, one in backlog.items()),
        "dq_send_latency_seconds": [
            MetricSample((name,), seconds) for name, seconds in sorted(metrics.latencies(tx).items())
        ],
    }


def _per_channel(values: Iterable[tuple[str, int | float]]) -> list[MetricSample]:
    return [MetricSample((name,), value) for name, value in values]
