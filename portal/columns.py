"""Columns of an object as panels: type, promises, measured numbers, rules, and changes of the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from dq.contracts.metrics import UNUSUAL, Against
from dq.contracts.model import Property, SchemaObject
from dq.contracts.types import catalog_type
from dq.dataquality.clauses.quality_rule import (
    differ_only_in_date,
    median_and_reach,
    partition_time,
    rules_of,
)
from dq.dataquality.results import ROW_COUNT_CHECKS, PastResult
from dq.portal import formatting
from dq.portal.charts import Svg
from dq.portal.contracts import VersionChange
from dq.portal.product import ClauseStatus, ObjectFacts

MAX_COLUMNS = 400
"""Maximum number of columns of an object on a page."""
_MAX_DEPTH, _MAX_RULES, _MAX_CHANGES, _MAX_ROWS = 12, 12, 5, 14


@dataclass(frozen=True, slots=True)
class ColumnPanels:
    """Panels of an object's columns, the number left out, and sentences about those that changed.

    A sentence is (id of the panel, column, text).
    """

    panels: tuple[formatting.Values, ...]
    left_out: int
    changed: tuple[tuple[str, str, str], ...]


def column_panels(facts: ObjectFacts, changes: Sequence[VersionChange] = (), first: int = 0) -> ColumnPanels:
    """Return the panels of an object's columns. `first` is the number of its first column on the page."""
    rules, measures = _rules_by_column(facts), _measures_by_column(facts)
    panels, changed, count = [], [], 0
    for count, (prop, depth, path) in enumerate(_columns(facts.object), 1):
        if count > MAX_COLUMNS:
            continue
        id_ = column_id(first + count - 1)
        own_rules, own_measures = rules.get(path, []), measures.get(path, [])
        shifts = [measure["shift"] for measure in own_measures if measure["is_shifted"]]
        # The items of an array have no name.
        name = formatting.cut(prop.column or prop.name or "items", 200)
        changed += [(id_, formatting.cut(path, 200), text) for text in shifts]
        panels.append(
            {
                "id": id_,
                "name": name,
                "depth": min(depth, _MAX_DEPTH),
                "type": formatting.cut(_type(prop), 120),
                "marks": [label for label, holds in _promises(prop) if holds],
                "classification": formatting.cut(prop.classification, 80),
                "said": formatting.cut(prop.description, 500),
                "rules": own_rules[:_MAX_RULES],
                "rules_left": max(len(own_rules) - _MAX_RULES, 0),
                "failed": sum(rule["failed"] for rule in own_rules),
                "measures": own_measures,
                "is_shifted": bool(shifts),
                "changes": list(_changes(changes, f"{facts.object.name}.{path}")),
            }
        )
    return ColumnPanels(tuple(panels), max(count - MAX_COLUMNS, 0), tuple(changed))


def column_id(number: int) -> str:
    """Return the id of a column's panel on its page, which the search links to."""
    return f"c{number}"


def _columns(schema_object: SchemaObject) -> Iterator[tuple[Property, int, str]]:
    """Yield each column with its depth and path, nested ones after their parent."""
    stack: list[tuple[Property, int, str]] = [(prop, 0, "") for prop in reversed(schema_object.properties)]
    while stack:
        prop, depth, parent = stack.pop()
        path = f"{parent}.{prop.column}" if parent else prop.column
        yield prop, depth, path
        stack += [(inner, depth + 1, path) for inner in reversed(list(prop.children()))]


def _promises(prop: Property) -> tuple[tuple[str, bool | None], ...]:
    return (
        ("primary key", prop.primary_key),
        ("partition", prop.partitioned),
        ("never empty", prop.required),
        ("unique", prop.unique),
    )


def _type(prop: Property) -> str:
    if prop.properties or prop.items is not None or prop.map is not None:
        return prop.logical_type or "object"
    return str(catalog_type(prop))


