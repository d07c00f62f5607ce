"""How pages say things: states, instants and schedules in words, cycles as a strip, counts as a line."""

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
from dq.contracts.outcome import CycleStatus, counted
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import Schedule, times_of_day
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.notify import local_time, span
from dq.portal.product import ProductState
from dq.portal.store_queries import RowCounts

# How pages say things: states as words with a shape, instants with their zone, links shown whole.

Values = dict[str, Any]
"""What a template is given: texts, numbers, and lists of them."""

LONGEST = 2_000
"""Longer texts of contracts are cut on a page; the contract itself has all of it."""

_MAIL = re.compile(r"mailto:[!-.0-;=?-~]+@[A-Za-z0-9.\-]+", re.ASCII)
_NEVER = re.compile(r"[\s<>\"'`\\^{}|]")


@dataclass(frozen=True, slots=True)
class Word:
    """A state as it is shown: its name in the style sheet, and what stands beside its shape."""

    kind: str
    text: str


STATES: dict[ProductState, Word] = {
    ProductState.UNREADABLE: Word("unreadable", "cannot be read"),
    ProductState.BROKEN: Word("broken", "broken"),
    ProductState.LATE: Word("late", "late"),
    ProductState.UNKNOWN: Word("unknown", "unknown"),
    ProductState.SPENT: Word("late", "misses too often"),
    ProductState.UNCHECKED: Word("unchecked", "data not checked"),
    ProductState.FINE: Word("fine", "keeps its promises"),
    ProductState.RESTING: Word("resting", "nothing promised"),
}

# The pictures of the strip are symbols of these names; see the template.
CYCLES: dict[CycleStatus, Word] = {
    CycleStatus.ON_TIME: Word("intime", "in time"),
    CycleStatus.ON_TIME_IN_GRACE: Word("grace", "in grace"),
    CycleStatus.LATE: Word("late", "late"),
    CycleStatus.MISSING: Word("missing", "missing"),
    CycleStatus.NEVER: Word("missing", "never came"),
    CycleStatus.UNKNOWN: Word("unknown", "unknown"),
    CycleStatus.EXCUSED: Word("excused", "excused"),
    CycleStatus.WITHDRAWN: Word("excused", "withdrawn"),
    CycleStatus.PENDING: Word("ahead", "due, and still in grace"),
    CycleStatus.SCHEDULED: Word("ahead", "not due yet"),
}


def said_state(state: IncidentState) -> str:
    """The state of an incident in words."""
    return "acknowledged" if state is IncidentState.ACKED else state.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant for machines and for people."""

    iso: str
    text: str


def instant(at: datetime) -> Instant:
    """In UTC, to the minute: `2026-05-01 06:00 UTC`."""
    utc = at.astimezone(UTC)
    return Instant(utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M UTC"))


def instant_of(iso: str) -> Instant | None:
    """The same from text; None for the empty one."""
    return instant(datetime.fromisoformat(iso)) if iso else None


def link(text: str | None) -> str | None:
    """The text where it may be a link: http, https or mailto, and nothing that hides where it leads."""
    if not text or len(text) > LONGEST or _NEVER.search(text):
        return None
    return text if web_address(text, WEB) or _MAIL.fullmatch(text) else None


def cut(text: object, most: int = LONGEST) -> str:
    """The text, of which no more is shown than a page can bear."""
    whole = "" if text is None else str(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def length(minutes: float) -> str:
    """Minutes as `2 h 10 min`."""
    return span(timedelta(minutes=minutes))


# A schedule in plain words, for people who never saw a cron expression.

_ALL_DAYS, _MONTHS, _WEEK = frozenset(range(1, 32)), 12, frozenset(range(7))
_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKING = frozenset(range(1, 6))
_LISTED = 4


def in_words(schedule: Schedule) -> str:
    """When deliveries are due, such as `every day at 06:00, Europe/Berlin`.

    What has no plain words is said as `dq schedule explain` says it.
    """
    when, days = _times(schedule), _days(schedule)
    if when is None or days is None:
        return clock.reading(schedule)
    return f"{days} {when}, {schedule.timezone}"


def _days(schedule: Schedule) -> str | None:
    rule = schedule.days
    plain = rule.days >= _ALL_DAYS and not rule.special_days and not rule.special_weekdays
    if not plain or len(rule.months) != _MONTHS or rule.years is not None:
        return None
    if rule.weekdays >= _WEEK:
        return "every day"
    # With the other reading of two day fields, every day would be due.
    if not rule.both or not rule.weekdays:
        return None
    if rule.weekdays == _WORKING:
        return "Monday to Friday"
    return "every " + " and ".join(_NAMES[day] for day in sorted(rule.weekdays))


def _times(schedule: Schedule) -> str | None:
    times = times_of_day(schedule.minute, schedule.hour, schedule.second)
    if 0 < len(times) <= _LISTED:
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


# The last cycles of a promise as a strip, and row counts as a line: plain values for drawings.
#
# They are drawn by the server, so that they are there without script, on paper and for machines that read
# aloud: each cycle has a shape of its own, and a title.

DRAWN = 90
STEP = 9
_WIDE, _HIGH, _MARGIN = 720, 120, 6
_POINTS = 120


@dataclass(frozen=True, slots=True)
class StripCell:
    x: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The cells, how wide they are together, the whole in words, and the cycles that were not in time."""

    cells: tuple[StripCell, ...]
    width: int
    said: str
    odd: tuple[tuple[str, str, str, str], ...]


