"""Samples as text: the format of Prometheus 0.0.4, and OpenMetrics 1.0 (github.com/prometheus/OpenMetrics).

Label values are what contracts say, so that all that could end a value or a line is escaped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from dq.cli.monitoring.table import BUCKETS, TABLE, MetricKind, MetricRow
from dq.contracts.escaping import prometheus_label

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
