"""Formatting for pages: states, times and schedules as text, cycles as a timeline, row counts as a chart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from dq.alerts.incident import IncidentState
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.outcome import CycleStatus, pluralize
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import Schedule, times_of_day
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.delivery.notify import format_duration, local_time
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

# The timeline uses SVG symbols of these names; see the template.
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
    times, days = _times(schedule), _days(schedule)
    if times is None or days is None:
        return clock.describe_schedule(schedule)
    return f"{days} {times}, {schedule.timezone}"


def _days(schedule: Schedule) -> str | None:
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


def _times(schedule: Schedule) -> str | None:
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


# The last cycles of an SLO as a timeline, and row counts as a chart.
#
# They are rendered into the page, so that they work without script, in print and in screen readers: each
# cycle has its own shape and title.

MAX_CYCLES = 90
CELL_WIDTH = 9
_WIDTH, _HEIGHT, _MARGIN = 720, 120, 6
_MAX_POINTS = 120


@dataclass(frozen=True, slots=True)
class TimelineCell:
    x: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class StatusTimeline:
    """Timeline of cycles: cells, total width, a summary as text (`summary`), and cycles not on time
    (`odd`).
    """

    cells: tuple[TimelineCell, ...]
    width: int
    summary: str
    odd: tuple[tuple[str, str, str, str], ...]


def status_timeline(slo: Slo, cycles: Sequence[CycleRecord]) -> StatusTimeline:
    """Return the last cycles, oldest first. `odd` is newest first: kind, due time, status, detail."""
    recent = cycles[-MAX_CYCLES:]
    cells = tuple(
        TimelineCell(
            number * CELL_WIDTH,
            CYCLES[record.status].kind,
            f"{local_time(slo, record.cycle.due_at)}: {_cell_text(record)}",
        )
        for number, record in enumerate(recent)
    )
    tally = Counter(CYCLES[record.status].text for record in recent)
    summary = ", ".join(f"{number} {text}" for text, number in tally.items())
    odd = tuple(
        (
            CYCLES[record.status].kind,
            local_time(slo, record.cycle.due_at),
            CYCLES[record.status].text,
            _detail(slo, record),
        )
        for record in reversed(recent)
        if not record.status.good and CYCLES[record.status].kind != "ahead"
    )
    return StatusTimeline(
        cells,
        max(len(recent), 1) * CELL_WIDTH,
        f"The last {pluralize(len(recent), 'cycle')}: {summary}.",
        odd,
    )


def _cell_text(record: CycleRecord) -> str:
    text, detail = CYCLES[record.status].text, _lateness(record)
    return f"{text}, {detail}" if detail else text


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


@dataclass(frozen=True, slots=True)
class RowCountChart:
    """Line chart of row counts, 720 by 120, with the usual range as a band if it is known."""

    points: str
    dots: tuple[tuple[float, float, str], ...]
    band: tuple[float, float] | None
    minimum: str
    maximum: str
    first: str
    last: str
    summary: str


def row_count_chart(rows: RowCounts) -> RowCountChart:
    """Return a chart of the newest counts, oldest first."""
    recent = rows.counts[-_MAX_POINTS:]
    numbers = [count.rows for count in recent]
    bounds = (
        [bound for bound in (rows.usual.minimum, rows.usual.maximum) if bound is not None]
        if rows.usual
        else []
    )
    low, high = min([*numbers, *bounds]), max([*numbers, *bounds])
    value_range = max(high - low, 1)

    def height(number: float) -> float:
        return round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (high - number) / value_range, 1)

    spacing = (_WIDTH - 2 * _MARGIN) / max(len(recent) - 1, 1)
    spots = [
        (round(_MARGIN + number * spacing, 1), height(count.rows)) for number, count in enumerate(recent)
    ]
    band = None
    if rows.usual:
        top = height(rows.usual.maximum) if rows.usual.maximum is not None else float(_MARGIN)
        bottom = height(rows.usual.minimum) if rows.usual.minimum is not None else float(_HEIGHT - _MARGIN)
        band = (top, round(max(bottom - top, 1), 1))
    newest = recent[-1]
    caption = f"{newest.rows:,} rows on {newest.data_time:%Y-%m-%d}"
    if rows.usual and rows.usual.minimum is not None and rows.usual.maximum is not None:
        caption += (
            f"; usual range of the previous {rows.usual.days}: {rows.usual.minimum:,} to "
            f"{rows.usual.maximum:,}"
        )
    return RowCountChart(
        " ".join(f"{x},{y}" for x, y in spots),
        tuple(
            (x, y, f"{count.data_time:%Y-%m-%d}: {count.rows:,} rows")
            for (x, y), count in zip(spots, recent, strict=True)
        ),
        band,
        f"{low:,}",
        f"{high:,}",
        f"{recent[0].data_time:%Y-%m-%d}",
        f"{newest.data_time:%Y-%m-%d}",
        caption,
    )
