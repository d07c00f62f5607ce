"""Formatting for pages: states, times and schedules as text, cycles and row counts as charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from dq.alerts.incident import Incident, IncidentState
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.check_result import Status
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import pluralize
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import Schedule, times_of_day
from dq.contracts.slo import Slo
from dq.dataquality.clauses.metric_rule import group_label, group_order
from dq.dataquality.delivery.budget import misses_left
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.dataquality.model.metric import Group
from dq.dataquality.results import GROUP, PastResult
from dq.portal.charts import (
    MARK_KINDS,
    Arrival,
    Bar,
    Span,
    Svg,
    arrivals,
    bars,
    legend,
    line,
    sparkline,
    timeline,
)
from dq.portal.product import ProductState
from dq.portal.store_queries import RowCounts

# Labels of states, times with their zone, and links.

Values = dict[str, Any]
"""Template values: strings, numbers, and lists of them."""

MAX_CHARS = 2_000
"""Maximum length of a contract's text on a page."""

_MAIL = re.compile(r"mailto:[!-.0-;=?-~]+@[A-Za-z0-9.\-]+", re.ASCII)
_FORBIDDEN = re.compile(r"[\s<>\"'`\\^{}|]")


@dataclass(frozen=True, slots=True)
class StatusLabel:
    """Label of a state: its class in the style sheet, and its text."""

    kind: str
    text: str


STATES: dict[ProductState, StatusLabel] = {
    ProductState.UNREADABLE: StatusLabel("unreadable", "unreadable"),
    ProductState.BROKEN: StatusLabel("broken", "broken"),
    ProductState.LATE: StatusLabel("late", "late"),
    ProductState.UNKNOWN: StatusLabel("unknown", "unknown"),
    ProductState.SPENT: StatusLabel("late", "SLO breached"),
    ProductState.UNCHECKED: StatusLabel("unchecked", "data not checked"),
    ProductState.FINE: StatusLabel("fine", "healthy"),
    ProductState.RESTING: StatusLabel("resting", "not monitored"),
}

# Kinds are names of marks in charts.
CYCLES: dict[CycleStatus, StatusLabel] = {
    CycleStatus.ON_TIME: StatusLabel("intime", "on time"),
    CycleStatus.ON_TIME_IN_GRACE: StatusLabel("grace", "in grace"),
    CycleStatus.LATE: StatusLabel("late", "late"),
    CycleStatus.MISSING: StatusLabel("missing", "missing"),
    CycleStatus.NEVER: StatusLabel("missing", "never delivered"),
    CycleStatus.UNKNOWN: StatusLabel("unknown", "unknown"),
    CycleStatus.EXCUSED: StatusLabel("excused", "excused"),
    CycleStatus.WITHDRAWN: StatusLabel("excused", "withdrawn"),
    CycleStatus.PENDING: StatusLabel("ahead", "due, within grace period"),
    CycleStatus.SCHEDULED: StatusLabel("ahead", "not due yet"),
}


