"""TABLE: what is proposed for a column, from what was seen of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dq.contracts.shared.counts import counted
from dq.dataquality.model.term import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.facts import ColumnFacts, Proposal, SeenValues, TableFacts
from dq.dataquality.proposal.numbers import Number, first_day, room, rounded, share
from dq.dataquality.proposal.outline import pattern_of
from dq.dataquality.proposal.sensitive import like_a_secret

TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_OPTIONS = "logicalTypeOptions"
_FORMS = ("enum", f"{_OPTIONS}.pattern", f"{_OPTIONS}.format", "quality invalidValues")

# Printable ASCII, as a pattern that Java and ECMA-262 read alike.
PLAIN = "^[ -~]*$"


def of_column(column: ColumnFacts, table: TableFacts) -> list[Proposal]:
    """What is proposed for a column, but for keys; nothing for few rows and for one without a value."""
    if table.rows < policy.FEWEST_ROWS or column.filled == 0:
        return []
    return [replace(one, column=column.name) for rule in _RULES for one in rule(column, table)]


def where(table: TableFacts) -> str:
    """How much history the evidence is: partitions, or the rows of the one snapshot."""
    if not table.partitioned:
        return f"in {table.rows:,} rows"
    count = len(table.sizes)
    return f"in {count:,} of {counted(count, 'partition')}"


def _required(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if column.nulls or column.partition or closed & column.written:
        return
    yield Proposal(column.way, "required", True, f"no NULL {where(table)}", "required")


def _null_share(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if not column.nulls or closed & column.written or len(column.way) > TOP:
        return
    shares = [share(one.nulls, one.rows) for one in column.seen if one.rows]
    least, most = min(shares), max(shares)
    bound = rounded(policy.NULLS_FACTOR * most + policy.NULLS_POINTS, True)
    if bound > policy.NULLS_MOST:
        return
    told = f"{most:g} %" if least == most else f"{least:g} to {most:g} %"
    rule = {
        "metric": "nullValues",
        "mustBeLessOrEqualTo": bound,
        "unit": "percent",
        "severity": "warning",
    }
    yield Proposal((*column.way, "quality"), "", rule, f"{told} NULL {where(table)}", "share of NULLs")


# schema, its position, properties, its position: a rule of a struct's field would count the struct's NULLs.
TOP = 4


def _enum(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if not _listed(column, table) or not column.written.isdisjoint(_FORMS):
        return
    values = column.values or {}
    rarest = min(rows for _, rows in values.values())
    number = f"{counted(len(values), 'value')} {where(table)}"
    listed = [{"value": value} for value in sorted(values)]
    evidence = f"{number}, the rarest in {counted(rarest, 'row')}"
    if table.partitioned:
        evidence += f" of {min(count for count, _ in values.values()):,} partitions"
    yield Proposal(column.way, "enum", listed, evidence, f"one of {len(values)} values")


def _listed(column: ColumnFacts, table: TableFacts) -> bool:
    """Whether all values are known: few, none of them rare, and none that should not be written down."""
    values = column.values
    if not values or column.sensitive or column.type.name not in TEXTS or column.partition:
        return False
    if column.filled < policy.FEWEST_ROWS:
        return False
    parts = policy.PARTITIONS_OF_A_VALUE if len(table.sizes) > 1 else 1
    return len(values) <= policy.MOST_VALUES and all(
        count >= parts and rows >= policy.ROWS_OF_A_VALUE and _writable(value)
        for value, (count, rows) in values.items()
    )


def _writable(value: str) -> bool:
    return (
        0 < len(value) <= policy.LONGEST_VALUE
        and value.isprintable()
        and "${" not in value
        and "{{" not in value
        and not like_a_secret(value)
    )


def _form(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if (
        column.type.name not in TEXTS
        or column.partition
        or column.different < policy.VALUES_OF_A_FORM
        or _listed(column, table)
        or not column.written.isdisjoint(_FORMS)
    ):
        return
    name = next((one for one in FORMATS if one in column.forms), "")
    way = (*column.way, _OPTIONS)
    if name:
        yield Proposal(way, "format", name, f"all values {where(table)}", f"format {name}")
        return
    pattern = pattern_of(column.shape)
    if pattern:
        told = f"the one form of about {rounded(column.different, False)} values {where(table)}"
        yield Proposal(way, "pattern", pattern, told, f"pattern {pattern}")


# The narrower goes first.
FORMATS = ("uuid", "date-time", "date", "email", "ipv4", "ipv6", "uri")


def _plain(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if not column.plain or column.different < policy.VALUES_OF_A_FORM or not _free(column, table):
        return
    rule = {
        "metric": "invalidValues",
        "arguments": {"pattern": PLAIN},
        "mustBe": 0,
        "severity": "warning",
    }
    told = f"no sign beyond ASCII {where(table)}"
    yield Proposal((*column.way, "quality"), "", rule, told, "printable ASCII")


def _free(column: ColumnFacts, table: TableFacts) -> bool:
    """Whether it holds texts that no list, format or pattern describes."""
    if column.type.name not in TEXTS or column.partition or not column.written.isdisjoint(_FORMS):
        return False
    return not _listed(column, table) and not any(_form(column, table))


def _lengths(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    longest = max((one.longest for one in column.seen if one.longest is not None), default=None)
    shortest = min((one.shortest for one in column.seen if one.shortest is not None), default=None)
    closed = (f"{_OPTIONS}.minLength", f"{_OPTIONS}.maxLength")
    if longest is None or shortest is None or not column.written.isdisjoint(closed):
        return
    if not _free(column, table):
        return
    way = (*column.way, _OPTIONS)
    if shortest > 0:
        least = shortest if shortest == longest else 1
        said = "all are as long" if shortest == longest else f"the shortest {shortest}, none empty,"
        yield Proposal(way, "minLength", least, f"{said} {where(table)}", f"at least {least} long")
    if longest > 0:
        most = longest if shortest == longest else int(rounded(longest * policy.LENGTHS, True))
        yield Proposal(way, "maxLength", most, f"the longest {longest}", f"at most {most} long")


def _numbers(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
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
    if world is not None and world[0] <= least and greatest <= world[1]:
        low, high = world
    down, up = _grows(column.seen)
    way = (*column.way, _OPTIONS)
    lower = not {f"{_OPTIONS}.minimum", f"{_OPTIONS}.exclusiveMinimum"} & column.written
    upper = not {f"{_OPTIONS}.maximum", f"{_OPTIONS}.exclusiveMaximum"} & column.written
    if lower and (not down or low == 0):
        yield Proposal(way, "minimum", low, shown[0], f"at least {low}")
    if upper and not up and not _counts_up(column):
        yield Proposal(way, "maximum", high, shown[1], f"at most {high}")


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


def _times(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if column.type.name not in TIMES or column.partition or column.sensitive:
        return
    ends = _ends(column.seen)
    if ends is None:
        return
    least, greatest = ends
    assert isinstance(least, dt.date)
    assert isinstance(greatest, dt.date)
    earliest, latest = _day(least), _day(greatest)
    if not {f"{_OPTIONS}.minimum", f"{_OPTIONS}.exclusiveMinimum"} & column.written:
        day = first_day(earliest, latest)
        bound = f"{day.isoformat()}" + ("" if column.type.name == "date" else "T00:00:00Z")
        told = f"the earliest {earliest} {where(table)}"
        yield Proposal((*column.way, _OPTIONS), "minimum", bound, told, f"not before {day}")
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


_RULES: tuple[Callable[[ColumnFacts, TableFacts], Iterator[Proposal]], ...] = (
    _required,
    _enum,
    _form,
    _lengths,
    _plain,
    _numbers,
    _times,
    _null_share,
)
