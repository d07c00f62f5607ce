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


_UNITS = ("ratio", "cycles", "seconds", "messages")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. `help` is said in the exposition; `series` is how many there are, in words."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    series: str = "1"
    kind: MetricKind = MetricKind.GAUGE

    @property
    def unit(self) -> str:
        """The last word of the name, where that is a unit; else empty."""
        last = self.name.rpartition("_")[2]
        return last if last in _UNITS else ""


SLO = ("product", "contract", "object", "slo")
_EACH = "one per promise"
_CHANNEL = "one per channel"

TABLE: tuple[MetricRow, ...] = (
    MetricRow("dq_slo_objective_ratio", "Promised share of deliveries in time.", SLO, _EACH),
    MetricRow(
        "dq_slo_attainment_ratio",
        "Share of deliveries in time over the promise's window. Absent where none counted yet.",
        SLO,
        _EACH,
    ),
    MetricRow(
        "dq_error_budget_allowed_cycles", "Deliveries of the window that may be late or missing.", SLO, _EACH
    ),
    MetricRow(
        "dq_error_budget_remaining_cycles",
        "Allowed late or missing deliveries that are not used yet. Below zero, the budget is exhausted.",
        SLO,
        _EACH,
    ),
    MetricRow("dq_watched_slos", "Promises that the watcher knows."),
    MetricRow(
        "dq_open_cycles",
        "Deliveries that are missing, and those that could not be seen (unknown).",
        ("status",),
        "2",
    ),
    MetricRow(
        "dq_open_incidents",
        "Incidents that are not resolved.",
        ("severity", "state"),
        "12: four severities, three states",
    ),
    MetricRow(
        "dq_last_tick_timestamp_seconds",
        "When 'dq watch' last judged, in Unix time. Absent before the first time.",
    ),
    MetricRow(
        "dq_last_tick_age_seconds",
        "Time since 'dq watch' last judged, when this was written. Absent before the first time.",
    ),
    MetricRow(
        "dq_last_complete_tick_timestamp_seconds",
        "When 'dq watch' last judged everything and left no message unsent, in Unix time. "
        "Absent before the first time.",
    ),
    MetricRow(
        "dq_outbox_waiting_messages",
        "Messages that should be there by now and are not.",
        ("channel",),
        _CHANNEL,
    ),
    MetricRow(
        "dq_outbox_oldest_age_seconds",
        "Age of the oldest waiting message, when this was written; 0 where none waits.",
        ("channel",),
        _CHANNEL,
    ),
    MetricRow(
        "dq_outbox_refused_messages",
        "Messages that the channel refused or that were given up.",
        ("channel",),
        _CHANNEL,
    ),
    MetricRow(
        "dq_send_latency_seconds",
        "From the record of a breach to the channel's answer that its message is there.",
        ("channel",),
        "15 per channel",
        MetricKind.HISTOGRAM,
    ),
    MetricRow(
        "dq_build",
        "Release of dq that wrote this, and the schema of the store that it reads.",
        ("version", "schema"),
        kind=MetricKind.INFO,
    ),
    MetricRow(
        "dq_store_up",
        "1 where the state store could be read; 0 where not, and then only this and dq_build are here.",
    ),
    MetricRow("dq_metrics_read_duration_seconds", "How long reading the store for this took."),
)

BUCKETS = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds in seconds; within 120 most breaches should be told."""
