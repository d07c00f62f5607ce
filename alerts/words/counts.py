"""How many deliveries or partitions an incident is about, in words. Subjects come by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from dq.contracts.shared.counts import first_of
from dq.contracts.shared.outcome import End

_NAMED = 3

_ENDED: Mapping[End, str] = {
    End.KEPT: "mended",
    End.GIVEN_UP: "given up",
    End.HANDED_OVER: "handed over",
    End.EXCUSED: "excused",
    End.WITHDRAWN: "withdrawn",
}


def countable(subjects: Collection[str]) -> bool:
    """Whether each is one of many, a delivery or a partition, and not what is told of a whole."""
    return all(_due(subject) is not None or "=" in subject for subject in subjects)


def still_broken(subjects: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """A line for what is broken together, the oldest first; none for one."""
    if len(subjects) < 2 or not countable(subjects):
        return ()
    due = [at for at in map(_due, subjects) if at is not None]
    if len(due) < len(subjects):
        return (("still open", first_of(subjects, _NAMED)),)
    if len(due) <= _NAMED:
        return (("still missing", f"due {', '.join(f'{at:%Y-%m-%d %H:%M}' for at in due)} UTC"),)
    return (("still missing", f"{len(due)} deliveries, the oldest was due {instant(due[0])}"),)


def so_far(subjects: Collection[str], still: Collection[str]) -> str:
    """How many broke since the incident began, and how many of them still are: each counts once."""
    count, left = len(subjects), len(still)
    if any(_due(subject) is None for subject in subjects):
        return f"{count} are broken so far, {left} of them still."
    has = {0: "all of them have come since", count: "none has come"}
    said = has.get(left, f"{left} {'has' if left == 1 else 'have'} not come")
    return f"{count} deliveries missed their time so far; {said}."


def in_all(ends: Mapping[str, End]) -> str:
    """How they ended, by subject, where there were several; else empty."""
    if len(ends) < 2 or not countable(ends):
        return ""
    counts = Counter(ends.values())
    said = ", ".join(f"{counts[end]} {word}" for end, word in _ENDED.items() if counts[end])
    return f" There were {len(ends)} in all" + (f": {said}." if len(counts) > 1 else ".")


def instant(at: datetime) -> str:
    """An instant in UTC, to the minute."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def duration(length: timedelta) -> str:
    """The two largest parts: '2 d 4 h', '1 h 5 min', '40 s'."""
    seconds = int(length.total_seconds())
    parts = [
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "min"),
        (seconds % 60, "s"),
    ]
    said = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(said[:2]) or "0 s"


def _due(subject: str) -> datetime | None:
    """When a delivery was due, by the name of its subject; None for a subject that is no delivery."""
    try:
        found = datetime.fromisoformat(subject)
    except ValueError:
        return None
    return found if found.tzinfo else None
