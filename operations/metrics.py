"""Metrics in the text format of Prometheus: gathered, written, served."""

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
from dq.dataquality.delivery import compliance, heartbeat
from dq.operations.runtime.context import World, called
from dq.store.engine import head, open_as_it_is

# The metrics: TABLE, one row each. docs/reference/metrics.md is written from it.
#
# Names follow prometheus.io/docs/practices/naming: `dq_`, base units, the unit last.


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


# Samples as text: the format of Prometheus 0.0.4, and OpenMetrics 1.0 (github.com/prometheus/OpenMetrics).
#
# Label values are what contracts say, so that all that could end a value or a line is escaped.

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Number = int | float | Fraction


@dataclass(frozen=True, slots=True)
class MetricSample:
    """The values of a metric's labels, in their order, and a number; of a histogram, all observations."""

    labels: tuple[str, ...]
    value: Number | Sequence[float]


def render(samples: Mapping[str, Iterable[MetricSample]], *, openmetrics: bool = False) -> bytes:
    """All metrics in the order of TABLE; one without samples is left out, as a known zero is no absence."""
    lines: list[str] = []
    for row in TABLE:
        those = list(samples.get(row.name, ()))
        if those:
            lines += _header(row, openmetrics)
            for one in those:
                lines += _lines(row, one)
    if openmetrics:
        lines.append("# EOF")
    # A name may hold half of a surrogate pair, which has no UTF-8.
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _header(row: MetricRow, openmetrics: bool) -> Iterator[str]:
    is_info = row.kind is MetricKind.INFO
    name = f"{row.name}_info" if is_info and not openmetrics else row.name
    yield f"# HELP {name} {_help(row.help)}"
    yield f"# TYPE {name} {MetricKind.GAUGE if is_info and not openmetrics else row.kind}"
    # The older format has no such line, and takes it for a comment.
    if row.unit and openmetrics:
        yield f"# UNIT {name} {row.unit}"


def _lines(row: MetricRow, one: MetricSample) -> Iterator[str]:
    if isinstance(one.value, int | float | Fraction):
        name = f"{row.name}_info" if row.kind is MetricKind.INFO else row.name
        yield f"{name}{_labels(row.labels, one.labels)} {_number(one.value)}"
        return
    per_bucket = [0] * (len(BUCKETS) + 1)
    for seconds in one.value:
        per_bucket[bisect_left(BUCKETS, seconds)] += 1
    bounds = [*(_number(float(bound)) for bound in BUCKETS), "+Inf"]
    for bound, count in zip(bounds, accumulate(per_bucket), strict=True):
        yield f"{row.name}_bucket{_labels((*row.labels, 'le'), (*one.labels, bound))} {count}"
    yield f"{row.name}_sum{_labels(row.labels, one.labels)} {_number(float(sum(one.value)))}"
    yield f"{row.name}_count{_labels(row.labels, one.labels)} {len(one.value)}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{prometheus_label(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: Number) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


# The samples of all metrics, from one snapshot of the state store.

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


def metrics(*, folder: Path | str | None = None, now: datetime | None = None) -> str:
    """The figures that Prometheus watches, in its text format, as `dq metrics` prints them.

    They come from the state store alone, which is only read. `folder` stands for the working folder; `now` is
    an aware instant.

    Raises StoreError where the store cannot be read.
    """
    world, _ = called(None, folder, now)
    return render(gather(world)).decode()


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
    backlog = alert_metrics.backlog(tx, now)
    return {
        "dq_open_incidents": [
            MetricSample((severity.value, state), count)
            for (severity, state), count in alert_metrics.open_incidents(tx, now).items()
        ],
        "dq_outbox_waiting_messages": _per_channel((name, one.owed) for name, one in backlog.items()),
        "dq_outbox_oldest_age_seconds": _per_channel(
            (name, one.oldest.total_seconds()) for name, one in backlog.items()
        ),
        "dq_outbox_refused_messages": _per_channel((name, one.dead) for name, one in backlog.items()),
        "dq_send_latency_seconds": [
            MetricSample((name,), seconds) for name, seconds in sorted(alert_metrics.latencies(tx).items())
        ],
    }


def _per_channel(values: Iterable[tuple[str, int | float]]) -> list[MetricSample]:
    return [MetricSample((name,), value) for name, value in values]


