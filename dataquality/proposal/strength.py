"""Strength of the evidence for a rule: an error, a warning where it is weak, or no rule.

The statistics are simple enough to check by hand:

- Rule of three: after `n` rows without an exception, up to `3 / n` of all rows may be exceptions (at 95 %).
  `policy.ROWS_OF_AN_ERROR` rows bound that share at 3 %.
- Rule of succession: after `n` partitions without an exception, the chance of one in the next partition is
  about `1 / (n + 2)`. Rows of one partition resemble each other, so that the number of partitions counts and
  not that of rows; `policy.PARTITIONS_OF_AN_ERROR` partitions bring the chance to about 3 %.
- Rare values announce rarer ones: a list is an error only if each of its values has at least
  `policy.SHARE_OF_A_VALUE` percent of the rows. Good-Turing's estimate (values seen once by rows) is zero for
  every list, because values in fewer than `policy.ROWS_OF_A_VALUE` rows rule a list out.
- Leave one out: a bound that the most extreme partition would have broken, had the bound been learnt from the
  other partitions, is a warning.
- A column with a single distinct value shows no range, length or list, and is promised none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dq.contracts.shared.counts import counted
from dq.dataquality.proposal import policy
from dq.dataquality.proposal.facts import ColumnFacts, TableFacts
from dq.dataquality.proposal.numbers import room

OPTIONS = "logicalTypeOptions"
# schema, its position, properties, its position: a rule of a struct's field would count the struct's NULLs.
TOP = 4


def where(table: TableFacts) -> str:
    """How much history the evidence is: partitions, or the rows of the one snapshot."""
    if not table.partitioned:
        return f"in {table.rows:,} rows"
    count = len(table.sizes)
    return f"in {count:,} of {counted(count, 'partition')}"


def few_seen(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the history is too short for an error, or "" if it is long enough."""
    if table.partitioned and len(table.sizes) < policy.PARTITIONS_OF_AN_ERROR:
        return f"fewer than {policy.PARTITIONS_OF_AN_ERROR} partitions"
    if column.filled < policy.ROWS_OF_AN_ERROR:
        return f"fewer than {policy.ROWS_OF_AN_ERROR} rows"
    return ""


def incomplete_list(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the values seen may not be all values, or "" if nothing suggests more."""
    values = column.values or {}
    if len(values) < policy.VALUES_OF_AN_ERROR:
        return f"fewer than {policy.VALUES_OF_AN_ERROR} values"
    if 100 * min(rows for _, rows in values.values()) < policy.SHARE_OF_A_VALUE * column.filled:
        return f"a value in less than {policy.SHARE_OF_A_VALUE} % of the rows"
    return few_seen(column, table)


def is_constant(column: ColumnFacts) -> bool:
    """Return True if all rows with a value have the same one."""
    ends = {end for part in column.seen for end in (part.least, part.greatest) if end is not None}
    return column.different == 1 or len(ends) == 1 or len(column.values or ()) == 1


def unstable_ends(least: Sequence[Any], greatest: Sequence[Any]) -> tuple[str, str]:
    """Return for the lower and the upper bound why one partition alone moves it, or ""."""
    if len(least) < 2:
        return "", ""
    rest_low, rest_high = sorted(least)[1], sorted(greatest)[-2]
    low, _ = room(rest_low, max(greatest))
    _, high = room(min(least), rest_high)
    reason = "one partition lies far from the others"
    return reason if min(least) < low else "", reason if max(greatest) > high else ""


def with_reason(evidence: str, reason: str) -> str:
    """Return the evidence, followed by why it supports a warning only."""
    return f"{evidence}; a warning: {reason}" if reason else evidence


def warning_count(metric: str, arguments: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a library rule that warns of any row that `metric` counts."""
    given = {"arguments": dict(arguments)} if arguments else {}
    return {"metric": metric, **given, "mustBe": 0, "severity": "warning"}


def warning_bound(check: str, operator: str, bound: int | float) -> dict[str, object]:
    """Return a rule of dq's own, `min` or `max`, that warns of a number beyond `bound`."""
    implementation = {"check": check, operator: bound}
    return {"type": "custom", "engine": "dq", "implementation": implementation, "severity": "warning"}


def warning_query(condition: str) -> dict[str, object]:
    """Return a rule that warns of rows that meet `condition`, in SQL of `{property}`."""
    query = f"SELECT count(*) FROM {{object}} WHERE {condition}"  # noqa: S608
    return {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
