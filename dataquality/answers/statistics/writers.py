"""TABLE: the writers whose statistics are known to be wrong, and what those of a file prove by its writer.

Statistics are the word of whoever wrote them. Parquet names the writer in each footer (`created_by`), Delta
in the commit that added a file (`engineInfo`, which `dq tables` asks), Iceberg in the snapshot that added it
(`engine-name` and `iceberg-version` of its summary). What these versions say wrongly proves nothing, whatever
the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from dq.dataquality.answers.statistics.facts import Facts


class Statistic(StrEnum):
    """What a file's statistics are about: BOUNDS the least and greatest value, NULLS how many there are,
    VALUES all different ones, by a dictionary, ROWS how many rows.
    """

    BOUNDS = "bounds"
    NULLS = "nulls"
    VALUES = "values"
    ROWS = "rows"


Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WrongStatistics:
    """One mistake of one writer.

    `writer` is a pattern for the writer's text, looked for without case; its group `version`, where it has
    one, is compared with `fixed_in`, the first version without the mistake; None: none is known, and a text
    without a version is as wrong as the oldest. `types` are the column types that it concerns, empty for all;
    `nested` says that only fields of structs are concerned.
    """

    writer: str
    fixed_in: Version | None
    evidence: frozenset[Statistic]
    source: str
    types: frozenset[str] = frozenset()
    nested: bool = False


_BOUNDS, _NULLS = frozenset({Statistic.BOUNDS}), frozenset({Statistic.NULLS})
_TEXTS, _DECIMALS = frozenset({"string", "binary", "char", "varchar"}), frozenset({"decimal"})
_VERSION = r"(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?"

WRONG = (
    # Greatest values of the first page only; such old files have no version in their name.
    WrongStatistics(
        rf"^polars{_VERSION}", (1, 0, 0), _BOUNDS, "https://github.com/pola-rs/polars/issues/7842"
    ),
    # Merged over pages by comparing bytes without sign.
    WrongStatistics(
        rf"^polars{_VERSION}", (2, 1, 0), _BOUNDS, "https://github.com/pola-rs/polars/issues/29347", _DECIMALS
    ),
    WrongStatistics(
        rf"^polars{_VERSION}",
        None,
        _BOUNDS,
        "https://github.com/pola-rs/polars/issues/26667",
        frozenset({"boolean"}),
    ),
    WrongStatistics(
        r"^clickhouse(?: version)?(?: v?(?P<version>\d+(?:\.\d+)*))?",
        (25, 8, 0),
        _BOUNDS,
        "https://github.com/ClickHouse/ClickHouse/pull/83754",
        _DECIMALS,
    ),
    # Bounds of an ENUM are those of its type and not of its values.
    WrongStatistics(
        rf"^duckdb{_VERSION}", None, _BOUNDS, "https://github.com/duckdb/duckdb/issues/22548", _TEXTS
    ),
    WrongStatistics(
        rf"^parquet-rs{_VERSION}", None, _BOUNDS, "https://github.com/apache/arrow-rs/issues/11073", _DECIMALS
    ),
    # A column of nothing but NULL has none by its statistics.
    WrongStatistics(
        rf"^parquet-rs{_VERSION}", (5, 0, 0), _NULLS, "https://github.com/apache/arrow-rs/issues/306"
    ),
    # Of a dictionary that comes in several pieces, the bounds are those of the first.
    WrongStatistics(
        rf"^parquet-cpp(?:-arrow)?{_VERSION}",
        (12, 0, 0),
        _BOUNDS,
        "https://github.com/apache/arrow/issues/15042",
    ),
    WrongStatistics(
        rf"^parquet-mr{_VERSION}",
        (1, 8, 0),
        _BOUNDS,
        "https://issues.apache.org/jira/browse/PARQUET-251",
        _TEXTS | _DECIMALS,
    ),
    WrongStatistics(
        r"^hyparquet", None, _BOUNDS, "https://github.com/hyparam/hyparquet-writer/issues/38", _DECIMALS
    ),
    WrongStatistics(r"^parquet-go\b", None, _NULLS, "https://github.com/xitongsys/parquet-go/issues/523"),
    WrongStatistics(r"^parquet-go\b", None, _NULLS, "https://github.com/fraugster/parquet-go/issues/69"),
    # It had no name of its own for long; such files have none, and prove NULLs all the same.
    WrongStatistics(
        r"^(?:lib)?cudf(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?",
        (21, 12, 0),
        _NULLS,
        "https://github.com/NVIDIA/cudf/issues/9221",
    ),
    # A NULL among the values made 0 a bound.
    WrongStatistics(
        r"\btrino[-/ ]?(?P<version>\d+)?",
        (393, 0, 0),
        _BOUNDS,
        "https://github.com/trinodb/trino/issues/13389",
    ),
    # Floats below a struct that is NULL are counted as no NULL.
    WrongStatistics(
        r"apache iceberg(?: (?P<version>\d+(?:\.\d+)*))?",
        None,
        _NULLS,
        "https://github.com/apache/iceberg/issues/17561",
        frozenset({"float", "double"}),
        nested=True,
    ),
    # Files of ORC and DWRF have no rows by their manifest.
    WrongStatistics(
        r"\b(?:velox|presto)\b",
        None,
        frozenset({Statistic.ROWS, Statistic.NULLS}),
        "https://github.com/facebookincubator/velox/pull/17654",
    ),
)
# Without a name there is nobody to be believed; what has been counted is least often wrong.
OF_NOBODY = frozenset({Statistic.BOUNDS, Statistic.VALUES})


@lru_cache(maxsize=4096)
def distrusted(writer: str, kind: str, nested: bool = False) -> frozenset[Statistic]:
    """What this writer's statistics of a column of this type ("": of none) do not prove."""
    if not writer.strip():
        return OF_NOBODY
    return frozenset(
        evidence
        for one in WRONG
        if (not one.types or kind in one.types) and (nested or not one.nested) and _concerned(one, writer)
        for evidence in one.evidence
    )


def believed(facts: Facts, writers: Iterable[str], kind: str, *, nested: bool = False) -> Facts:
    """The facts without those that one of these writers is not believed."""
    lost = frozenset(evidence for writer in writers for evidence in distrusted(writer, kind, nested))
    if Statistic.BOUNDS in lost:
        facts = replace(facts, least=None, greatest=None, attained=False)
    if Statistic.VALUES in lost:
        facts = replace(facts, values=None)
    return replace(facts, nulls=None) if Statistic.NULLS in lost else facts


def counts_rows(writers: Iterable[str]) -> bool:
    """Whether the number of rows that these writers say is believed."""
    return all(Statistic.ROWS not in distrusted(writer, "") for writer in writers)


def _concerned(one: WrongStatistics, writer: str) -> bool:
    found = re.search(one.writer, writer, re.IGNORECASE)
    if found is None:
        return False
    version = found.groupdict().get("version")
    return one.fixed_in is None or version is None or _version(version) < one.fixed_in


def _version(text: str) -> Version:
    numbers = [int(part) for part in text.split(".")][:3]
    first, second, third = (*numbers, 0, 0)[:3]
    return first, second, third
