"""Metrics in the Prometheus text format: collection, rendering and HTTP endpoint."""

from __future__ import annotations

import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from ipaddress import ip_address
from itertools import accumulate
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from dq.alerts import metrics as alert_metrics
from dq.contracts.escaping import prometheus_label
from dq.contracts.install import NAME
from dq.contracts.outcome import StoreError, UsageError
from dq.dataquality.alarms import alarm_counts
from dq.dataquality.delivery import compliance, early_warning, heartbeat
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.registry.table_coverage import last_run
from dq.store.engine import head, open_without_migrating

# The metrics: TABLE, one row each. docs/reference/metrics.md is written from it.
#
# Names follow prometheus.io/docs/practices/naming: `dq_`, base units, the unit last.


class MetricKind(StrEnum):
    """Prometheus metric types; `info` is a gauge of 1 in the older format."""

    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_UNITS = ("ratio", "cycles", "seconds", "messages", "tables")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. `help` is its HELP text; `series` describes the number of series."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    series: str = "1"
    kind: MetricKind = MetricKind.GAUGE

    @property
    def unit(self) -> str:
        """Unit at the end of the name, or "" if there is none."""
        last = self.name.rpartition("_")[2]
        return last if last in _UNITS else ""


SLO = ("product", "contract", "object", "slo")
_PER_PROMISE = "one per SLO"
_PER_CHANNEL = "one per channel"

TABLE: tuple[MetricRow, ...] = (
    MetricRow("dq_slo_objective_ratio", "Objective: share of deliveries on time.", SLO, _PER_PROMISE),
    MetricRow(
        "dq_slo_attainment_ratio",
        "Share of deliveries on time in the SLO window. Absent if none counted yet.",
        SLO,
        _PER_PROMISE,
    ),
    MetricRow(
        "dq_error_budget_allowed_cycles",
        "Deliveries in the window that may be late or missing.",
        SLO,
        _PER_PROMISE,
    ),
    MetricRow(
        "dq_error_budget_remaining_cycles",
        "Remaining late or missing deliveries allowed. Below zero if the error budget is exhausted.",
        SLO,
        _PER_PROMISE,
    ),
    MetricRow("dq_watched_slos", "SLOs watched."),
    MetricRow("dq_at_risk_cycles", "Deliveries with an early warning that have not arrived or breached yet."),
    MetricRow(
        "dq_early_warnings_cycles",
        "Deliveries with early warnings turned on whose outcome is known, within the retention of cycles.",
        ("outcome",),
        "3: warned_late, warned_on_time, late_without_warning",
    ),
    MetricRow(
        "dq_open_cycles",
        "Deliveries that are missing or unknown (evidence not readable).",
        ("status",),
        "2",
    ),
    MetricRow(
        "dq_open_incidents",
        "Unresolved incidents.",
        ("severity", "state"),
        "12: four severities, three states",
    ),
    MetricRow(
        "dq_last_tick_timestamp_seconds",
        "Unix time of the last dq watch run; absent before the first.",
    ),
    MetricRow(
        "dq_last_tick_age_seconds",
        "Seconds from the last dq watch run to this export; absent before the first.",
    ),
    MetricRow(
        "dq_last_complete_tick_timestamp_seconds",
        "Unix time of the last dq watch run that evaluated everything and left no alert unsent; "
        "absent before the first.",
    ),
    MetricRow(
        "dq_outbox_waiting_messages",
        "Alerts that are due and not delivered.",
        ("channel",),
        _PER_CHANNEL,
    ),
    MetricRow(
        "dq_outbox_oldest_age_seconds",
        "Age of the oldest pending alert at this export; 0 if none is pending.",
        ("channel",),
        _PER_CHANNEL,
    ),
    MetricRow(
        "dq_outbox_refused_messages",
        "Alerts rejected by the channel or given up.",
        ("channel",),
        _PER_CHANNEL,
    ),
    MetricRow(
        "dq_send_latency_seconds",
        "Time from recording a breach to the channel's confirmation of its alert.",
        ("channel",),
        "15 per channel",
        MetricKind.HISTOGRAM,
    ),
    MetricRow(
        "dq_unusual_alarms",
        "Alarms of the check unusual by answer: real, not_real, or none yet.",
        ("contract", "object", "answer"),
        "three per table with an alarm",
    ),
    MetricRow(
        "dq_discovered_tables",
        "Tables counted by the last dq discover: with a contract in force, a draft, or none. "
        "Absent before the first, and if it is older than 8 days.",
        ("domain", "contract"),
        "three per domain",
    ),
    MetricRow(
        "dq_last_discovery_timestamp_seconds",
        "Unix time of the last dq discover; absent before the first.",
    ),
    MetricRow(
        "dq_build",
        "Version of dq, and schema version of its store.",
        ("version", "schema"),
        kind=MetricKind.INFO,
    ),
    MetricRow(
        "dq_store_up",
        "1 if the state store could be read; if 0, only this and dq_build are exported.",
    ),
    MetricRow("dq_metrics_read_duration_seconds", "Time taken to read the store for this export."),
)

