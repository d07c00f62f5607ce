"""How pages say things: states as words with a shape, instants with their zone, links shown whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dq.alerts.incident import IncidentState
from dq.contracts.access.web_address import WEB, web_address
from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.notify import span
from dq.portal.facts.product import ProductState

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
