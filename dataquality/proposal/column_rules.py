"""TABLE: what is proposed for a column, from what was seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dq.contracts.shared.counts import counted
from dq.dataquality.model.term import TEXTS
from dq.dataquality.proposal import bounds, policy
from dq.dataquality.proposal.facts import ColumnFacts, Proposal, TableFacts
from dq.dataquality.proposal.numbers import rounded, share
from dq.dataquality.proposal.outline import pattern_of
from dq.dataquality.proposal.sensitive import like_a_secret
from dq.dataquality.proposal.strength import (
    OPTIONS,
    TOP,
    few_seen,
    incomplete_list,
    is_constant,
    warning_count,
    warning_query,
    where,
    with_reason,
)

_FORMS = ("enum", f"{OPTIONS}.pattern", f"{OPTIONS}.format", "quality invalidValues")

# Printable ASCII, as a pattern that Java and ECMA-262 read alike.
PLAIN = "^[ -~]*$"


def of_column(column: ColumnFacts, table: TableFacts) -> list[Proposal]:
    """What is proposed for a column, but for keys; nothing for few rows and for one without a value."""
    if table.rows < policy.FEWEST_ROWS or column.filled == 0:
        return []
    return [replace(one, column=column.name) for rule in _RULES for one in rule(column, table)]


def _required(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if column.nulls or column.partition or closed & column.written:
        return
    # A column named like a key has the name as evidence too.
    weak = "" if policy.like_a_key(column.name) else few_seen(column, table)
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
    if column.filled < policy.FEWEST_ROWS or is_constant(column):
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
    closed = (f"{OPTIONS}.minLength", f"{OPTIONS}.maxLength")
    if longest is None or shortest is None or not column.written.isdisjoint(closed):
        return
    if not _free(column, table) or is_constant(column):
        return
    way = (*column.way, OPTIONS)
    if shortest == longest and column.different < policy.VALUES_OF_A_FORM:
        # Few values may be as long by chance.
        weak = with_reason(f"all are as long {where(table)}", f"fewer than {policy.VALUES_OF_A_FORM} values")
        if len(column.way) <= TOP and "quality sql" not in column.written:
            rule = warning_query(f"char_length({{property}}) <> {longest}")
            yield Proposal((*column.way, "quality"), "", rule, weak, f"{longest} long")
        return
    if shortest > 0:
        least = shortest if shortest == longest else 1
        said = "all are as long" if shortest == longest else f"the shortest {shortest}, none empty,"
        yield Proposal(way, "minLength", least, f"{said} {where(table)}", f"at least {least} long")
    if longest > 0:
        most = longest if shortest == longest else int(rounded(longest * policy.LENGTHS, True))
        yield Proposal(way, "maxLength", most, f"the longest {longest}", f"at most {most} long")


_RULES: tuple[Callable[[ColumnFacts, TableFacts], Iterator[Proposal]], ...] = (
    _required,
    _enum,
    _form,
    _lengths,
    _plain,
    bounds.of_numbers,
    bounds.of_times,
    _null_share,
)
