"""What a change of the partition means: a new layout for files in folders, little for hidden partitions."""

from __future__ import annotations

import re

from dq.contracts.diff.element import Change
from dq.contracts.diff.formats import HIDDEN, HIDDEN_V1, STRUCTURES
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import Judgement, Level, neutral, replace

_PART_OF_TIME = re.compile(
    r"(^|_)(year|month|week|day|date|dt|ds|hour|minute|hh|mm|yyyy|dd)s?(_|$)", re.IGNORECASE
)

Keys = tuple[tuple[str, str], ...]


def partition(change: Change, setting: Setting) -> Judgement:
    """The keys by which the data is laid out, each with its transform where it has one."""
    rule = _rule(_keys(change.before), _keys(change.after))
    row = STRUCTURES.get(setting.format_of(change.object_name))
    kind = row.partition if row else ""
    if kind == HIDDEN or (kind == HIDDEN_V1 and rule == "partition-added"):
        return neutral(rule, note="Old and new partitions coexist, and queries do not name them.")
    if kind == HIDDEN_V1:
        return replace(rule, Level.WARN, "Iceberg v1 should not reorder or drop partition fields.")
    return replace(rule, note="Paths and filters change, and the table is laid out anew.")


def _keys(value: object) -> Keys:
    return value if isinstance(value, tuple) else ()


def _rule(before: Keys, after: Keys) -> str:
    first, second = [name for name, _ in before], [name for name, _ in after]
    came, went = [one for one in second if one not in first], [one for one in first if one not in second]
    if came or went:
        # Days that are split into hours are the same time at another grain, not a new dimension.
        finer = all(_PART_OF_TIME.search(one) for one in (*came, *went))
        timed = any(_PART_OF_TIME.search(one) for one in first) and any(
            _PART_OF_TIME.search(one) for one in second
        )
        if finer and timed:
            return "partition-granularity-changed"
        return "partition-removed" if went else "partition-added"
    return "partition-reordered" if first != second else "partition-granularity-changed"


def grain(change: Change, setting: Setting) -> Judgement:
    """The format of a partition column says how fine the partitions are."""
    row = STRUCTURES.get(setting.format_of(change.object_name))
    rule = "partition-granularity-changed"
    return neutral(rule) if row and row.partition == HIDDEN else replace(rule)