def strip(slo: Slo, cycles: Sequence[Kept]) -> Strip:
    """The last cycles, oldest first. `odd` are the newest first: kind, due, status, what is known."""
    shown = cycles[-DRAWN:]
    cells = tuple(
        StripCell(
            number * STEP, CYCLES[kept.status].kind, f"{local_time(slo, kept.cycle.due_at)}: {_told(kept)}"
        )
        for number, kept in enumerate(shown)
    )
    tally = Counter(CYCLES[kept.status].text for kept in shown)
    said = ", ".join(f"{number} {text}" for text, number in tally.items())
    odd = tuple(
        (
            CYCLES[kept.status].kind,
            local_time(slo, kept.cycle.due_at),
            CYCLES[kept.status].text,
            _detail(slo, kept),
        )
        for kept in reversed(shown)
        if not kept.status.good and CYCLES[kept.status].kind != "ahead"
    )
    return Strip(cells, max(len(shown), 1) * STEP, f"The last {counted(len(shown), 'cycle')}: {said}.", odd)


def _told(kept: Kept) -> str:
    text, detail = CYCLES[kept.status].text, _lateness(kept)
    return f"{text}, {detail}" if detail else text


def _lateness(kept: Kept) -> str:
    if kept.delivered_at is None:
        return ""
    gap = kept.delivered_at - kept.cycle.due_at
    side = "before" if gap.total_seconds() < 0 else "after"
    return f"came {span(gap)} {side} it was due"


def _detail(slo: Slo, kept: Kept) -> str:
    said = [_lateness(kept), kept.excuse or ("" if kept.delivered_at else kept.reason)]
    if kept.arriving_since is not None:
        said.append(f"data is being written since {local_time(slo, kept.arriving_since)}")
    if kept.revoked and kept.gone_since is not None:
        said.append(f"it was taken away again, gone since {local_time(slo, kept.gone_since)}")
    return "; ".join(text for text in said if text)


@dataclass(frozen=True, slots=True)
class RowLine:
    """A line of row counts in a box of 720 by 120, with the band of what is usual where that is known."""

    points: str
    dots: tuple[tuple[float, float, str], ...]
    band: tuple[float, float] | None
    least: str
    most: str
    first: str
    last: str
    said: str


def row_line(rows: RowCounts) -> RowLine:
    """The newest counts, oldest first."""
    shown = rows.counts[-_POINTS:]
    numbers = [one.rows for one in shown]
    bounds = (
        [bound for bound in (rows.usual.least, rows.usual.most) if bound is not None] if rows.usual else []
    )
    low, high = min([*numbers, *bounds]), max([*numbers, *bounds])
    room = max(high - low, 1)

    def height(number: float) -> float:
        return round(_MARGIN + (_HIGH - 2 * _MARGIN) * (high - number) / room, 1)

    across = (_WIDE - 2 * _MARGIN) / max(len(shown) - 1, 1)
    spots = [(round(_MARGIN + number * across, 1), height(one.rows)) for number, one in enumerate(shown)]
    band = None
    if rows.usual:
        top = height(rows.usual.most) if rows.usual.most is not None else float(_MARGIN)
        foot = height(rows.usual.least) if rows.usual.least is not None else float(_HIGH - _MARGIN)
        band = (top, round(max(foot - top, 1), 1))
    newest = shown[-1]
    said = f"{newest.rows:,} rows, of {newest.of:%Y-%m-%d}"
    if rows.usual and rows.usual.least is not None and rows.usual.most is not None:
        said += f"; usual by {rows.usual.days} before: {rows.usual.least:,} to {rows.usual.most:,}"
    return RowLine(
        " ".join(f"{x},{y}" for x, y in spots),
        tuple(
            (x, y, f"{one.of:%Y-%m-%d}: {one.rows:,} rows") for (x, y), one in zip(spots, shown, strict=True)
        ),
        band,
        f"{low:,}",
        f"{high:,}",
        f"{shown[0].of:%Y-%m-%d}",
        f"{newest.of:%Y-%m-%d}",
        said,
    )
