"""The metrics: TABLE, one row each. docs/reference/metrics.md is written from it.

Names follow prometheus.io/docs/practices/naming: `dq_`, base units, the unit last.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """The types of Prometheus that are used here; `info` is a gauge of 1 in its older format."""

    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. `help` is said in the exposition; `series` is how many there are, in words."""

    name: str
    kind: MetricKind
    unit: str
    labels: tuple[str, ...]
    help: str
    series: str


SLO = ("product", "contract", "object", "slo")
_EACH = "one per promise"
_CHANNEL = "one per channel"

TABLE: tuple[MetricRow, ...] = (
    MetricRow(
        "dq_slo_objective_ratio",
        MetricKind.GAUGE,
        "ratio",
        SLO,
        "Promised share of deliveries in time.",
        _EACH,
    ),
    MetricRow(
        "dq_slo_attainment_ratio",
        MetricKind.GAUGE,
        "ratio",
        SLO,
        "Share of deliveries in time over the promise's window. Absent where none counted yet.",
        _EACH,
    ),
    MetricRow(
        "dq_error_budget_allowed_cycles",
        MetricKind.GAUGE,
        "cycles",
        SLO,
        "Deliveries of the window that may be late or missing.",
        _EACH,
    ),
    MetricRow(
        "dq_error_budget_remaining_cycles",
        MetricKind.GAUGE,
        "cycles",
        SLO,
        "Allowed late or missing deliveries that are not used yet. Below zero, the budget is exhausted.",
        _EACH,
    ),
    MetricRow("dq_watched_slos", MetricKind.GAUGE, "", (), "Promises that the watcher knows.", "1"),
    MetricRow(
        "dq_open_cycles",
        MetricKind.GAUGE,
        "cycles",
        ("status",),
        "Deliveries that are missing, and those that could not be seen (unknown).",
        "2",
    ),
    MetricRow(
        "dq_open_incidents",
        MetricKind.GAUGE,
        "",
        ("severity", "state"),
        "Incidents that are not resolved.",
        "12: four severities, three states",
    ),
    MetricRow(
        "dq_last_tick_timestamp_seconds",
        MetricKind.GAUGE,
        "seconds",
        (),
        "When 'dq watch' last judged, in Unix time. Absent before the first time.",
        "1",
    ),
    MetricRow(
        "dq_last_tick_age_seconds",
        MetricKind.GAUGE,
        "seconds",
        (),
        "Time since 'dq watch' last judged, when this was written. Absent before the first time.",
        "1",
    ),
    MetricRow(
        "dq_last_complete_tick_timestamp_seconds",
        MetricKind.GAUGE,
        "seconds",
        (),
        "When 'dq watch' last judged everything and left no message unsent, in Unix time. "
        "Absent before the first time.",
        "1",
    ),
    MetricRow(
        "dq_outbox_waiting_messages",
        MetricKind.GAUGE,
        "messages",
        ("channel",),
        "Messages that should be there by now and are not.",
        _CHANNEL,
    ),
    MetricRow(
        "dq_outbox_oldest_age_seconds",
        MetricKind.GAUGE,
        "seconds",
        ("channel",),
        "Age of the oldest waiting message, when this was written; 0 where none waits.",
        _CHANNEL,
    ),
    MetricRow(
        "dq_outbox_refused_messages",
        MetricKind.GAUGE,
        "messages",
        ("channel",),
        "Messages that the channel refused or that were given up.",
        _CHANNEL,
    ),
    MetricRow(
        "dq_send_latency_seconds",
        MetricKind.HISTOGRAM,
        "seconds",
        ("channel",),
        "From the record of a breach to the channel's answer that its message is there.",
        "15 per channel",
    ),
    MetricRow(
        "dq_build",
        MetricKind.INFO,
        "",
        ("version", "schema"),
        "Release of dq that wrote this, and the schema of the store that it reads.",
        "1",
    ),
    MetricRow(
        "dq_store_up",
        MetricKind.GAUGE,
        "",
        (),
        "1 where the state store could be read; 0 where not, and then only this and dq_build are here.",
        "1",
    ),
    MetricRow(
        "dq_metrics_read_duration_seconds",
        MetricKind.GAUGE,
        "seconds",
        (),
        "How long reading the store for this took.",
        "1",
    ),
)

BUCKETS = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds in seconds; within 120 most breaches should be told."""
