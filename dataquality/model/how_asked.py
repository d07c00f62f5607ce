"""How metrics are asked, and how their answers merge."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """How a metric is asked, which decides the pass that it can share."""

    SCHEMA = "schema"  # the columns and types, known without reading
    ROWS = "rows"  # an aggregate that Spark compiles together with others
    INTERPRETED = "interpreted"  # an aggregate with a lambda, which would keep all others from being compiled
    DISTINCT = "distinct"  # exact count of distinct keys
    DUPLICATES = "duplicates"  # rows beyond the first of each key
    SQL = "sql"  # a whole query that went through the guard
    SINGLE = "single"  # how many keys stand once
    RANKED = "ranked"  # an aggregate that holds many values, which would keep all others from being compiled
    GROUPED = "grouped"  # any of them, for each group of rows
    UNMATCHED = "unmatched"  # rows whose key another object does not have
    PYTHON = "python"  # a function of another package, which gets the rows


class Merge(StrEnum):
    """How the answers for two disjoint sets of rows become the answer for both."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    NONE = "none"


# Aggregates whose number stands at a share of the way through the sorted values: at the place below it, at
# the place above it, and near it, at most 1 / RANK_ACCURACY of the rows away.
RANKS = ("rank_below", "rank_above", "rank_near")
RANK_ACCURACY = 10_000