BUCKETS = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds in seconds; most notifications should be sent within 120."""


# Samples as text: the format of Prometheus 0.0.4, and OpenMetrics 1.0 (github.com/prometheus/OpenMetrics).
#
# Label values come from contracts, so everything that could end a value or a line is escaped.

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class MetricSample:
    """Label values of a metric, in order, and its value; for a histogram, all observations."""

    labels: tuple[str, ...]
    value: Number | Sequence[float]


def render(samples: Mapping[str, Iterable[MetricSample]], *, openmetrics: bool = False) -> bytes:
    """Render all metrics in the order of TABLE; metrics without samples are omitted."""
    lines: list[str] = []
    for row in TABLE:
        row_samples = list(samples.get(row.name, ()))
        if row_samples:
            lines += _header(row, openmetrics)
            for sample in row_samples:
                lines += _lines(row, sample)
    if openmetrics:
        lines.append("# EOF")
    # A name may contain a lone surrogate, which UTF-8 cannot encode.
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _header(row: MetricRow, openmetrics: bool) -> Iterator[str]:
    is_info = row.kind is MetricKind.INFO
    name = f"{row.name}_info" if is_info and not openmetrics else row.name
    yield f"# HELP {name} {_help(row.help)}"
    yield f"# TYPE {name} {MetricKind.GAUGE if is_info and not openmetrics else row.kind}"
    # The older format has no UNIT line.
    if row.unit and openmetrics:
        yield f"# UNIT {name} {row.unit}"


def _lines(row: MetricRow, sample: MetricSample) -> Iterator[str]:
    if isinstance(sample.value, int | float | Fraction):
        name = f"{row.name}_info" if row.kind is MetricKind.INFO else row.name
        yield f"{name}{_labels(row.labels, sample.labels)} {_number(sample.value)}"
        return
    per_bucket = [0] * (len(BUCKETS) + 1)
    for seconds in sample.value:
        per_bucket[bisect_left(BUCKETS, seconds)] += 1
    bounds = [*(_number(float(bound)) for bound in BUCKETS), "+Inf"]
    for bound, count in zip(bounds, accumulate(per_bucket), strict=True):
        yield f"{row.name}_bucket{_labels((*row.labels, 'le'), (*sample.labels, bound))} {count}"
    yield f"{row.name}_sum{_labels(row.labels, sample.labels)} {_number(float(sum(sample.value)))}"
    yield f"{row.name}_count{_labels(row.labels, sample.labels)} {len(sample.value)}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{prometheus_label(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: Number) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


# Samples of all metrics, from one snapshot of the state store.

Samples = dict[str, list[MetricSample]]


def gather(context: RuntimeContext) -> Samples:
    """Collect the current samples of all metrics, read-only.

    Raises StoreError if the store cannot be read.
    """
    began, now = time.monotonic(), context.now()
    store = open_without_migrating(context.store_url())
    try:
        with store.read() as tx:
            samples = {
                **_promises(tx, now),
                **_ticks(tx, now, context.as_of),
                **_alerts(tx, now),
                **_discovery(tx, now),
                **_unusual(tx, now),
            }
    finally:
        store.close()
    return {
        **samples,
        **_build(),
        "dq_store_up": [MetricSample((), 1)],
        "dq_metrics_read_duration_seconds": [MetricSample((), time.monotonic() - began)],
    }


def metrics(*, folder: Path | str | None = None, now: datetime | None = None) -> str:
    """Return the metrics in the Prometheus text format, as `dq metrics` prints them.

    They are read from the state store alone. `folder` replaces the working folder; `now` is an aware instant.

    Raises StoreError if the store cannot be read.
    """
    context, _ = call_context(None, folder, now)
    return render(gather(context)).decode()


def gather_or_down(context: RuntimeContext) -> tuple[Samples, StoreError | None]:
    """Return as `gather`; if the store cannot be read, return `dq_store_up` 0 and the error."""
    try:
        return gather(context), None
    except StoreError as error:
        return {**_build(), "dq_store_up": [MetricSample((), 0)]}, error


def _build() -> Samples:
    return {"dq_build": [MetricSample((version(NAME), head()), 1)]}


def _promises(tx: Connection, now: datetime) -> Samples:
    samples: Samples = {
        "dq_slo_objective_ratio": [],
        "dq_slo_attainment_ratio": [],
        "dq_error_budget_allowed_cycles": [],
        "dq_error_budget_remaining_cycles": [],
    }
    for tally in compliance.tallies(tx, now):
        labels = (tally.product, tally.contract, tally.object, tally.slo)
        samples["dq_slo_objective_ratio"].append(MetricSample(labels, tally.objective))
        if tally.attainment is not None:
            samples["dq_slo_attainment_ratio"].append(MetricSample(labels, tally.attainment))
        samples["dq_error_budget_allowed_cycles"].append(MetricSample(labels, tally.allowed))
        samples["dq_error_budget_remaining_cycles"].append(MetricSample(labels, tally.allowed - tally.bad))
    return {
        **samples,
        "dq_watched_slos": [MetricSample((), len(samples["dq_slo_objective_ratio"]))],
        "dq_at_risk_cycles": [MetricSample((), early_warning.count_at_risk(tx))],
        "dq_early_warnings_cycles": [
            MetricSample((outcome,), count) for outcome, count in early_warning.count_outcomes(tx).items()
        ],
        "dq_open_cycles": [
            MetricSample((status.value,), count) for status, count in compliance.count_open(tx).items()
        ],
    }


def _ticks(tx: Connection, now: datetime, as_of: datetime | None) -> Samples:
    last, complete = heartbeat.last_tick(tx, as_of=as_of), heartbeat.last_tick(tx, heartbeat.COMPLETE, as_of)
    samples: Samples = {}
    if last is not None:
        samples["dq_last_tick_timestamp_seconds"] = [MetricSample((), last.timestamp())]
        samples["dq_last_tick_age_seconds"] = [MetricSample((), (now - last).total_seconds())]
    if complete is not None:
        samples["dq_last_complete_tick_timestamp_seconds"] = [MetricSample((), complete.timestamp())]
    return samples


def _unusual(tx: Connection, now: datetime) -> Samples:
    counts_by_table = alarm_counts(tx, now)
    return {
        "dq_unusual_alarms": [
            MetricSample((*table, answer), count)
            for table, counts in sorted(counts_by_table.items())
            for answer, count in (
                ("real", counts.real),
                ("not_real", counts.not_real),
                ("none", counts.unanswered),
            )
        ]
    }


def _discovery(tx: Connection, now: datetime) -> Samples:
    run = last_run(tx, now)
    if run is None:
        return {}
    samples = {"dq_last_discovery_timestamp_seconds": [MetricSample((), run.at.timestamp())]}
    if not run.is_stale(now):
        samples["dq_discovered_tables"] = [
            MetricSample((coverage.name, contract), count)
            for coverage in run.domains
            for contract, count in (
                ("in force", coverage.covered),
                ("draft", coverage.drafts),
                ("none", coverage.uncovered),
            )
        ]
    return samples


def _alerts(tx: Connection, now: datetime) -> Samples:
    backlog = alert_metrics.backlog(tx, now)
    return {
        "dq_open_incidents": [
            MetricSample((severity.value, state), count)
            for (severity, state), count in alert_metrics.open_incidents(tx, now).items()
        ],
        "dq_outbox_waiting_messages": _per_channel((name, entry.overdue) for name, entry in backlog.items()),
        "dq_outbox_oldest_age_seconds": _per_channel(
            (name, entry.oldest.total_seconds()) for name, entry in backlog.items()
        ),
        "dq_outbox_refused_messages": _per_channel((name, entry.dead) for name, entry in backlog.items()),
        "dq_send_latency_seconds": [
            MetricSample((name,), seconds) for name, seconds in sorted(alert_metrics.latencies(tx).items())
        ],
    }


def _per_channel(values: Iterable[tuple[str, int | float]]) -> list[MetricSample]:
    return [MetricSample((name,), value) for name, value in values]


# The scrape endpoint: GET /metrics, on the loopback by default.
#
# It has no authentication, so it is limited: few concurrent requests with a timeout, one read of the store
# shared for some seconds, and on the loopback a check of the Host header against DNS rebinding.

MAX_CONCURRENT_REQUESTS = 8
"""Limit of concurrent requests; further connections are closed."""

REQUEST_SECONDS = 10
FRESH_SECONDS = 5.0
_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Address to listen on. `is_local`: not reachable from other machines."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """True if it is a loopback address; of host names, only `localhost` counts."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """True if a host, as written in a URL, is the loopback."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_address(text: str, *, anywhere: bool = False) -> ListenAddress:
    """Parse `host:port`, with an IPv6 host in brackets.

    Raises UsageError if it is invalid, or reachable from other machines without `anywhere`.
    """
    host, colon, port = text.rpartition(":")
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and plain and port.isascii() and port.isdigit() and int(port) < 65536) or (
        ":" in plain and plain == host
    ):
        raise UsageError(f"{text!r} is not an address.", "Use e.g. 127.0.0.1:9464, or [::1]:9464.")
    listen_address = ListenAddress(plain, int(port))
    if not listen_address.is_local and not anywhere:
        raise UsageError(
            f"{text!r} is reachable from other machines, without authentication.",
            "Listen on 127.0.0.1, or pass --any-address if it is behind a firewall or a proxy.",
        )
    return listen_address


