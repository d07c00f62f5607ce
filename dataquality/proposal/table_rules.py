"""What is proposed for a table: its keys, and how many rows it has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal

from dq.contracts.sql import text as sql
from dq.dataquality.model.term import INTEGERS, TEXTS
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.column_rules import of_column
from dq.dataquality.proposal.facts import ColumnFacts, Proposal, TableFacts
from dq.dataquality.proposal.numbers import rounded, share
from dq.dataquality.proposal.strength import TOP, where

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
    if twice >= policy.BY_CHANCE:
        return f"chance would make about {rounded(Decimal(twice), False):,}"
    if policy.like_a_key(column.name) and rows >= policy.ROWS_OF_A_KEY:
        return "it is named like a key"
    return ""


def _space(column: ColumnFacts) -> float:
    """How many values there could be, as far as it can be told: 0 where it cannot."""
    if column.type.name in TEXTS:
        shape = column.shape if len(column.shape) <= policy.LONGEST_SHAPE else ""
        return math.prod(_SIZES.get(sign, 1) for sign in shape) if shape else 0
    least = [int(one.least) for one in column.seen if isinstance(one.least, int)]
    greatest = [int(one.greatest) for one in column.seen if isinstance(one.greatest, int)]
    return max(greatest) - min(least) + 1 if least and greatest else 0


def _nearly(different: int, rows: int) -> bool:
    return rows >= policy.FEWEST_ROWS and different >= NEARLY * rows


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
    if any(known & column.written for column in table.columns) or table.rows < policy.FEWEST_ROWS:
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
        if len(one.way) == TOP and one.type.name in COMPARED and share(one.nulls, one.rows) < policy.FEW_NULLS
    )
    if whole and _nearly(table.alike, table.rows) and table.rows <= policy.MOST_ROWS_ALIKE:
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
    if least < policy.FEWEST_ROWS:
        return
    low, high = int(rounded(least / policy.SIZES, False)), int(rounded(most * policy.SIZES, True))
    band: dict[str, object]
    if not table.partitioned:
        band = {"metric": "rowCount", "mustBeBetween": [low, high], "severity": "warning"}
        yield Proposal(way, "", band, f"{least:,} rows, once seen", f"{low:,} to {high:,} rows")
    elif table.keys and len(table.sizes) >= policy.GROWTH:
        names = ", ".join(sql.name(name) for name in table.keys)
        # The names are quoted.
        grouped = f"SELECT {names} FROM {{object}} GROUP BY {names}"  # noqa: S608
        inner = f"{grouped} HAVING count(*) NOT BETWEEN {low} AND {high}"
        query = f"SELECT count(*) FROM ({inner}) AS odd"  # noqa: S608
        band = {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
        seen = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        told = f"{seen} rows a partition {where(table)}"
        yield Proposal(way, "", band, told, f"{low:,} to {high:,} rows a partition")
