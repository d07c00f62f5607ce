"""What is proposed for columns and tables, from what was seen of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dq.contracts.shared.outcome import counted
from dq.contracts.sql import text as sql
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.proposal import facts
from dq.dataquality.proposal.facts import (
    OPTIONS,
    TOP,
    ColumnFacts,
    Number,
    Proposal,
    SeenValues,
    TableFacts,
    few_seen,
    first_day,
    incomplete_list,
    is_constant,
    like_a_secret,
    pattern_of,
    room,
    rounded,
    share,
    unstable_ends,
    warning_bound,
    warning_count,
    warning_query,
    where,
    with_reason,
)

# Bounds of numbers and times, proposed from the ends of each partition.

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
    world = facts.of_the_world(column.name)
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
        and column.filled >= facts.ROWS_OF_A_KEY
    )


def _shown(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"


def _ends(seen: tuple[SeenValues, ...]) -> tuple[object, object] | None:
    least, greatest = _series(seen)
    return (min(least), max(greatest)) if least and len(least) == len(greatest) else None


def _grows(seen: tuple[SeenValues, ...]) -> tuple[bool, bool]:
    """Whether the least and the greatest go on from partition to partition, down and up."""
    least, greatest = _series(seen)
    if len(greatest) < facts.GROWTH:
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
    if table.now is not None and latest <= table.now.date() and not facts.may_lie_ahead(column.name):
        ahead = "current_date()" if column.type.name == "date" else "current_timestamp()"
        told = f"none lay ahead {where(table)}, the latest {latest}"
        # What stands in braces is put in by the check, quoted.
        query = f"SELECT count(*) FROM {{object}} WHERE {{property}} > {ahead}"  # noqa: S608
        rule = {"type": "sql", "query": query, "mustBe": 0}
        yield Proposal((*column.way, "quality"), "", rule, told, "not in the future")


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


# TABLE: what is proposed for a column, from what was seen of it.

_FORMS = ("enum", f"{OPTIONS}.pattern", f"{OPTIONS}.format", "quality invalidValues")

# Printable ASCII, as a pattern that Java and ECMA-262 read alike.
PLAIN = "^[ -~]*$"


def of_column(column: ColumnFacts, table: TableFacts) -> list[Proposal]:
    """What is proposed for a column, but for keys; nothing for few rows and for one without a value."""
    if table.rows < facts.FEWEST_ROWS or column.filled == 0:
        return []
    return [replace(one, column=column.name) for rule in _RULES for one in rule(column, table)]


def _required(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if column.nulls or column.partition or closed & column.written:
        return
    # A column named like a key has the name as evidence too.
    weak = "" if facts.like_a_key(column.name) else few_seen(column, table)
    evidence = with_reason(f"no NULL {where(table)}", weak)
    if not weak:
        yield Proposal(column.way, "required", True, evidence, "required")
    elif len(column.way) <= TOP:
        yield Proposal((*column.way, "quality"), "", warning_count("nullValues"), evidence, "no NULL")


def _null_share(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if not column.nulls or closed & column.written or len(column.way) > TOP:
        return
    shares = [share(one.nulls, one.rows) for one in column.seen if one.rows]
    least, most = min(shares), max(shares)
    bound = rounded(facts.NULLS_FACTOR * most + facts.NULLS_POINTS, True)
    if bound > facts.NULLS_MOST:
        return
    told = f"{most:g} %" if least == most else f"{least:g} to {most:g} %"
    rule = {
        "metric": "nullValues",
        "mustBeLessOrEqualTo": bound,
        "unit": "percent",
        "severity": "warning",
    }
    yield Proposal((*column.way, "quality"), "", rule, f"{told} NULL {where(table)}", "share of NULLs")


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
    weak, says = incomplete_list(column, table), f"one of {len(values)} values"
    evidence = with_reason(evidence, weak)
    if not weak:
        yield Proposal(column.way, "enum", listed, evidence, says)
    elif len(column.way) <= TOP:
        rule = warning_count("invalidValues", {"validValues": sorted(values)})
        yield Proposal((*column.way, "quality"), "", rule, evidence, says)


def _listed(column: ColumnFacts, table: TableFacts) -> bool:
    """Whether all values are known: few, none of them rare, and none that should not be written down."""
    values = column.values
    if not values or column.sensitive or column.type.name not in TEXTS or column.partition:
        return False
    if column.filled < facts.FEWEST_ROWS or is_constant(column):
        return False
    parts = facts.PARTITIONS_OF_A_VALUE if len(table.sizes) > 1 else 1
    return len(values) <= facts.MOST_VALUES and all(
        count >= parts and rows >= facts.ROWS_OF_A_VALUE and _writable(value)
        for value, (count, rows) in values.items()
    )


def _writable(value: str) -> bool:
    return (
        0 < len(value) <= facts.LONGEST_VALUE
        and value.isprintable()
        and "${" not in value
        and "{{" not in value
        and not like_a_secret(value)
    )


def _form(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if (
        column.type.name not in TEXTS
        or column.partition
        or column.different < facts.VALUES_OF_A_FORM
        or _listed(column, table)
        or not column.written.isdisjoint(_FORMS)
    ):
        return
    name = next((one for one in FORMATS if one in column.forms), "")
    way = (*column.way, OPTIONS)
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
    if not column.plain or column.different < facts.VALUES_OF_A_FORM or not _free(column, table):
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
    closed = (f"{OPTIONS}.minLength", f"{OPTIONS}.maxLength")
    if longest is None or shortest is None or not column.written.isdisjoint(closed):
        return
    if not _free(column, table) or is_constant(column):
        return
    way = (*column.way, OPTIONS)
    if shortest == longest and column.different < facts.VALUES_OF_A_FORM:
        # Few values may be as long by chance.
        weak = with_reason(f"all are as long {where(table)}", f"fewer than {facts.VALUES_OF_A_FORM} values")
        if len(column.way) <= TOP and "quality sql" not in column.written:
            rule = warning_query(f"char_length({{property}}) <> {longest}")
            yield Proposal((*column.way, "quality"), "", rule, weak, f"{longest} long")
        return
    if shortest > 0:
        least = shortest if shortest == longest else 1
        said = "all are as long" if shortest == longest else f"the shortest {shortest}, none empty,"
        yield Proposal(way, "minLength", least, f"{said} {where(table)}", f"at least {least} long")
    if longest > 0:
        most = longest if shortest == longest else int(rounded(longest * facts.LENGTHS, True))
        yield Proposal(way, "maxLength", most, f"the longest {longest}", f"at most {most} long")


_RULES: tuple[Callable[[ColumnFacts, TableFacts], Iterator[Proposal]], ...] = (
    _required,
    _enum,
    _form,
    _lengths,
    _plain,
    of_numbers,
    of_times,
    _null_share,
)


# What is proposed for a table: its keys, and how many rows it has.

_SIZES = {"A": 26, "a": 26, "9": 10}
KEYED = INTEGERS | TEXTS | {"date", "timestamp", "timestamp_ntz", "decimal", "boolean"}
TOGETHER = "together unique"
"""What is said of a key of several columns."""
COMPARED = KEYED | {"float", "double"}
# Estimates of how many values there are err by some percent.
NEARLY = 0.9


def proposals(table: TableFacts) -> list[Proposal]:
    """All that is proposed: of each column in the order of the contract, then of the table."""
    keys = {one.column: one for one in _unique(table)}
    made: list[Proposal] = []
    for column in table.columns:
        own = of_column(column, table)
        first = 1 if own and own[0].key == "required" else 0
        made += own[:first] + ([keys[column.name]] if column.name in keys else []) + own[first:]
    return [*made, *_together(table, bool(keys)), *_counts(table)]


def _unique(table: TableFacts) -> Iterator[Proposal]:
    for column in table.columns:
        if column.partition or column.nulls or {"unique", "primaryKey"} & column.written:
            continue
        if "quality duplicateValues" in column.written or not _nearly(column.different, table.rows):
            continue
        why = _why(column, table.rows)
        if why:
            evidence = f"no value twice in {table.rows:,} rows; {why}"
            yield Proposal(column.way, "unique", True, evidence, "unique", column.name)


def _why(column: ColumnFacts, rows: int) -> str:
    """Why it is no chance that no value comes twice; "" where it may be one."""
    if column.type.name not in INTEGERS | TEXTS:
        return ""
    if "uuid" in column.forms:
        return "they are made to be so"
    space = _space(column)
    twice = rows * rows / (2 * space) if space else 0
    if twice >= facts.BY_CHANCE:
        return f"chance would make about {rounded(Decimal(twice), False):,}"
    if facts.like_a_key(column.name) and rows >= facts.ROWS_OF_A_KEY:
        return "it is named like a key"
    return ""


def _space(column: ColumnFacts) -> float:
    """How many values there could be, as far as it can be told: 0 where it cannot."""
    if column.type.name in TEXTS:
        shape = column.shape if len(column.shape) <= facts.LONGEST_SHAPE else ""
        return math.prod(_SIZES.get(sign, 1) for sign in shape) if shape else 0
    least = [int(one.least) for one in column.seen if isinstance(one.least, int)]
    greatest = [int(one.greatest) for one in column.seen if isinstance(one.greatest, int)]
    return max(greatest) - min(least) + 1 if least and greatest else 0


def _nearly(different: int, rows: int) -> bool:
    return rows >= facts.FEWEST_ROWS and different >= NEARLY * rows


def keyed(table: TableFacts) -> list[ColumnFacts]:
    """The columns that a key of several could have, those with the most values first."""
    found = [
        one
        for one in table.columns
        if one.type.name in KEYED and not one.nulls and one.different > 1 and len(one.way) == TOP
    ]
    return sorted(found, key=lambda one: -one.different)


def _together(table: TableFacts, single: bool) -> Iterator[Proposal]:
    """A key of several columns, else that no two rows are alike."""
    known = {"primaryKey", "unique"}
    if single or "quality duplicateValues" in table.written:
        return
    if any(known & column.written for column in table.columns) or table.rows < facts.FEWEST_ROWS:
        return
    if table.pairs:
        names = table.pairs[0]
        sizes = {one.name: one.different for one in table.columns}
        twice = Decimal(table.rows) ** 2 / (2 * math.prod(sizes[name] for name in names))
        why = f"none twice in {table.rows:,} rows; chance would make about {rounded(twice, False):,}"
        yield _no_duplicates(table, names, why, "error")
        return
    # A row with NULL in the key repeats nothing, so that a column of many would excuse many rows.
    whole = tuple(
        one.name
        for one in table.columns
        if len(one.way) == TOP and one.type.name in COMPARED and share(one.nulls, one.rows) < facts.FEW_NULLS
    )
    if whole and _nearly(table.alike, table.rows) and table.rows <= facts.MOST_ROWS_ALIKE:
        yield _no_duplicates(table, whole, f"no two of {table.rows:,} rows are alike", "warning")


def _no_duplicates(table: TableFacts, names: tuple[str, ...], why: str, severity: str) -> Proposal:
    rule: dict[str, object] = {
        "metric": "duplicateValues",
        "arguments": {"properties": list(names)},
        "mustBe": 0,
    }
    if severity != "error":
        rule["severity"] = severity
    says = TOGETHER if severity == "error" else "no row twice"
    return Proposal((*table.way, "quality"), "", rule, why, says)


def _counts(table: TableFacts) -> Iterator[Proposal]:
    if "quality rowCount" in table.written or not table.sizes or min(table.sizes) == 0:
        return
    way = (*table.way, "quality")
    least, most = min(table.sizes), max(table.sizes)
    some: Mapping[str, object] = {"metric": "rowCount", "mustBeGreaterThan": 0}
    yield Proposal(way, "", some, f"never empty {where(table)}", "some rows")
    if least < facts.FEWEST_ROWS:
        return
    low, high = int(rounded(least / facts.SIZES, False)), int(rounded(most * facts.SIZES, True))
    band: dict[str, object]
    if not table.partitioned:
        band = {"metric": "rowCount", "mustBeBetween": [low, high], "severity": "warning"}
        yield Proposal(way, "", band, f"{least:,} rows, once seen", f"{low:,} to {high:,} rows")
    elif table.keys and len(table.sizes) >= facts.GROWTH:
        names = ", ".join(sql.name(name) for name in table.keys)
        # The names are quoted.
        grouped = f"SELECT {names} FROM {{object}} GROUP BY {names}"  # noqa: S608
        inner = f"{grouped} HAVING count(*) NOT BETWEEN {low} AND {high}"
        query = f"SELECT count(*) FROM ({inner}) AS odd"  # noqa: S608
        band = {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
        seen = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        told = f"{seen} rows a partition {where(table)}"
        yield Proposal(way, "", band, told, f"{low:,} to {high:,} rows a partition")