# The endpoint that Prometheus scrapes: GET /metrics, on the loopback unless the operator says otherwise.
#
# It has no password. So it is bounded: a few requests at a time, each of them short, one reading of the
# store
# for all that ask within some seconds, and on the loopback no page of a browser may ask under another name.

AT_ONCE = 8
"""So many requests are served at a time; further connections are closed."""

REQUEST_SECONDS = 10
FRESH_SECONDS = 5.0
_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen. `local`: nobody on another machine can reach it."""

    host: str
    port: int

    @property
    def local(self) -> bool:
        """Whether it is a loopback address; a name is taken for what it is only where it is `localhost`."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host, as a URL writes it, is this machine's loopback."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address(text: str, *, anywhere: bool = False) -> ListenAddress:
    """The address of `host:port`; an IPv6 host stands in brackets. Raises UsageError for any other text.

    And for an address that others can reach, unless `anywhere`.
    """
    host, colon, port = text.rpartition(":")
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and plain and port.isascii() and port.isdigit() and int(port) < 65536) or (
        ":" in plain and plain == host
    ):
        raise UsageError(f"{text!r} is no address.", "Write it like 127.0.0.1:9464, or [::1]:9464.")
    found = ListenAddress(plain, int(port))
    if not found.local and not anywhere:
        raise UsageError(
            f"{text!r} can be reached by others, and there is no password.",
            "Listen on 127.0.0.1, or say --any-address once it is behind a firewall or a proxy.",
        )
    return found


@dataclass(slots=True)
class FreshSamples:
    """Samples that are read anew when they are older than FRESH_SECONDS, by one thread for all."""

    read: Callable[[], Samples]
    lock: threading.Lock = field(default_factory=threading.Lock)
    at: float = float("-inf")
    samples: Samples = field(default_factory=dict)

    def now(self) -> Samples:
        """The samples, at most so old."""
        with self.lock:
            if time.monotonic() - self.at > FRESH_SECONDS:
                self.samples = self.read()
                self.at = time.monotonic()
            return self.samples


class MetricsServer(ThreadingHTTPServer):
    """Serves what `read` gives, and listens as soon as it is made. Raises UsageError where it cannot."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, at: ListenAddress, read: Callable[[], Samples], request_seconds: float = REQUEST_SECONDS
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        self.local, self.request_seconds = at.local, request_seconds
        self.kept = FreshSamples(read)
        self.places = threading.BoundedSemaphore(AT_ONCE)
        try:
            super().__init__((at.host, at.port), _Handler)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such address"
            raise UsageError(
                f"dq cannot listen on {at.host}:{at.port}: {reason}.", "Choose another --listen."
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begins a thread for it, or closes it where all places are taken."""
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves one connection, and gives its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or takes too long, is no news."""


def metrics_server(
    listen: str,
    report: Callable[[StoreError], object],
    *,
    anywhere: bool = False,
    now: datetime | None = None,
) -> MetricsServer:
    """A server of the metrics at `host:port`; `report` hears why the store cannot be read, once each.

    Raises as `address` and `MetricsServer`.
    """
    world, _ = called(None, None, now)
    reported = ""

    def read() -> Samples:
        nonlocal reported
        samples, error = gather_or_down(world)
        message = error.message if error else ""
        if error and message != reported:
            report(error)
        reported = message
        return samples

    return MetricsServer(address(listen, anywhere=anywhere), read)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "dq"
    sys_version = ""

    def setup(self) -> None:
        """Gives whoever asks its time."""
        super().setup()
        self.connection.settimeout(self.server.request_seconds)

    def do_GET(self) -> None:
        """Gives the metrics, in the format that is asked for."""
        host = self.headers.get("Host", "")
        # A page of a browser may be made to ask this machine, under the name that it came by.
        if self.server.local and host and not is_loopback(_without_port(host)):
            self._say(HTTPStatus.FORBIDDEN, _PLAIN, b"Ask for it by a name of this machine's loopback.\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._say(HTTPStatus.NOT_FOUND, _PLAIN, b"The figures are at /metrics.\n")
        else:
            new = "application/openmetrics-text" in self.headers.get("Accept", "")
            body = render(self.server.kept.now(), openmetrics=new)
            self._say(HTTPStatus.OK, OPENMETRICS_TYPE if new else PROMETHEUS_TYPE, body)

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _say(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """What strangers ask for is written nowhere."""


def _without_port(host: str) -> str:
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
