"""Samples of failing rows: up to 20 keys per clause, classified values masked before they leave Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dq.contracts.check_result import Row
from dq.contracts.model import SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.model.column import MASK, Column, classified, columns, resolve
from dq.dataquality.model.metric import Failure, RepeatedKeys, UnmatchedKeys
from dq.dataquality.model.predicate import Inside, IsNull, Missing, Or, Predicate, all_of
from dq.dataquality.spark.measure import OpenObject, no_other_objects, schema_of, select_keys, unmatched
from dq.dataquality.spark.session import attempt
from dq.dataquality.sql_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Masking of classified values, and of values that repeat one in the same row.

# Shorter values occur in unrelated columns by chance.
MIN_SECRET_LENGTH = 3


def secret_columns(schema_object: SchemaObject, schema: DataType) -> list[Column]:
    """Return the classified columns whose values are masked wherever their row repeats them."""
    return [
        column
        for prop, column in columns(schema_object)
        if prop.classification is not None
        and column.single
        and isinstance(column_type := resolve(schema, column), DataType)
        and not column_type.parts
    ]


def repeats_classified(schema_object: SchemaObject, schema: DataType) -> Callable[[str], str]:
    """Return a function from a SQL string to a predicate: it contains a classified value of the same row.

    The test is case-insensitive. `schema` is the schema of the data. Values of fewer than three characters,
    and those inside of arrays and maps, are not considered.
    """
    secret_texts = [
        f"lower(CAST({column.sql()} AS STRING))" for column in secret_columns(schema_object, schema)
    ]
    if not secret_texts:
        return lambda _text: "FALSE"

    def contains_secret(text: str) -> str:
        conditions = (
            f"(char_length({secret_text}) >= {MIN_SECRET_LENGTH} AND contains(lower({text}), {secret_text}))"
            for secret_text in secret_texts
        )
        return f"coalesce({' OR '.join(conditions)}, FALSE)"

    return contains_secret


def masked_column(name: str, kind: DataType) -> str:
    """Return SQL that masks a column, keeping its type: strings become `***`, other types NULL; NULL
    stays.
    """
    column = sql.name(name)
    if kind.name == "string":
        return f"CASE WHEN {column} IS NOT NULL THEN {sql.text(MASK)} END AS {column}"
    return f"CASE WHEN false THEN {column} END AS {column}"


def masked_where_repeated(name: str, kind: DataType, secrets: Callable[[str], str]) -> str:
    """Return SQL that masks a column where it repeats a classified value; nested columns stay unchanged."""
    column = sql.name(name)
    if kind.parts:
        return column
    mask = sql.text(MASK) if kind.name == "string" else "NULL"
    return f"CASE WHEN {secrets(f'CAST({column} AS STRING)')} THEN {mask} ELSE {column} END AS {column}"


# Up to 20 keys of failing rows, classified columns masked before they leave Spark.

MAX_SAMPLES = 20
# A sample identifies a row; it is not a copy of the data.
MOST_CHARACTERS = 200
# Additional columns next to a column that is NULL, to identify its row.
MAX_EXTRA_COLUMNS = 4

Samples = Mapping[str, tuple[Row, ...]]


def samples(
    frame: DataFrame,
    schema: DataType,
    schema_object: SchemaObject,
    failed: Sequence[Clause],
    open_object: OpenObject = no_other_objects,
) -> Samples:
    """Return samples of failed clauses by path: values as strings, NULL as None, and `count` for keys.

    A classified value is also masked in other columns of the same row. One job runs for all row-level
    clauses, and one per clause with repeated or unmatched keys. Clauses whose samples cannot be read get
    none.
    """
    masked_columns = masked_names(schema_object, failed)
    samples_by_path: dict[str, tuple[Row, ...]] = {}
    row_clauses = [clause for clause in failed if clause.breaks is not None]
    if row_clauses:
        samples_by_path |= _rows(frame, schema, schema_object, row_clauses, masked_columns)
    for clause in failed:
        if clause.keys:
            key_rows = attempt(
                lambda clause=clause: _failing_keys(frame, schema_object, clause, masked_columns, open_object)  # type: ignore[misc]
            )
            samples_by_path[clause.path] = () if isinstance(key_rows, Failure) else key_rows
    return samples_by_path


def masked_names(schema_object: SchemaObject, failed: Iterable[Clause]) -> frozenset[str]:
    """Return the lower-case columns masked in samples: classified, or referring to a classified column."""
    return classified(schema_object) | {
        str(key.steps[0]).lower()
        for clause in failed
        if isinstance(clause.test, ForeignKey) and clause.test.target.classified
        for key in clause.keys
    }


def _rows(
    frame: DataFrame,
    schema: DataType,
    schema_object: SchemaObject,
    failed: Sequence[Clause],
    masked_columns: frozenset[str],
) -> dict[str, tuple[Row, ...]]:
    secrets = repeats_classified(schema_object, schema)
    marks = [
        f"CASE WHEN {predicate_sql(condition, schema)} THEN named_struct('c', {index}, 'r',"
        f" {_row_json(identifying_columns(clause, schema_object, schema), masked_columns, secrets)}) END"
        for index, clause in enumerate(failed)
        if (condition := all_of(clause.row_filter.where, clause.breaks)) is not None
    ]
    # Spark keeps the first rows of each clause in every task before it shuffles them (WindowGroupLimit).
    numbered = (
        frame.selectExpr(f"inline(filter(array({', '.join(marks)}), one -> one IS NOT NULL))")
        .selectExpr("c", "r", "row_number() OVER (PARTITION BY c ORDER BY r) AS n")
        .where(f"n <= {MAX_SAMPLES}")
    )
    # Sorted in Python, because a global sort would cost another Spark job.
    rows = attempt(lambda: sorted(numbered.collect(), key=lambda row: (row["c"], row["n"])))
    if isinstance(rows, Failure):
        return {}
    rows_by_path: dict[str, list[Row]] = {}
    for row in rows:
        rows_by_path.setdefault(failed[row["c"]].path, []).append(json.loads(row["r"]))
    return {path: tuple(path_rows) for path, path_rows in rows_by_path.items()}


def identifying_columns(clause: Clause, schema_object: SchemaObject, schema: DataType) -> tuple[Column, ...]:
    """Return the columns that identify a failing row: the primary key, or without one the wrong values, and
    further columns if they are NULL.
    """
    key = tuple(Column((part.column,)) for part in schema_object.primary_key())
    if key and not any(isinstance(resolve(schema, column), str) for column in key):
        return key
    wrong_columns = _top_level_values(clause)
    if clause.breaks is None or not _finds_null(clause.breaks):
        return wrong_columns
    candidates = sorted(schema_object.properties, key=lambda prop: not prop.unique)
    names = {str(column.steps[0]).lower() for column in wrong_columns} | classified(schema_object)
    other_columns = [Column((prop.column,)) for prop in candidates if prop.column.lower() not in names]
    plain = [
        column
        for column in other_columns
        if isinstance(kind := resolve(schema, column), DataType) and not kind.parts and kind.name != "binary"
    ]
    return (*wrong_columns, *plain[:MAX_EXTRA_COLUMNS])


def _finds_null(predicate: Predicate) -> bool:
    match predicate:
        case Or(parts):
            return any(map(_finds_null, parts))
        case _:
            return isinstance(predicate, IsNull | Missing)


def _top_level_values(clause: Clause) -> tuple[Column, ...]:
    """Return the columns of the wrong values; for those inside an array or map, the whole array or map."""
    columns_found: dict[Column, None] = {}
    for column in clause.columns:
        steps = column.steps
        inside = next((index for index, step in enumerate(steps) if isinstance(step, Inside)), len(steps))
        columns_found[Column(steps[:inside])] = None
    return tuple(columns_found)


def _row_json(
    row_columns: Sequence[Column], masked_columns: frozenset[str], secrets: Callable[[str], str]
) -> str:
    values = ", ".join(
        f"{sql.text(str(column))}, {_value(column, masked_columns, secrets)}" for column in row_columns
    )
    return f"to_json(named_struct({values}), map('ignoreNullFields', 'false'))"


def _value(column: Column, masked_columns: frozenset[str], secrets: Callable[[str], str]) -> str:
    if str(column.steps[0]).lower() in masked_columns:
        return sql.text(MASK)
    text = f"CAST({column.sql()} AS STRING)"
    return f"CASE WHEN {secrets(text)} THEN {sql.text(MASK)} ELSE left({text}, {MOST_CHARACTERS}) END"


def _failing_keys(
    frame: DataFrame,
    schema_object: SchemaObject,
    clause: Clause,
    masked_columns: frozenset[str],
    open_object: OpenObject,
) -> tuple[Row, ...] | Failure:
    secrets = repeats_classified(schema_object, schema_of(frame))
    names = [sql.name(str(index)) for index in range(len(clause.keys))]
    marks = [sql.name(f"secret {index}") for index in range(len(clause.keys))]
    extra_columns = [
        f"{secrets(f'CAST({key.sql()} AS STRING)')} AS {mark}"
        for key, mark in zip(clause.keys, marks, strict=True)
    ]
    where = clause.row_filter.where
    target = clause.test.target if isinstance(clause.test, ForeignKey) else None
    if target is not None:
        rows = unmatched(frame, UnmatchedKeys(clause.keys, target, where), open_object, *extra_columns)
    else:
        rows = select_keys(frame, RepeatedKeys(clause.keys, where), *extra_columns)
    if isinstance(rows, Failure):
        return rows
    outputs = [
        sql.text(MASK)
        if str(key.steps[0]).lower() in masked_columns
        else f"CASE WHEN {sql.name(f'max({mark[1:-1]})')} THEN {sql.text(MASK)}"
        f" ELSE left(CAST({name} AS STRING), {MOST_CHARACTERS}) END"
        for key, name, mark in zip(clause.keys, names, marks, strict=True)
    ]
    key_counts = rows.groupBy(*names).agg({"*": "count", **{mark[1:-1]: "max" for mark in marks}})
    key_rows = (
        key_counts.selectExpr(
            *(f"{value} AS {name}" for value, name in zip(outputs, names, strict=True)), "`count(1)` AS n"
        )
        .where("n > 0" if target else "n > 1")
        .orderBy("n", *names, ascending=[False, *([True] * len(names))])
        .limit(MAX_SAMPLES)
        .collect()
    )
    labels = [str(key) for key in clause.keys]
    return tuple({**dict(zip(labels, row[:-1], strict=True)), "count": row[-1]} for row in key_rows)