def _changes(changes: Sequence[VersionChange], path: str) -> Iterator[formatting.Values]:
    """Yield the changes of a column in the versions of its contract, newest first."""
    texts = [
        (formatting.instant_from_iso(change.at), text.removeprefix(f"{path}: "))
        for change in changes
        for _, text in change.changes
        if text.startswith(f"{path}: ")
    ]
    for at, text in texts[:_MAX_CHANGES]:
        yield {"at": at, "text": formatting.cut(text, 300)}


def _rules_by_column(facts: ObjectFacts) -> dict[str, list[formatting.Values]]:
    """Return the enforced clauses of each column, with their last results, by the column's path."""
    rules: dict[str, list[formatting.Values]] = {}
    for clause in facts.clauses:
        account, past = clause.account, facts.past.get(clause.account.path, ())
        if account.property and clause.status is not ClauseStatus.DOCUMENTED:
            newest = next((result for result in reversed(past) if result is not None), None)
            allowed = newest.allowed if newest else facts.limits.get(account.path)
            lines, lines_left = ([], 0) if _is_measure(past) else formatting.value_sparklines(past)
            rules.setdefault(account.property, []).append(
                {
                    "clause": formatting.cut(account.clause, 200),
                    "failed": clause.status is ClauseStatus.BROKEN,
                    "results": formatting.rule_sparkline(past) if newest else None,
                    "lines": lines,
                    "lines_left": lines_left,
                    "newest": formatting.cut(newest.observed, 120) if newest else "",
                    "allowed": formatting.cut(allowed, 120),
                }
            )
    return rules


# What checks measured of a column: share of NULLs, distinct values, mean.


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured number of a column, with the time of its data."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class _Measure:
    """A measure of a column: its name, the words for a lasting rise and fall, and its numbers as text."""

    name: str
    rise: str
    fall: str
    show: Callable[[float], str]


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"


def _number(value: float) -> str:
    return f"{value:,.6g}"


_NULL_SHARE = _Measure("NULL share", "More NULLs", "Fewer NULLs", _share)
_NULLS = _Measure("NULLs", "More NULLs", "Fewer NULLs", _number)
_DISTINCT = _Measure("Distinct values", "More distinct values", "Fewer distinct values", _number)
_DISTINCT_SHARE = _Measure("Distinct share", "More distinct values", "Fewer distinct values", _share)
_MEAN = _Measure("Mean", "Higher mean", "Lower mean", _number)
# The first one of each line that has readings is shown.
_SHOWN = ((_NULL_SHARE, _NULLS), (_DISTINCT, _DISTINCT_SHARE), (_MEAN,))
_BY_NUMBER: Mapping[str | None, _Measure] = {
    "nullShare": _NULL_SHARE, "distinctCount": _DISTINCT, "mean": _MEAN,
}  # fmt: skip
# Measures of checks, by whether their unit is percent.
_BY_CHECK: Mapping[tuple[str, bool], _Measure] = {
    ("null_values", True): _NULL_SHARE,
    ("null_values", False): _NULLS,
    ("required", False): _NULLS,
    ("distinct_count", False): _DISTINCT,
    ("distinct_count", True): _DISTINCT_SHARE,
    ("distinct_ratio", False): _DISTINCT_SHARE,
    ("distinct_ratio", True): _DISTINCT_SHARE,
    ("mean", False): _MEAN,
}
_PERCENT = ("percent", "%")

Scope = tuple[str, datetime]
"""One run on some data: its scope and time."""


def _measures_by_column(facts: ObjectFacts) -> dict[str, list[formatting.Values]]:
    """Return what checks measured of each column, by its path."""
    units = {rule.quality.path(): rule.quality.unit or "" for rule in rules_of(facts.object) if rule.property}
    rows = Counter(
        {
            (result.scope, result.at): result.value
            for result in facts.quality.past
            if result.check in ROW_COUNT_CHECKS and result.value
        }
    )
    readings: dict[str, dict[_Measure, list[Reading]]] = {}
    for clause in facts.clauses:
        account = clause.account
        if account.property and clause.status is not ClauseStatus.DOCUMENTED:
            of_column = readings.setdefault(account.property, {})
            for measure, reading in _readings(
                facts.past.get(account.path, ()), units.get(account.path, ""), rows
            ):
                of_column.setdefault(measure, []).append(reading)
    return {
        path: [
            _values(measure, _in_order(of_column[measure]))
            for choice in _SHOWN
            for measure in [measure for measure in choice if measure in of_column][:1]
        ]
        for path, of_column in readings.items()
        if of_column
    }


