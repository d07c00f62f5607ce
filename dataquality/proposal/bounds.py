"""Bounds of numbers and times, proposed from the ends of each partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dq.dataquality.model.term import INTEGERS, NUMBERS
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.facts import ColumnFacts, Proposal, SeenValues, TableFacts
from dq.dataquality.proposal.numbers import Number, first_day, room
from dq.dataquality.proposal.strength import (
    OPTIONS,
    TOP,
    few_seen,
    is_constant,
    unstable_ends,
    warning_bound,
    warning_query,
    where,
    with_reason,
)

TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def of_numbers(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    """Yield the least and the greatest number, or warnings of them where the evidence is weak."""
    if column.type.name not in NUMBERS or column.partition or column.sensitive:
        return
    ends = _ends(column.seen)
    if ends is None or not all(isinstance(one, int | float | Decimal) for one in ends):
        return
    least, greatest = ends
    assert isinstance(least, int | float | Decimal)
    assert isinstance(greatest, int | float | Decimal)
    low, high = room(least, greatest)
    shown = f"smallest {_shown(least)} {where(table)}", f"largest {_shown(greatest)} {where(table)}"
    world = policy.of_the_world(column.name)
    weak = few_seen(column, table)
    reasons = tuple(weak or reason for reason in unstable_ends(*_series(column.seen)))
    if world is not None and world[0] <= least and greatest <= world[1]:
        # Known without the data.
        (low, high), reasons = world, ("", "")
    elif is_constant(column):
        return
    down, up = _grows(column.seen)
    lower = not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum", "quality min"} & column.written
    upper = not {f"{OPTIONS}.maximum", f"{OPTIONS}.exclusiveMaximum", "quality max"} & column.written
    if lower and (not down or low == 0):
        yield from _bound(column, "minimum", low, shown[0], reasons[0])
    if upper and not up and not _counts_up(column):
        yield from _bound(column, "maximum", high, shown[1], reasons[1])


def _bound(column: ColumnFacts, key: str, bound: int | float, evidence: str, weak: str) -> Iterator[Proposal]:
    says, evidence = f"at {'least' if key == 'minimum' else 'most'} {bound}", with_reason(evidence, weak)
    if not weak:
        yield Proposal((*column.way, OPTIONS), key, bound, evidence, says)
    elif len(column.way) <= TOP:
        operator = "mustBeGreaterOrEqualTo" if key == "minimum" else "mustBeLessOrEqualTo"
        rule = warning_bound("min" if key == "minimum" else "max", operator, bound)
        yield Proposal((*column.way, "quality"), "", rule, evidence, says)


def _counts_up(column: ColumnFacts) -> bool:
    """Whether it is a number that is given to each row, and so has no greatest."""
    return (
        column.type.name in INTEGERS
        and column.different > 0.9 * column.filled
        and column.filled >= policy.ROWS_OF_A_KEY
    )


def _shown(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"


def _ends(seen: tuple[SeenValues, ...]) -> tuple[object, object] | None:
    least, greatest = _series(seen)
    return (min(least), max(greatest)) if least and len(least) == len(greatest) else None


def _grows(seen: tuple[SeenValues, ...]) -> tuple[bool, bool]:
    """Whether the least and the greatest go on from partition to partition, down and up."""
    least, greatest = _series(seen)
    if len(greatest) < policy.GROWTH:
        return False, False
    down = least[0] > least[-1] and all(a >= b for a, b in pairwise(least))
    up = greatest[0] < greatest[-1] and all(a <= b for a, b in pairwise(greatest))
    return down, up


def _series(seen: tuple[SeenValues, ...]) -> tuple[list[Any], list[Any]]:
    """The least and the greatest of each partition, all of the column's one type, which has an order."""
    return (
        [one.least for one in seen if one.least is not None],
        [one.greatest for one in seen if one.greatest is not None],
    )


def of_times(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    """Yield the first day or instant, and that none lies in the future."""
    if column.type.name not in TIMES or column.partition or column.sensitive:
        return
    ends = _ends(column.seen)
    if ends is None or is_constant(column):
        return
    least, greatest = ends
    assert isinstance(least, dt.date)
    assert isinstance(greatest, dt.date)
    earliest, latest = _day(least), _day(greatest)
    if not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum"} & column.written:
        day = first_day(earliest, latest)
        bound = f"{day.isoformat()}" + ("" if column.type.name == "date" else "T00:00:00Z")
        weak, says = few_seen(column, table), f"not before {day}"
        evidence = with_reason(f"the earliest {earliest} {where(table)}", weak)
        if not weak:
            yield Proposal((*column.way, OPTIONS), "minimum", bound, evidence, says)
        elif "quality sql" not in column.written and len(column.way) <= TOP:
            literal = f"{'DATE' if column.type.name == 'date' else 'TIMESTAMP'} '{bound}'"
            rule = warning_query(f"{{property}} < {literal}")
            yield Proposal((*column.way, "quality"), "", rule, evidence, says)
    if "quality sql" in column.written or len(column.way) > TOP:
        return
    if table.now is not None and latest <= table.now.date() and not policy.may_lie_ahead(column.name):
        ahead = "current_date()" if column.type.name == "date" else "current_timestamp()"
        told = f"none lay ahead {where(table)}, the latest {latest}"
        # What stands in braces is put in by the check, quoted.
        query = f"SELECT count(*) FROM {{object}} WHERE {{property}} > {ahead}"  # noqa: S608
        rule = {"type": "sql", "query": query, "mustBe": 0}
        yield Proposal((*column.way, "quality"), "", rule, told, "not in the future")


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value
