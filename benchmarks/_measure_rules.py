"""Metrics of columns, as rules of a contract and as DuckDB's queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in Parquet: `numbers`, `days` and `texts` are its columns, `by` those that make groups."""

    name: str
    path: Path
    numbers: Mapping[str, str]
    days: tuple[str, ...]
    texts: tuple[str, ...]
    by: tuple[tuple[str, ...], ...]
    compared: tuple[tuple[str, str, str], ...]
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """One rule: the property that it stands on (none: the object), its YAML, and DuckDB's expression."""

    metric: str
    column: str
    rule: str
    query: str
    by: tuple[str, ...]


def rules(table: Table) -> Iterator[MetricQuery]:
    """Every metric on every column that it is for, of all rows and by groups."""
    for by in ((), *table.by):
        for column, kind in table.numbers.items():
            yield _metric_query("min", column, "", f"min({column})", by)
            yield _metric_query("max", column, "", f"max({column})", by)
            yield _metric_query("mean", column, "", f"avg({column})", by)
            # DuckDB's sum of integers is exact; of no values it has NULL.
            yield _metric_query("sum", column, "", f"coalesce(sum({column}), 0)", by)
            yield _metric_query("stddev", column, "", f"stddev_samp({column}::DOUBLE)", by)
            for share in (0.5, 0.95):
                query = f"quantile_cont({column}::DOUBLE, {share})"
                yield _metric_query("quantile", column, f"q: {share}", query, by)
            if kind == "integer":
                gaps = f"max({column}) - min({column}) + 1 - count(DISTINCT {column})"
                yield _metric_query("sequenceGaps", column, "", f"coalesce({gaps}, 0)", by)
        for column in table.days:
            gaps = f"date_diff('day', min({column}), max({column})) + 1 - count(DISTINCT {column})"
            yield _metric_query("sequenceGaps", column, "", f"coalesce({gaps}, 0)", by)
        for column in (*table.numbers, *table.days, *table.texts):
            yield _metric_query("distinctCount", column, "", f"count(DISTINCT {column})", by)
            ratio = f"count(DISTINCT {column}) / nullif(count({column}), 0)"
            yield _metric_query("distinctRatio", column, "", ratio, by)
            yield _metric_query("uniqueRatio", column, "", f"UNIQUE {column}", by)
        for columns in table.keys:
            listed = f"properties: [{', '.join(columns)}]"
            present = " AND ".join(f"{name} IS NOT NULL" for name in columns)
            query = f"count(DISTINCT ({', '.join(columns)})) FILTER (WHERE {present})"
            yield _metric_query("distinctCount", "", listed, query, by)
            yield _metric_query("uniqueRatio", "", listed, f"UNIQUE {', '.join(columns)}", by)
        for left, operator, right in table.compared:
            operator_argument = f'operator: "{operator}", property: {right}'
            query = f"count(*) FILTER (WHERE NOT ({left} {operator.replace('!=', '<>')} {right}))"
            yield _metric_query("compareColumns", left, operator_argument, query, by)


def _metric_query(metric: str, column: str, arguments: str, query: str, by: tuple[str, ...]) -> MetricQuery:
    arguments_ = ", ".join(part for part in (arguments, f"by: [{', '.join(by)}]" if by else "") if part)
    written = f", arguments: {{{arguments_}}}" if arguments_ else ""
    rule = f"{{type: custom, engine: dq, implementation: {{check: {metric}{written}, mustNotBe: -1.5}}}}"
    return MetricQuery(metric, column, rule, query, by)


def source_of(path: Path) -> str:
    """The table for DuckDB."""
    return f"read_parquet('{path}/*.parquet')" if path.is_dir() else f"read_parquet('{path}')"


def sql(metric_query: MetricQuery, path: Path) -> str:
    """DuckDB's query: the columns of the group, and the number."""
    source = source_of(path)
    by = ", ".join(metric_query.by)
    lead = f"{by}, " if by else ""
    grouped = f" GROUP BY {by}" if by else ""
    if not metric_query.query.startswith("UNIQUE "):
        return f"SELECT {lead}{metric_query.query} FROM {source}{grouped}"
    columns = metric_query.query.removeprefix("UNIQUE ")
    present = " AND ".join(f"{name} IS NOT NULL" for name in columns.split(", "))
    inside = f"SELECT {lead}count(*) AS n, bool_and({present}) AS p FROM {source} GROUP BY {lead}{columns}"
    share = "sum(n) FILTER (WHERE p AND n = 1) / nullif(sum(n) FILTER (WHERE p), 0)"
    complete = "sum(n) FILTER (WHERE p)"
    number = f"CASE WHEN {complete} > 0 THEN coalesce({share}, 0) END"
    return f"SELECT {lead}{number} FROM ({inside}){grouped}"


def contract(table: Table, queries: list[MetricQuery]) -> str:
    """The rules on their columns, as YAML."""
    kinds = {**table.numbers, **dict.fromkeys(table.days, "date"), **dict.fromkeys(table.texts, "string")}
    lines = [f"apiVersion: v3.2.0\nkind: DataContract\nid: {table.name}\nversion: 1.0.0\nschema:"]
    lines += [f"  - name: {table.name}", "    quality:"]
    lines += [f"      - {query.rule}" for query in queries if not query.column]
    lines += ["    properties:"]
    for column, kind in kinds.items():
        own = [query.rule for query in queries if query.column == column]
        lines.append(f"      - name: {column}\n        logicalType: {kind}")
        lines += ["        quality:", *(f"          - {rule}" for rule in own)] if own else []
    return "\n".join(lines) + "\n"