@dataclass(slots=True)
class FreshSamples:
    """Cached samples, re-read by one thread when older than FRESH_SECONDS."""

    read: Callable[[], Samples]
    lock: threading.Lock = field(default_factory=threading.Lock)
    read_at: float = float("-inf")
    samples: Samples = field(default_factory=dict)

    def now(self) -> Samples:
        """Return the samples, at most FRESH_SECONDS old."""
        with self.lock:
            if time.monotonic() - self.read_at > FRESH_SECONDS:
                self.samples = self.read()
                self.read_at = time.monotonic()
            return self.samples


class MetricsServer(ThreadingHTTPServer):
    """Serves the samples of `read`; listens from construction. Raises UsageError if it cannot listen."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        listen_address: ListenAddress,
        read: Callable[[], Samples],
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in listen_address.host else socket.AF_INET
        self.local, self.request_seconds = listen_address.is_local, request_seconds
        self.samples = FreshSamples(read)
        self.slots = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
        try:
            super().__init__((listen_address.host, listen_address.port), _Handler)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such address"
            raise UsageError(
                f"dq cannot listen on {listen_address.host}:{listen_address.port}: {reason}.",
                "Choose another --listen.",
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection in a thread, or close it if the limit is reached."""
        if not self.slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection and release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or time out."""


def metrics_server(
    listen: str,
    report: Callable[[StoreError], object],
    *,
    anywhere: bool = False,
    now: datetime | None = None,
) -> MetricsServer:
    """Return a metrics server at `host:port`; `report` gets each new error of reading the store.

    Raises as `parse_address` and `MetricsServer`.
    """
    context, _ = call_context(None, None, now)
    reported = ""

    def read() -> Samples:
        nonlocal reported
        samples, error = gather_or_down(context)
        message = error.message if error else ""
        if error and message != reported:
            report(error)
        reported = message
        return samples

    return MetricsServer(parse_address(listen, anywhere=anywhere), read)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "dq"
    sys_version = ""

    def setup(self) -> None:
        """Set the timeout of the connection."""
        super().setup()
        self.connection.settimeout(self.server.request_seconds)

    def do_GET(self) -> None:
        """Return the metrics in the requested format."""
        host = self.headers.get("Host", "")
        # DNS rebinding: a web page can make the browser request this machine under the page's host name.
        if self.server.local and host and not is_loopback(_without_port(host)):
            self._respond(HTTPStatus.FORBIDDEN, _PLAIN, b"Ask for it by a name of this machine's loopback.\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._respond(HTTPStatus.NOT_FOUND, _PLAIN, b"The figures are at /metrics.\n")
        else:
            is_openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
            body = render(self.server.samples.now(), openmetrics=is_openmetrics)
            self._respond(HTTPStatus.OK, OPENMETRICS_TYPE if is_openmetrics else PROMETHEUS_TYPE, body)

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _respond(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are not trusted."""


def _without_port(host: str) -> str:
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