def incident_state_label(state: IncidentState) -> str:
    """Return the label of an incident's state."""
    return "acknowledged" if state is IncidentState.ACKED else state.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant as ISO 8601 and as readable text."""

    iso: str
    text: str


def instant(moment: datetime) -> Instant:
    """Return the instant in UTC; its text is to the minute, e.g. `2026-05-01 06:00 UTC`."""
    utc = moment.astimezone(UTC)
    return Instant(utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M UTC"))


def instant_from_iso(iso: str) -> Instant | None:
    """Return the instant of an ISO 8601 string, or None for ""."""
    return instant(datetime.fromisoformat(iso)) if iso else None


def link(text: str | None) -> str | None:
    """Return the text if it is a safe link (http, https or mailto, without hidden characters), or None."""
    if not text or len(text) > MAX_CHARS or _FORBIDDEN.search(text):
        return None
    return text if web_address(text, WEB) or _MAIL.fullmatch(text) else None


# GitHub: /OWNER/REPOSITORY/tree/BRANCH/FOLDER; GitLab: /GROUP/…/PROJECT/-/tree/BRANCH/FOLDER.
_FOLDER_PAGE = re.compile(
    r"(?P<project>https?://[^/?#]+/(?:(?:[^/?#]+/)+-|[^/?#]+/[^/?#]+))/tree/(?P<folder>[^/?#][^?#]*?)/*"
)


def new_file_page(folder_page: str) -> str | None:
    """Return the page on which GitHub or GitLab edits a new file of a folder, given the folder's page.

    None for another page, and for one with a query or fragment.
    """
    match = _FOLDER_PAGE.fullmatch(folder_page)
    return link(f"{match['project']}/new/{match['folder']}") if match else None


def cut(text: object, max_chars: int = MAX_CHARS) -> str:
    """Return the text, shortened to `max_chars`."""
    full_text = "" if text is None else str(text)
    return full_text if len(full_text) <= max_chars else f"{full_text[: max_chars - 1]}…"


def duration(minutes: float) -> str:
    """Return minutes as text, e.g. `2 h 10 min`."""
    return format_duration(timedelta(minutes=minutes))


# Schedules as text, for readers who do not know cron expressions.

_ALL_DAYS, _MONTHS, _WEEK = frozenset(range(1, 32)), 12, frozenset(range(7))
_DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKING_DAYS = frozenset(range(1, 6))
_MAX_TIMES = 4


def describe_schedule(schedule: Schedule) -> str:
    """Describe when deliveries are due, e.g. `every day at 06:00, Europe/Berlin`.

    Complex schedules are described as in `dq schedule explain`.
    """
    times, days = _describe_times(schedule), _describe_days(schedule)
    if times is None or days is None:
        return clock.describe_schedule(schedule)
    return f"{days} {times}, {schedule.timezone}"


def _describe_days(schedule: Schedule) -> str | None:
    """Return the days as text, or None if there is no short description."""
    rule = schedule.days
    plain = rule.days >= _ALL_DAYS and not rule.special_days and not rule.special_weekdays
    if not plain or len(rule.months) != _MONTHS or rule.years is not None:
        return None
    if rule.weekdays >= _WEEK:
        return "every day"
    # If either of the two day fields is enough, every day is due.
    if not rule.requires_both or not rule.weekdays:
        return None
    if rule.weekdays == _WORKING_DAYS:
        return "Monday to Friday"
    return "every " + " and ".join(_DAY_NAMES[day] for day in sorted(rule.weekdays))


def _describe_times(schedule: Schedule) -> str | None:
    """Return the times of day as text, or None if there is no short description."""
    times = times_of_day(schedule.minute, schedule.hour, schedule.second)
    if 0 < len(times) <= _MAX_TIMES:
        return "at " + ", ".join(map(_clock, times))
    gaps = {later - earlier for earlier, later in pairwise(times)}
    gap = gaps.pop() if len(gaps) == 1 else None
    if gap is None or len(times) * gap != timedelta(days=1):
        return None
    minutes = int(gap.total_seconds()) // 60
    if minutes % 60:
        return f"every {minutes} minutes"
    return "every hour" if minutes == 60 else f"every {minutes // 60} hours"


def _clock(time: timedelta) -> str:
    minutes = int(time.total_seconds()) // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"


# The last cycles of an SLO as a chart and a table, and row counts as a chart.
#
# They are rendered into the page, so that they work without script, in print and in screen readers.

MAX_CYCLES = 90


@dataclass(frozen=True, slots=True)
class DeliveryHistory:
    """The last cycles of an SLO: a chart, its legend, a table (`rows`), and the cycles not on time (`odd`).

    Rows of both are newest first: due time, status, detail.
    """

    chart: Svg
    legend: Svg
    rows: tuple[tuple[str, str, str], ...]
    odd: tuple[tuple[str, str, str], ...]


def delivery_history(slo: Slo, cycles: Sequence[CycleRecord]) -> DeliveryHistory | None:
    """Return the last cycles of an SLO, given all of them, or None without any."""
    ordered = sorted(cycles, key=lambda record: record.cycle.breach_at)
    left = misses_left(
        [(record.cycle.breach_at, record.status) for record in ordered], slo.objective, slo.window
    )
    points, rows, odd = [], [], []
    counts: dict[str, tuple[str, int]] = {}
    for record, misses in zip(ordered[-MAX_CYCLES:], left[-MAX_CYCLES:], strict=True):
        label, due = CYCLES[record.status], local_time(slo, record.cycle.due_at)
        lateness = _lateness(record)
        minutes = None
        if record.delivered_at is not None:
            minutes = (record.delivered_at - record.cycle.due_at).total_seconds() / 60
        title = f"{due}: {label.text}, {lateness}" if lateness else f"{due}: {label.text}"
        points.append(Arrival(label.kind, title, due[:10], minutes, misses))
        rows.append((due, label.text, lateness))
        counts[label.kind] = (label.text, counts.get(label.kind, ("", 0))[1] + 1)
        if not record.status.good and label.kind != "ahead":
            odd.append((due, label.text, _detail(slo, record)))
    if not points:
        return None
    summary = ", ".join(f"{number} {text}" for text, number in counts.values())
    title = (
        f"Arrival of the last {pluralize(len(points), 'delivery', 'deliveries')}, relative to due: {summary}"
    )
    grace = slo.grace.total_seconds() / 60
    return DeliveryHistory(
        arrivals(
            points, grace, f"{title}. Below: misses left in the error budget, {left[-1]} at last.", duration
        ),
        legend({kind: counts[kind] for kind in MARK_KINDS if kind in counts}),
        tuple(reversed(rows)),
        tuple(reversed(odd)),
    )


def _lateness(record: CycleRecord) -> str:
    if record.delivered_at is None:
        return ""
    gap = record.delivered_at - record.cycle.due_at
    side = "before" if gap.total_seconds() < 0 else "after"
    return f"delivered {format_duration(gap)} {side} due time"


def _detail(slo: Slo, record: CycleRecord) -> str:
    details = [_lateness(record), record.excuse or ("" if record.delivered_at else record.reason)]
    if record.arriving_since is not None:
        details.append(f"data being written since {local_time(slo, record.arriving_since)}")
    if record.revoked and record.gone_since is not None:
        details.append(f"removed after delivery, gone since {local_time(slo, record.gone_since)}")
    return "; ".join(text for text in details if text)


def row_count_chart(rows: RowCounts, promised: RowRange | None) -> Values:
    """Return the values of the row counts: a chart, its summary, and a table, newest first.

    The band is the promised range, else the usual one, if it is known. Without a band, counts that a rule
    found unusual are hollow.
    """
    recent = rows.counts[-MAX_CYCLES:]
    newest = recent[-1]
    caption = f"{newest.rows:,} rows on {newest.data_time:%Y-%m-%d}"
    band: RowRange | None = promised
    if promised is not None:
        caption += f"; promised: {_range(promised)}"
    elif rows.unusual is not None:
        unusual = sum(count.data_time in rows.unusual for count in recent)
        caption += f"; {unusual} of {pluralize(len(recent), 'count')} unusual by its rule"
    elif rows.usual is not None:
        band = (rows.usual.minimum, rows.usual.maximum)
        caption += f"; usual range of the previous {rows.usual.days}: {_range(band)}"
    dates = [f"{count.data_time:%Y-%m-%d}" for count in recent]
    low, high = band or (None, None)
    values = [
        Bar(count.rows, date, f"{date}: {count.rows:,} rows{', outside of the range' if out else ''}", out)
        for count, date in zip(recent, dates, strict=True)
        for out in [
            (low is not None and count.rows < low)
            or (high is not None and count.rows > high)
            or (band is None and count.data_time in (rows.unusual or ()))
        ]
    ]
    return {
        "chart": bars(values, band, f"Rows of the last {pluralize(len(recent), 'count')}: {caption}"),
        "summary": caption,
        "rows": [
            (bar.date, f"{bar.value:,}", "outside" if bar.is_outside else "") for bar in reversed(values)
        ],
    }


RowRange = tuple[float | None, float | None]
"""Minimum and maximum number of rows, None for no limit."""


def _range(bounds: RowRange) -> str:
    low, high = bounds
    if low is not None and high is not None:
        return f"{low:,.0f} to {high:,.0f}" if low != high else f"{low:,.0f}"
    return f"at least {low:,.0f}" if low is not None else f"at most {high or 0:,.0f}"


def rule_sparkline(past: Sequence[PastResult | None]) -> Svg:
    """Return the results of a rule in the last scopes, oldest first; None if it was not checked."""
    recent = past[-MAX_CYCLES:]
    statuses = [result.status if result else Status.SKIPPED for result in recent]
    counts = Counter(statuses)
    parts = [f"{counts[status]} {text}" for status, text in _RESULTS.items() if counts[status]]
    return sparkline(statuses, f"The last {pluralize(len(statuses), 'check')}: {', '.join(parts)}")


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """Values of a rule, or of one of its groups, as a line. `group` is "" for a rule without groups."""

    group: str
    chart: Svg


_MAX_LINES = 4


def value_sparklines(past: Sequence[PastResult | None]) -> tuple[list[MeasuredLine], int]:
    """Return the measured values of a rule in the last scopes as a line for each group, and groups left out.

    Groups that failed last come first. One without two values has no line.
    """
    recent = past[-MAX_CYCLES:]
    by_group: dict[Group, list[float | None]] = {}
    last_failure: dict[Group, int] = {}
    for number, result in enumerate(recent):
        values = {} if result is None else dict(result.numbers)
        if result is not None and result.value is not None:
            values[()] = result.value
        for group, value in values.items():
            by_group.setdefault(group, [None] * len(recent))[number] = value
        for group in result.failed if result is not None else ():
            last_failure[group] = number
    drawn = [group for group, values in by_group.items() if sum(value is not None for value in values) > 1]
    drawn.sort(key=lambda group: (-last_failure.get(group, -1), group_order(group)))
    lines = [
        MeasuredLine(cut(group_label(group), 60), _line(by_group[group])) for group in drawn[:_MAX_LINES]
    ]
    return lines, max(len(drawn) - _MAX_LINES, 0)


def _line(values: Sequence[float | None]) -> Svg:
    numbers = [value for value in values if value is not None]
    return line(values, _line_label(numbers, "Measured", "{:,.6g}".format))


def line_of(values: Sequence[float], name: str, show: Callable[[float], str], changed_at: int | None) -> Svg:
    """Return numbers as a line; from the one at `changed_at` on, it is marked."""
    return line(values, _line_label(values, name, show), changed_at)


def _line_label(numbers: Sequence[float], name: str, show: Callable[[float], str]) -> str:
    low, high, last = (show(number) for number in (min(numbers), max(numbers), numbers[-1]))
    return f"{name} {pluralize(len(numbers), 'time')}: {low} to {high}, {last} at last"


_RESULTS = {
    Status.FAIL: "failed",
    Status.ERROR: "without a result",
    Status.PASS: "passed",
    Status.SKIPPED: "not checked",
}
_TIMELINE_DAYS = 90


def incident_timeline(incidents: Sequence[Incident], now: datetime) -> Svg | None:
    """Return the incidents of the last 90 days as bars, a row for each SLO or check, or None without any."""
    start = now - timedelta(days=_TIMELINE_DAYS)
    spans = []
    for incident in sorted(incidents, key=lambda incident: incident.opened_at):
        ended = incident.resolved_at
        until = f"until {instant(ended).text}" if ended else "open"
        kind = "broken" if incident.key.group == GROUP else "late"
        title = f"{cut(incident.title, 200)}: since {instant(incident.opened_at).text}, {until}"
        spans.append(
            Span(
                cut(incident.key.group, 15),
                kind,
                (incident.opened_at - start) / _DAY,
                (ended - start) / _DAY if ended else None,
                title,
            )
        )
    if not spans:
        return None
    dates = [f"{start + timedelta(days=_TIMELINE_DAYS * step / 4):%Y-%m-%d}" for step in range(5)]
    label = f"{pluralize(len(spans), 'incident')} in the last {_TIMELINE_DAYS} days, listed below"
    return timeline(spans, _TIMELINE_DAYS, dates, label)


_DAY = timedelta(days=1)
