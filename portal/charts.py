"""Charts as static inline SVG: deliveries, error budget, bars, sparklines, timelines, lineage, heat strips.

They need no script and no style attribute: colours come from classes in the style sheet, and every state has
its own shape. Each chart has a text for screen readers. All texts are escaped here, since contracts are
untrusted input; templates insert the result as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dq.contracts.escaping import html
from dq.contracts.outcome import escape_block

# Markup, scales and marks.


class Svg(str):
    """Markup in which every text is escaped; Jinja inserts it without escaping it again."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def escaped(text: str) -> str:
    """Return text for element content and attributes, with control characters made visible."""
    return html(escape_block(text))


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale from values in [low, high] to pixels in [start, end]; other values are clipped."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return round((self.start + self.end) / 2, 1)
        share = min(max((value - self.low) / (self.high - self.low), 0), 1)
        return round(self.start + share * (self.end - self.start), 1)


# Marks by kind, around a point. Shapes differ as well as colours.
_MARKS: Mapping[str, Callable[[float, float], str]] = {
    "intime": lambda x, y: f'<circle class="intime" cx="{x:g}" cy="{y:g}" r="3"',
    "grace": lambda x, y: f'<path class="grace" d="M{x:g} {y - 4.5:g}l4.5 4.5-4.5 4.5-4.5-4.5z"',
    "late": lambda x, y: f'<path class="late" d="M{x:g} {y - 5:g}l4.8 8.6h-9.6z"',
    "missing": lambda x, y: f'<path class="missing" d="M{x - 3.5:g} {y - 3.5:g}l7 7m0-7l-7 7"',
    "unknown": lambda x, y: f'<circle class="unknown" cx="{x:g}" cy="{y:g}" r="3.2"',
    "excused": lambda x, y: f'<path class="excused" d="M{x - 3:g} {y:g}h6"',
    "ahead": lambda x, y: f'<circle class="ahead" cx="{x:g}" cy="{y:g}" r="1.6"',
}

MARK_KINDS = tuple(_MARKS)
"""Kinds of marks, in the order of legends."""


def mark(kind: str, x: float, y: float, title: str) -> str:
    """Return the mark of a cycle's kind, with a tooltip."""
    shape = _MARKS[kind](x, y)
    return f"{shape}><title>{escaped(title)}</title>{'</path>' if shape[1] == 'p' else '</circle>'}"


def legend(counts: Mapping[str, tuple[str, int]]) -> Svg:
    """Return a legend: the mark of each kind, with its label and count. Labels are escaped."""
    entries = (
        f'<li><svg class="chart" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">'
        f"{_MARKS[kind](7, 7)}/></svg> {count} {escaped(label)}</li>"
        for kind, (label, count) in counts.items()
    )
    return Svg(f'<ul class="legend">{"".join(entries)}</ul>')


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text{kind} x="{x:g}" y="{y:g}">{escaped(text)}</text>'


_END = ' class="end"'
_MIDDLE = ' class="mid"'


# Frame of wide charts: labels of values at the left, dates below.

WIDTH = 720
_LEFT, _RIGHT = 92, 712
_AXIS = _LEFT - 4
_LABELS, _HALF_LABEL = 6, 36
_LABEL_GAP = 12


def _framed(height: float, label: str, axis: Iterable[str], parts: Iterable[str], kind: str = "") -> Svg:
    """Return a wide chart. Its axis, the labels at the left, stays where it is if the chart is scrolled."""
    return Svg(
        f'<div class="framed"><svg class="chart axis" viewBox="0 0 {_AXIS} {height:g}" aria-hidden="true">'
        f"{''.join(axis)}</svg>"
        f'<svg class="chart{kind}" viewBox="{_AXIS} 0 {WIDTH - _AXIS} {height:g}" role="img" '
        f'aria-label="{escaped(label)}">{"".join(parts)}</svg></div>'
    )