def _readings(
    past: Sequence[PastResult | None], unit: str, rows: Mapping[Scope, float]
) -> Iterator[tuple[_Measure, Reading]]:
    """Yield the measured numbers of a clause; NULLs are a share where the same run counted the rows.

    Only of partitions that differ from the newest one in their date alone, or of the whole table.
    """
    results = [result for result in past if result is not None and result.partition is not None]
    for result in results:
        if not differ_only_in_date(result.partition or (), results[-1].partition or ()):
            continue
        at = (partition_time(result.partition) if result.partition else None) or result.at
        for (number, *_), value in result.numbers.items() if result.check == UNUSUAL else ():
            if number in _BY_NUMBER:
                yield _BY_NUMBER[number], Reading(at, value)
        is_percent = unit in _PERCENT
        measure = _BY_CHECK.get((result.check, is_percent))
        if measure is None or result.value is None:
            continue
        counted = rows.get((result.scope, result.at))
        if measure is _NULLS and counted:
            yield _NULL_SHARE, Reading(at, result.value / counted)
        else:
            yield measure, Reading(at, result.value / 100 if is_percent else result.value)


def _is_measure(past: Sequence[PastResult | None]) -> bool:
    """Return True if all numbers of a clause are measures of its column."""
    unmeasured = {
        number for result in past if result for number, *_ in result.numbers if number not in _BY_NUMBER
    }
    return not unmeasured and any(_readings(past, "", {}))


def _in_order(readings: Sequence[Reading]) -> list[Reading]:
    """Return one reading for each time, oldest first: several rules measure the same."""
    return sorted({reading.at: reading for reading in readings}.values(), key=lambda reading: reading.at)


_USUAL = Against("usual")


def changed_at(values: Sequence[float]) -> int | None:
    """Return since which value all are outside of what was usual before, on the same side, or None.

    The usual range is that of the rule `usual`: at least seven earlier values, their median, and the larger
    of 3.5 robust standard deviations and a fifth of the median.
    """
    for start in range(_USUAL.minimum, len(values)):
        middle, reach = median_and_reach(values[max(start - _USUAL.runs, 0) : start], _USUAL)
        if min(values[start:]) > middle + reach or max(values[start:]) < middle - reach:
            return start
    return None


def _values(measure: _Measure, readings: Sequence[Reading]) -> formatting.Values:
    recent = readings[-formatting.MAX_CYCLES :]
    numbers = [reading.value for reading in recent]
    shown = measure.show
    start = changed_at(numbers)
    if start is not None:
        earlier, later = median(numbers[:start]), median(numbers[start:])
        words = measure.rise if later > earlier else measure.fall
        # A single check may be an outlier.
        since = "in the newest check," if start == len(numbers) - 1 else "since"
        text = f"{words} {since} {recent[start].at:%Y-%m-%d}: {shown(numbers[-1])}, before {shown(earlier)}."
    elif len(numbers) > _USUAL.minimum:
        text = f"No lasting change in the last {len(numbers)} checks."
    else:
        text = f"Too few checks to compare: {len(numbers)} of {_USUAL.minimum + 1}."
    chart: Svg | None = None
    if len(numbers) > 1:
        chart = formatting.line_of(numbers, measure.name, shown, start)
    return {
        "name": measure.name,
        "newest": shown(numbers[-1]),
        "chart": chart,
        "shift": text,
        "is_shifted": start is not None,
        "rows": [
            (f"{reading.at:%Y-%m-%d}", shown(reading.value)) for reading in reversed(recent[-_MAX_ROWS:])
        ],
        "rows_left": max(len(recent) - _MAX_ROWS, 0),
    }
