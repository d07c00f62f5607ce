"""The last cycles of a promise as a strip, and row counts as a line: plain values for drawings.

They are drawn by the server, so that they are there without script, on paper and for machines that read
aloud: each cycle has a shape of its own, and a title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dq.contracts.shared.wording import counted
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.notify import local_time, span
from dq.portal.facts.quality import RowCounts
from dq.portal.views.words import CYCLES

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
