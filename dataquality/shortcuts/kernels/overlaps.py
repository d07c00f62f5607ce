"""Which keys may stand in two files, as the bounds of the files tell; all others are counted file by file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dq.dataquality.model.column import Column
from dq.dataquality.shortcuts.statistics.facts import Facts, File

# A task holds the keys that stand in its file alone: so many rows of two long integers are 160 MB.
MOST_ROWS = 10_000_000

Span = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """A key may stand in two files where its `column` has a value within one of the ranges, ends included.

    The ranges are sorted and apart. Without a column, any key may.
    """

    column: str = ""
    ranges: tuple[Span, ...] = ()


ANYWHERE = Overlaps()


def overlaps(files: Sequence[File], key: Sequence[Column]) -> Overlaps:
    """Told by that column of the key by which the fewest rows may have such a value.

    Tables that are sorted and cut into files share the value at each cut, and no other one.
    """
    if any(file.rows > MOST_ROWS for file in files):
        return ANYWHERE
    told = [made for column in key if (made := _by(column, files)) is not None]
    return min(told, key=lambda made: made[0])[1] if told else ANYWHERE


def near(ranges: Sequence[Span], least: Any, greatest: Any) -> Sequence[Span]:
    """Those of sorted ranges that have a value between these two, ends included."""
    begin = bisect_left(ranges, least, key=lambda span: span[1])
    return ranges[begin : bisect_right(ranges, greatest, key=lambda span: span[0])]


def _by(column: Column, files: Sequence[File]) -> tuple[int, Overlaps] | None:
    """About how many rows may have such a value, and where; None where some file's bounds are not known."""
    spans: list[tuple[Any, Any, int]] = []
    for file in files:
        facts = file.of(column)
        # Rows with a NULL in the key repeat nothing.
        if facts.nulls == file.rows:
            continue
        ends = _ends(facts)
        if ends is None:
            return None
        spans.append((*ends, file.rows))
    spans.sort(key=lambda span: span[0])
    ranges = _shared(spans)
    rows = sum(
        rows
        for least, greatest, rows in spans
        if any(low < high or least == greatest for low, high in near(ranges, least, greatest))
    )
    return rows, Overlaps(str(column.steps[0]), tuple(ranges))


def _shared(spans: Sequence[tuple[Any, Any, int]]) -> list[Span]:
    """Where two or more of these spans lie, which are sorted by their beginnings."""
    ranges: list[Span] = []
    reach: Any = None
    for number, (least, greatest, _) in enumerate(spans):
        if number and least <= reach:
            end = min(reach, greatest)
            if ranges and least <= ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
            else:
                ranges.append((least, end))
        reach = max(reach, greatest) if number else greatest
    return ranges


def _ends(facts: Facts) -> Span | None:
    if facts.least is not None and facts.greatest is not None:
        return facts.least, facts.greatest
    if facts.values is not None and len(facts.values) == 1:
        (value,) = facts.values
        return value, value
    return None