def _value_labels(labels: Iterable[tuple[float, str]]) -> str:
    """Return labels at the left edge; one that would overlap an earlier one is left out."""
    taken: list[float] = []
    parts = []
    for y, text in labels:
        if all(abs(y - other) >= _LABEL_GAP for other in taken):
            taken.append(y)
            parts.append(_text(_LEFT - 8, y + 4, text, _END))
    return "".join(parts)


def _date_labels(y: float, dates: Sequence[str], positions: Sequence[float]) -> str:
    """Return at most six dates below a chart, evenly spaced, the newest among them."""
    last = len(dates) - 1
    if last <= 0:
        return "".join(_text(x, y, date) for x, date in zip(positions, dates, strict=True))
    count = min(_LABELS, len(dates), max(2, int((positions[-1] - positions[0]) // 90) + 1))
    chosen = range(last, -1, -max(-(-last // (count - 1)), 1))
    # Where half a label would be outside, it begins or ends at its position.
    near_start = positions[0] < _LEFT + _HALF_LABEL
    near_end = positions[-1] > _RIGHT - _HALF_LABEL
    return "".join(
        _text(
            positions[at],
            y,
            dates[at],
            "" if at == 0 and near_start else _END if at == last and near_end else _MIDDLE,
        )
        for at in chosen
    )


def _slots(count: int) -> list[float]:
    """Return the x positions of `count` values; few values are not spread over the whole width."""
    step = min((_RIGHT - _LEFT) / max(count, 1), 110)
    return [round(_LEFT + step * (number + 0.5), 1) for number in range(count)]


# Deliveries: arrival relative to the due time, and the error budget below.


@dataclass(frozen=True, slots=True)
class Arrival:
    """One cycle: kind of its mark, tooltip, date, and minutes after the due time, negative if early.

    `minutes` is None for a cycle without a delivery. `left` is the number of misses left in the error budget
    after it, negative if there were too many.
    """

    kind: str
    title: str
    date: str
    minutes: float | None
    left: int


_MISSED_Y, _LATE_Y, _EARLY_Y, _DATES_Y = 12, 28, 142, 160
_BUDGET_TOP, _BUDGET_BOTTOM = 186, 232
# Ends of the scale, in minutes.
_STEPS = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10080, 20160, 43200)
_USUAL_SHARE = 0.9
_MAX_RATIO = 4


def arrivals(points: Sequence[Arrival], grace: float, label: str, length: Callable[[float], str]) -> Svg:
    """Return the chart of an SLO's cycles, oldest first. `length` is the text of minutes."""
    positions = _slots(len(points))
    minutes = [point.minutes for point in points if point.minutes is not None]
    early, late = _reach(-value for value in minutes), _reach(minutes, grace * 1.5)
    # A delivery that came days late must not hide how the others came.
    late = min(late, _step(max(early, grace) * _MAX_RATIO))
    early, late = max(early, _step(late / _MAX_RATIO)), max(late, _step(early / _MAX_RATIO))
    beyond = (max(minutes, default=0) > late, min(minutes, default=0) < -early)
    scale = Scale(-early, late, _EARLY_Y, _LATE_Y)
    due_y = scale(0)
    missed = any(point.kind == "missing" for point in points)
    parts = []
    if grace:
        top = scale(grace)
        parts.append(
            f'<rect class="band" x="{_LEFT}" y="{top:g}" width="{_RIGHT - _LEFT}" height="{due_y - top:g}"/>'
        )
    parts.append(f'<path class="rule" d="M{_LEFT} {due_y:g}H{_RIGHT}"/>')
    labels = [(due_y, "due")]
    if missed:
        parts.append(f'<path class="faint" d="M{_LEFT} {_MISSED_Y + 8}H{_RIGHT}"/>')
        labels.append((_MISSED_Y, "missing"))
    over = ["> " if clipped else "" for clipped in beyond]
    labels += [
        (float(_EARLY_Y), f"{over[1]}{length(early)} early"),
        (float(_LATE_Y), f"{over[0]}{length(late)} late"),
    ]
    if grace:
        labels.append((scale(grace), f"+{length(grace)}"))
    axis = [_value_labels(labels)]
    ys = [
        _MISSED_Y if point.kind == "missing" else due_y if point.minutes is None else scale(point.minutes)
        for point in points
    ]
    stems = "".join(
        f"M{x:g} {due_y:g}V{y:g}"
        for x, y, point in zip(positions, ys, points, strict=True)
        if point.minutes is not None
    )
    parts.append(f'<path class="stem" d="{stems}"/>' if stems else "")
    parts += [mark(point.kind, x, y, point.title) for x, y, point in zip(positions, ys, points, strict=True)]
    parts.append(_date_labels(_DATES_Y, [point.date for point in points], positions))
    budget_labels, budget_parts = _budget(points, positions)
    return _framed(_BUDGET_BOTTOM + 8, label, [*axis, budget_labels], [*parts, *budget_parts], " deliveries")


def _reach(minutes: Iterable[float], least: float = 0) -> float:
    """Return the end of the scale: beyond nine tenths of the values above zero, so that it shows the rest."""
    above = sorted(value for value in minutes if value > 0)
    usual = above[min(int(len(above) * _USUAL_SHARE), len(above) - 1)] if above else 0
    return _step(max(usual * 1.2, least, _STEPS[0]))


def _step(minutes: float) -> float:
    return next((step for step in _STEPS if step >= minutes), float(_STEPS[-1]))


def _budget(points: Sequence[Arrival], positions: Sequence[float]) -> tuple[str, list[str]]:
    """Return the misses left after each cycle as steps above or below the objective, which is zero.

    The labels of the values come first.
    """
    values = [point.left for point in points]
    high, low = max(*values, 1) if values else 1, min(*values, 0) if values else 0
    scale = Scale(low, high, _BUDGET_BOTTOM, _BUDGET_TOP)
    half = (positions[1] - positions[0]) / 2 if len(positions) > 1 else 24
    zero = scale(0)

    # Most cycles leave the same number as the one before.
    heights = {value: f"V{scale(value):g}" for value in {*values, 0}}
    ends = [f"H{round(x + half, 1):g}" for x in positions]

    def steps(numbers: Iterable[int], start: float) -> str:
        begin = f"M{round(positions[0] - half, 1):g} {start:g}"
        return begin + "".join([heights[number] + end for number, end in zip(numbers, ends, strict=True)])

    parts = [_text(_LEFT, _BUDGET_TOP - 8, "error budget left, in misses; 0 is the objective")]
    if values:
        # Without its last number, the line starts at its first value.
        above = steps((max(value, 0) for value in values), zero)
        below = steps((min(value, 0) for value in values), zero)
        parts.append(f'<path class="left" d="{above}V{zero:g}z"/>')
        if low < 0:
            parts.append(f'<path class="spent" d="{below}V{zero:g}z"/>')
        parts.append(f'<path class="steps" d="{steps(values, scale(values[0]))}"/>')
    parts.append(f'<path class="rule" d="M{_LEFT} {zero:g}H{_RIGHT}"/>')
    labels = [(zero, "0"), (scale(high), str(high))]
    return _value_labels([*labels, (scale(low), str(low))] if low < 0 else labels), parts


# Bars with a band, e.g. of row counts.


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its date and tooltip. It is hollow if `is_outside` of what is expected."""

    value: float
    date: str
    title: str
    is_outside: bool = False


_BARS_TOP, _BARS_BOTTOM = 12, 112


def bars(values: Sequence[Bar], band: tuple[float | None, float | None] | None, label: str) -> Svg:
    """Return bars, oldest first, and a band of what is expected: minimum, maximum, or None for no limit.

    The scale starts at zero.
    """
    low, high = band or (None, None)
    top = max([bar.value for bar in values] + [bound for bound in (low, high) if bound is not None] + [1])
    scale = Scale(0, top * 1.05, _BARS_BOTTOM, _BARS_TOP)
    positions = _slots(len(values))
    width = min((positions[1] - positions[0]) * 0.7 if len(positions) > 1 else 24, 24)
    parts = []
    if band is not None:
        upper, lower = scale(high if high is not None else top * 1.05), scale(low or 0)
        parts.append(
            f'<rect class="band" x="{_LEFT}" y="{upper:g}" width="{_RIGHT - _LEFT}" '
            f'height="{max(lower - upper, 1.5):g}"/>'
        )
    for x, bar in zip(positions, values, strict=True):
        y = scale(bar.value)
        parts.append(
            f'<rect class="{"out" if bar.is_outside else "bar"}" x="{x - width / 2:.1f}" y="{y:g}" '
            f'width="{width:.1f}" height="{max(_BARS_BOTTOM - y, 0.5):.1f}">'
            f"<title>{escaped(bar.title)}</title></rect>"
        )
    parts.append(f'<path class="rule" d="M{_LEFT} {_BARS_BOTTOM}H{_RIGHT}"/>')
    labels = [(bound, f"{bound:,.0f}") for bound in (high, low) if bound is not None and bound > 0]
    labels += [(0, "0"), (max(bar.value for bar in values), f"{max(bar.value for bar in values):,.0f}")]
    axis = _value_labels((scale(value), text) for value, text in labels)
    parts.append(_date_labels(_BARS_BOTTOM + 16, [bar.date for bar in values], positions))
    return _framed(_BARS_BOTTOM + 24, label, [axis], parts)


# Sparklines: results of a rule, or numbers, in a table.

_SPARK_WIDTH, _SPARK_HEIGHT = 180, 18
# Strokes by result: a pass is short, a failure is tall, an error is broken in two, nothing is a dot.
_MAX_TICKS = 30
# Beyond so many, equal results in a row are one stroke: at these heights, as thick as the style sheet says.
_RUNS = {"pass": (9.5,), "fail": (9,), "error": (4, 14), "skipped": (13,)}
_STROKES = {"pass": "12v-5", "fail": "16v-14", "error": "16v-5m0-4v-5", "skipped": "13v-1"}


def sparkline(statuses: Sequence[str], label: str) -> Svg:
    """Return results, oldest first: pass, fail, error or skipped (not checked)."""
    step = min(max(_SPARK_WIDTH / max(len(statuses), 1), 2), 7)
    strokes: dict[str, list[str]] = {}
    if len(statuses) > _MAX_TICKS:
        number = 0
        for status, group in groupby(statuses):
            length = len(list(group))
            for y in _RUNS[status]:
                strokes.setdefault(status, []).append(f"M{step * number:.4g} {y}h{step * length:.4g}")
            number += length
    else:
        for number, status in enumerate(statuses):
            strokes.setdefault(status, []).append(f"M{step * (number + 0.5):g} {_STROKES[status]}")
    parts = [f'<path class="{status}" d="{"".join(lines)}"/>' for status, lines in strokes.items()]
    width = max(round(step * len(statuses), 1), 1)
    kind = "spark runs" if len(statuses) > _MAX_TICKS else "spark wide"
    return Svg(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {_SPARK_HEIGHT}" width="{width:g}" '
        f'height="{_SPARK_HEIGHT}" role="img" aria-label="{escaped(label)}">{"".join(parts)}</svg>'
    )


def line(values: Sequence[float | None], label: str, changed_at: int | None = None) -> Svg:
    """Return numbers as a line, oldest first, with a dot at the last; it is broken where there is none.

    A stroke marks the number at `changed_at`, from which on they differ from those before.
    """
    numbers = [value for value in values if value is not None]
    scale = Scale(min(numbers), max(numbers), _SPARK_HEIGHT - 3, 3)
    step = min(max(_SPARK_WIDTH / max(len(values), 1), 2), 14)
    path, x, y = "", 0.0, 0.0
    for number, value in enumerate(values):
        if value is not None:
            joined = number and values[number - 1] is not None
            x, y = round(step * (number + 0.5), 1), scale(value)
            path += f"{'L' if joined else 'M'}{x:g} {y:g}{'' if joined else 'h.1'}"
    width = round(step * len(values) + 2, 1)
    change = ""
    if changed_at is not None:
        change = f'<path class="change" d="M{step * changed_at:g} 0v{_SPARK_HEIGHT}"/>'
    return Svg(
        f'<svg class="spark" viewBox="0 0 {width:g} {_SPARK_HEIGHT}" width="{width:g}" '
        f'height="{_SPARK_HEIGHT}" role="img" aria-label="{escaped(label)}">{change}'
        f'<path class="value" d="{path}"/><circle class="value" cx="{x:g}" cy="{y:g}" r="2"/></svg>'
    )


# Timelines of incidents: a row for each group.


@dataclass(frozen=True, slots=True)
class Span:
    """One bar: label of its row, kind, start and end in days since the start of the chart, and tooltip.

    `end` is None if it is ongoing.
    """

    row: str
    kind: str
    start: float
    end: float | None
    title: str


_ROW_HEIGHT, _MAX_ROWS = 24, 12


def timeline(spans: Sequence[Span], days: float, dates: Sequence[str], label: str) -> Svg:
    """Return bars over `days`, a row for each row label; `dates` are evenly spaced labels.

    An ongoing one ends in an arrow. Rows beyond the twelfth are left out.
    """
    rows = list(dict.fromkeys(span.row for span in spans))[:_MAX_ROWS]
    scale = Scale(0, days, _LEFT, _RIGHT - 8)
    bottom = _ROW_HEIGHT * len(rows)
    axis, parts = list[str](), list[str]()
    for number, row in enumerate(rows):
        y = _ROW_HEIGHT * number + 12
        axis.append(_text(_LEFT - 8, y + 4, row, _END))
        parts.append(f'<path class="faint" d="M{_LEFT} {y}H{_RIGHT}"/>')
        for span in spans:
            if span.row == row:
                begin, end = scale(span.start), scale(days if span.end is None else span.end)
                arrow = "" if span.end is not None else "l7 7l-7 7"
                path = f"M{begin:g} {y - 7}H{max(end, begin + 4):g}{arrow or 'v14'}H{begin:g}z"
                parts.append(
                    f'<path class="{span.kind}" d="{path}"><title>{escaped(span.title)}</title></path>'
                )
    parts.append(f'<path class="rule" d="M{_LEFT} {bottom}H{_RIGHT}"/>')
    last = max(len(dates) - 1, 1)
    positions = [scale(days * step / last) for step in range(len(dates))]
    parts.append(_date_labels(bottom + 16, dates, positions))
    return _framed(bottom + 22, label, axis, parts)


# Graphs: columns of linked nodes, from left to right.


@dataclass(frozen=True, slots=True)
class Node:
    """Node of a graph: label, tooltip, address it links to, and below the label a note or a badge.

    `badge` is the address of a picture like `badge.svg`. Without `href`, it is the node the graph is about.
    """

    label: str
    title: str
    href: str
    note: str = ""
    badge: str = ""


_NODE_WIDTH, _NODE_HEIGHT, _NODE_GAP, _COLUMN_GAP = 152, 48, 12, 38
_HEADING_HEIGHT, _ASIDE = 22, 12
_MAX_LABEL = 22
# The right part of a badge, which says the state; the left part says "data".
BADGE_START, BADGE_WIDTH = 44, 148
_BADGE_HEIGHT, _BADGE_SCALE = 20, 0.9


def graph(
    columns: Sequence[tuple[str, Sequence[Node]]],
    links: Iterable[tuple[tuple[int, int], tuple[int, int]]],
    label: str,
) -> Svg:
    """Return a graph. `columns` have a heading and nodes; `links` join nodes by column and row.

    Empty columns are left out. It is not one picture but a group, since its nodes are links.
    """
    shown = [number for number, (_, nodes) in enumerate(columns) if nodes]
    lefts = {number: index * (_NODE_WIDTH + _COLUMN_GAP) + 1 for index, number in enumerate(shown)}
    step = _NODE_HEIGHT + _NODE_GAP
    tallest = max(len(nodes) for _, nodes in columns)
    width = len(shown) * (_NODE_WIDTH + _COLUMN_GAP) - _COLUMN_GAP + 2
    height = _HEADING_HEIGHT + tallest * step - _NODE_GAP + 2

    def top(column: int, row: int) -> float:
        return _HEADING_HEIGHT + (tallest - len(columns[column][1])) * step / 2 + row * step

    parts = ['<path class="edges" d="']
    for (from_column, from_row), (to_column, to_row) in links:
        begin = top(from_column, from_row) + _NODE_HEIGHT / 2
        end = top(to_column, to_row) + _NODE_HEIGHT / 2
        if from_column == to_column:
            # From the left edge and back to it, between the columns, beside the ends of the other links.
            x, aside = lefts[from_column], _ASIDE if begin < end else -_ASIDE
            begin, end = begin + aside, end - aside
            parts.append(f"M{x} {begin:g}C{x - 26} {begin:g} {x - 26} {end:g} {x - 1} {end:g}")
        else:
            x, target = lefts[from_column] + _NODE_WIDTH, lefts[to_column] - 1
            middle = (x + target) / 2
            parts.append(f"M{x} {begin:g}C{middle:g} {begin:g} {middle:g} {end:g} {target} {end:g}")
        parts.append("m-5-3.5l5 3.5-5 3.5")
    parts.append('"/>')
    for number in shown:
        heading, nodes = columns[number]
        parts.append(_text(lefts[number] + _NODE_WIDTH / 2, 11, heading, _MIDDLE))
        parts += [_node(node, lefts[number], top(number, row)) for row, node in enumerate(nodes)]
    return Svg(
        f'<svg class="chart graph" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="group" aria-label="{escaped(label)}">{"".join(parts)}</svg>'
    )


def _node(node: Node, x: float, y: float) -> str:
    """Return a node; what does not fit into it is clipped, since an inner `svg` hides its overflow."""
    short = node.label if len(node.label) <= _MAX_LABEL else f"{node.label[: _MAX_LABEL - 1]}…"
    rect = f'<rect x="1" y="1" width="{_NODE_WIDTH - 2}" height="{_NODE_HEIGHT - 2}" rx="6"/>'
    inner = _text(10, 18, short, ' class="name"') + (_text(10, 35, node.note) if node.note else "")
    if node.badge:
        inner += (
            f'<svg x="10" y="24" width="{BADGE_WIDTH * _BADGE_SCALE:g}" '
            f'height="{_BADGE_HEIGHT * _BADGE_SCALE:g}" '
            f'viewBox="{BADGE_START} 0 {BADGE_WIDTH} {_BADGE_HEIGHT}">'
            f'<image href="{escaped(node.badge)}" width="{BADGE_START + BADGE_WIDTH}" '
            f'height="{_BADGE_HEIGHT}" preserveAspectRatio="xMinYMid meet"/></svg>'
        )
    box = (
        f'<svg x="{x:g}" y="{y:g}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}">'
        f"<title>{escaped(node.title)}</title>{rect}{inner}</svg>"
    )
    return f'<a href="{escaped(node.href)}">{box}</a>' if node.href else f'<g class="own">{box}</g>'


# Heat strips: a row for each group, a cell for each day.


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One day of a row: its kind, the text in the cell, and a tooltip, "" for none.

    Kinds are `full` (all on time), `some`, `many` and `most` (not on time), `unknown` and `empty`.
    """

    kind: str
    text: str = ""
    title: str = ""


_CELL_HEIGHT, _CELL_GAP, _CELL_STEP = 22, 2, 24
_MAX_LABEL_CHARS, _LABEL_CHAR_WIDTH = 28, 6.8


def _labelled(
    labels: Sequence[tuple[float, str]],
    width: float,
    height: float,
    label: str,
    parts: Iterable[str],
    kind: str = "",
) -> Svg:
    """Return a chart and the labels of its rows, which stay where they are if the chart is scrolled.

    Labels are cut beyond 28 characters.
    """
    longest = min(max((len(text) for _, text in labels), default=0), _MAX_LABEL_CHARS)
    texts = "".join(
        _text(0, y, text if len(text) <= _MAX_LABEL_CHARS else f"{text[: _MAX_LABEL_CHARS - 1]}…")
        for y, text in labels
    )
    labels_width = round(longest * _LABEL_CHAR_WIDTH) + 12
    return Svg(
        f'<div class="labelled"><svg class="chart" width="{labels_width}" height="{height:g}" '
        f'aria-hidden="true">{texts}</svg>'
        f'<svg class="chart{kind}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escaped(label)}">{"".join(parts)}</svg></div>'
    )


def heat_strip(rows: Sequence[tuple[str, Sequence[HeatCell]]], dates: Sequence[str], label: str) -> Svg:
    """Return rows of cells with their labels, oldest first. `dates` are those of the cells.

    Cells differ by colour, and those that are not full by the text in them.
    """
    width = _CELL_STEP - _CELL_GAP
    outlines: dict[str, list[str]] = {}
    parts = []
    for number, (_, cells) in enumerate(rows):
        y = number * _CELL_HEIGHT + 1
        for column, cell in enumerate(cells):
            x = _CELL_STEP * column + 1
            outline = f"M{x} {y}h{width}v{_CELL_HEIGHT - _CELL_GAP}h-{width}z"
            if not cell.title:
                outlines.setdefault(cell.kind, []).append(outline)
                continue
            parts.append(
                f'<path class="{cell.kind}" d="{outline}"><title>{escaped(cell.title)}</title></path>'
            )
            if cell.text:
                parts.append(_text(x + width / 2, y + 14, cell.text, f' class="mid on-{cell.kind}"'))
    parts[:0] = [f'<path class="{kind}" d="{"".join(paths)}"/>' for kind, paths in outlines.items()]
    bottom = len(rows) * _CELL_HEIGHT
    parts.append(_period_labels(bottom + 15, dates, _CELL_STEP))
    labels = [(number * _CELL_HEIGHT + 15.0, name) for number, (name, _) in enumerate(rows)]
    return _labelled(labels, _CELL_STEP * len(dates), bottom + 20, label, parts, " heat")


def _period_labels(y: float, dates: Sequence[str], step: float) -> str:
    """Return some dates below periods of equal width, the first and the last among them."""
    positions = [step * (number + 0.5) for number in range(len(dates))]
    if positions:
        positions[0], positions[-1] = 0, step * len(dates)
    return _date_labels(y, dates, positions)


# Counts over time: a row of bars for each group, with the counts above.


@dataclass(frozen=True, slots=True)
class CountRow:
    """Counts of one group, oldest first, and the class of its bars."""

    label: str
    kind: str
    counts: Sequence[int]


_COUNTS_HEIGHT, _COUNTS_BAR, _COUNTS_STEP = 46, 24, 60


def counts(rows: Sequence[CountRow], dates: Sequence[str], label: str) -> Svg:
    """Return the counts of each group as bars on one scale; `dates` are the begins of their periods."""
    scale = Scale(0, max([number for row in rows for number in row.counts] + [1]), 0, _COUNTS_BAR)
    width = round(_COUNTS_STEP * 0.6, 1)
    parts = []
    for number, row in enumerate(rows):
        bottom = (number + 1) * _COUNTS_HEIGHT - 6
        path = ""
        for column, count in enumerate(row.counts):
            x, height = round(_COUNTS_STEP * (column + 0.2), 1), max(scale(count), 1.5)
            if count:
                path += f"M{x:g} {bottom}v-{height:g}h{width:g}v{height:g}z"
                parts.append(_text(round(x + width / 2, 1), bottom - height - 3, f"{count:,}", _MIDDLE))
        parts.append(f'<path class="{row.kind}" d="{path}"/>' if path else "")
        parts.append(f'<path class="faint" d="M0 {bottom}H{_COUNTS_STEP * len(dates)}"/>')
    bottom = len(rows) * _COUNTS_HEIGHT
    parts.append(_period_labels(bottom + 10, dates, _COUNTS_STEP))
    labels = [((number + 1) * _COUNTS_HEIGHT - 12.0, row.label) for number, row in enumerate(rows)]
    return _labelled(labels, _COUNTS_STEP * len(dates), bottom + 16, label, parts)


# Shares against objectives: a dot for what was reached, a stroke for the objective.


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share and its objective, both from 0 to 1, with the text at the end of the row."""

    label: str
    share: float
    objective: float
    text: str


_SHARE_LEFT, _SHARE_RIGHT, _SHARE_WIDTH, _SHARE_HEIGHT = 8, 480, 600, 24


def shares(rows: Sequence[ShareRow], label: str) -> Svg:
    """Return each share as a dot, or a cross if it is below its objective, which is a stroke.

    The scale ends at 100% and begins at a multiple of a tenth.
    """
    lowest = min([value for row in rows for value in (row.share, row.objective)] + [0.9])
    low = int(lowest * 10) / 10 if lowest < 1 else 0.9
    scale = Scale(low, 1, _SHARE_LEFT, _SHARE_RIGHT)
    parts = []
    for number, row in enumerate(rows):
        y = number * _SHARE_HEIGHT + 12
        x, goal = scale(row.share), scale(row.objective)
        is_below = row.share < row.objective
        kind = "missing" if is_below else "intime"
        parts.append(f'<path class="faint" d="M{_SHARE_LEFT} {y}H{_SHARE_RIGHT}"/>')
        parts.append(f'<path class="{"short" if is_below else "stem"}" d="M{goal:g} {y}H{x:g}"/>')
        parts.append(f'<path class="goal" d="M{goal:g} {y - 7}v14"/>')
        parts.append(mark(kind, x, y, f"{row.label}: {row.text}"))
        parts.append(_text(_SHARE_RIGHT + 10, y + 4, row.text))
    bottom = len(rows) * _SHARE_HEIGHT
    parts.append(f'<path class="rule" d="M{_SHARE_LEFT} {bottom}H{_SHARE_RIGHT}"/>')
    parts.append(_text(_SHARE_LEFT, bottom + 15, f"{100 * low:.0f}%"))
    parts.append(_text(_SHARE_RIGHT, bottom + 15, "100%", _END))
    labels = [(number * _SHARE_HEIGHT + 16.0, row.label) for number, row in enumerate(rows)]
    return _labelled(labels, _SHARE_WIDTH, bottom + 20, label, parts)


# Stacked columns, e.g. tables with a contract, with a draft, and without one.


@dataclass(frozen=True, slots=True)
class Stack:
    """Values of one column by the kinds of the chart, its date and tooltip."""

    values: Sequence[float]
    date: str
    title: str


_STACK_KINDS = ("bar", "half", "none")


def stacks(columns: Sequence[Stack], label: str) -> Svg:
    """Return up to three values of each column on top of each other: filled, hatched by lines, hollow."""
    top = max([sum(column.values) for column in columns] + [1])
    scale = Scale(0, top, _BARS_BOTTOM, _BARS_TOP)
    positions = _slots(len(columns))
    width = min((positions[1] - positions[0]) * 0.7 if len(positions) > 1 else 24, 24)
    parts = []
    for x, column in zip(positions, columns, strict=True):
        base = 0.0
        shapes = []
        for kind, value in zip(_STACK_KINDS, column.values, strict=True):
            bottom, y = scale(base), scale(base + value)
            base += value
            if value:
                left, height = x - width / 2, bottom - y
                size = f'width="{width:.1f}" height="{height:.1f}"'
                shapes.append(f'<rect class="{kind}" x="{left:.1f}" y="{y:g}" {size}/>')
                if kind == "half":
                    lines = "".join(f"M{left:.1f} {y + at:g}h{width:.1f}" for at in range(2, int(height), 4))
                    shapes.append(f'<path class="hatch" d="{lines}"/>' if lines else "")
        parts.append(f"<g><title>{escaped(column.title)}</title>{''.join(shapes)}</g>")
    parts.append(f'<path class="rule" d="M{_LEFT} {_BARS_BOTTOM}H{_RIGHT}"/>')
    axis = _value_labels([(_BARS_BOTTOM, "0"), (scale(top), f"{top:,.0f}")])
    parts.append(_date_labels(_BARS_BOTTOM + 16, [column.date for column in columns], positions))
    return _framed(_BARS_BOTTOM + 24, label, [axis], parts)
