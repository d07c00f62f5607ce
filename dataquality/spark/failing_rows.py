"""Up to 20 keys of the rows that break a clause, classified values masked before they leave Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dq.contracts.model import SchemaObject
from dq.contracts.outcome import Row
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import Clause, ForeignKey
from dq.dataquality.model.column import MASK, Column, classified, columns, resolve
from dq.dataquality.model.metric import Failure, RepeatedKeys, UnmatchedKeys
from dq.dataquality.model.predicate import Inside, IsNull, Missing, Or, Predicate, all_of
from dq.dataquality.spark.measure import Others, keyed, none_given, schema_of, unmatched
from dq.dataquality.spark.session import attempt
from dq.dataquality.sql_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Classified values left out of what Spark hands over, and those that repeat one in the same row.

# Of shorter values, columns that have nothing to do with each other share many.
_TELLING = 3


def repeats(one: SchemaObject, schema: DataType) -> Callable[[str], str]:
    """A predicate on a text in SQL: it is, or holds, the value of a classified column in the same row.

    Case does not matter. `schema` is that of the data. Values of fewer than three characters, and those
    inside of arrays and maps, are not looked for.
    """
    secret = [
        f"lower(CAST({column.sql()} AS STRING))"
        for prop, column in columns(one)
        if prop.classification is not None
        and column.single
        and isinstance(found := resolve(schema, column), DataType)
        and not found.parts
    ]
    if not secret:
        return lambda _text: "FALSE"

    def held(text: str) -> str:
        each = (f"(char_length({one}) >= {_TELLING} AND contains(lower({text}), {one}))" for one in secret)
        return f"coalesce({' OR '.join(each)}, FALSE)"

    return held


def masked(name: str, kind: DataType) -> str:
    """The column without its values, of the same type: texts become `***`, all else NULL; NULL stays."""
    column = sql.name(name)
    if kind.name == "string":
        return f"CASE WHEN {column} IS NOT NULL THEN {sql.text(MASK)} END AS {column}"
    return f"CASE WHEN false THEN {column} END AS {column}"


def masked_where_repeated(name: str, kind: DataType, secrets: Callable[[str], str]) -> str:
    """The column, masked in the rows where it repeats a classified value; of a whole structure, as it is."""
    column = sql.name(name)
    if kind.parts:
        return column
    mask = sql.text(MASK) if kind.name == "string" else "NULL"
    return f"CASE WHEN {secrets(f'CAST({column} AS STRING)')} THEN {mask} ELSE {column} END AS {column}"


# Up to 20 keys of the rows that break a clause, classified columns masked before they leave Spark.

MOST = 20
# A sample names a row; it is no copy of the data.
MOST_CHARACTERS = 200
# Columns beside one that is NULL, so that its row can be found.
BESIDE = 4

Samples = Mapping[str, tuple[Row, ...]]


def samples(
    frame: DataFrame,
    schema: DataType,
    one: SchemaObject,
    failed: Sequence[Clause],
    others: Others = none_given,
) -> Samples:
    """Samples of failed clauses by path: values as texts, NULL as None; `count` stands with keys.

    A value that a classified column has in the same row is masked wherever it stands. One job for all clauses
    that a row can break by itself, and one per key that repeats or has no match.
    A clause whose samples cannot be had gets none: its verdict stands without them.
    """
    masked = classified(one) | {
        str(key.steps[0]).lower()
        for clause in failed
        if isinstance(clause.ask, ForeignKey) and clause.ask.target.classified
        for key in clause.keys
    }
    found: dict[str, tuple[Row, ...]] = {}
    alone = [clause for clause in failed if clause.breaks is not None]
    if alone:
        found |= _rows(frame, schema, one, alone, masked)
    for clause in failed:
        if clause.keys:
            made = attempt(lambda clause=clause: _keys(frame, one, clause, masked, others))  # type: ignore[misc]
            found[clause.path] = () if isinstance(made, Failure) else made
    return found


def _rows(
    frame: DataFrame,
    schema: DataType,
    one: SchemaObject,
    failed: Sequence[Clause],
    masked: frozenset[str],
) -> dict[str, tuple[Row, ...]]:
    key = tuple(Column((part.column,)) for part in one.primary_key())
    if any(isinstance(resolve(schema, column), str) for column in key):
        key = ()
    secrets = repeats(one, schema)
    marks = [
        f"CASE WHEN {predicate_sql(broken, schema)} THEN named_struct('c', {index}, 'r',"
        f" {_shown(key or _telling(clause, one, schema), masked, secrets)}) END"
        for index, clause in enumerate(failed)
        if (broken := all_of(clause.extent.where, clause.breaks)) is not None
    ]
    # Spark keeps the first rows of each clause in every task before it shuffles them (WindowGroupLimit).
    numbered = (
        frame.selectExpr(f"inline(filter(array({', '.join(marks)}), one -> one IS NOT NULL))")
        .selectExpr("c", "r", "row_number() OVER (PARTITION BY c ORDER BY r) AS n")
        .where(f"n <= {MOST}")
    )
    # Sorted here, because a global sort costs Spark a job more.
    rows = attempt(lambda: sorted(numbered.collect(), key=lambda row: (row["c"], row["n"])))
    if isinstance(rows, Failure):
        return {}
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(failed[row["c"]].path, []).append(json.loads(row["r"]))
    return {path: tuple(listed) for path, listed in found.items()}


def _telling(clause: Clause, one: SchemaObject, schema: DataType) -> tuple[Column, ...]:
    """What tells a row without a key: the values that are wrong, and where they are NULL some beside them."""
    wrong = _values(clause)
    if clause.breaks is None or not _finds_null(clause.breaks):
        return wrong
    beside = sorted(one.properties, key=lambda prop: not prop.unique)
    names = {str(column.steps[0]).lower() for column in wrong} | classified(one)
    others = [Column((prop.column,)) for prop in beside if prop.column.lower() not in names]
    plain = [
        column
        for column in others
        if isinstance(kind := resolve(schema, column), DataType) and not kind.parts and kind.name != "binary"
    ]
    return (*wrong, *plain[:BESIDE])


def _finds_null(predicate: Predicate) -> bool:
    match predicate:
        case Or(parts):
            return any(map(_finds_null, parts))
        case _:
            return isinstance(predicate, IsNull | Missing)


def _values(clause: Clause) -> tuple[Column, ...]:
    """The column of what is wrong; of something inside an array or map, the whole of it."""
    wanted: dict[Column, None] = {}
    for column in clause.columns:
        steps = column.steps
        inside = next((at for at, step in enumerate(steps) if isinstance(step, Inside)), len(steps))
        wanted[Column(steps[:inside])] = None
    return tuple(wanted)


def _shown(shown: Sequence[Column], masked: frozenset[str], secrets: Callable[[str], str]) -> str:
    values = ", ".join(f"{sql.text(str(column))}, {_value(column, masked, secrets)}" for column in shown)
    return f"to_json(named_struct({values}), map('ignoreNullFields', 'false'))"


def _value(column: Column, masked: frozenset[str], secrets: Callable[[str], str]) -> str:
    if str(column.steps[0]).lower() in masked:
        return sql.text(MASK)
    text = f"CAST({column.sql()} AS STRING)"
    return f"CASE WHEN {secrets(text)} THEN {sql.text(MASK)} ELSE left({text}, {MOST_CHARACTERS}) END"


def _keys(
    frame: DataFrame, one: SchemaObject, clause: Clause, masked: frozenset[str], others: Others
) -> tuple[Row, ...] | Failure:
    secrets = repeats(one, schema_of(frame))
    names = [sql.name(str(index)) for index in range(len(clause.keys))]
    marks = [sql.name(f"secret {index}") for index in range(len(clause.keys))]
    more = [
        f"{secrets(f'CAST({key.sql()} AS STRING)')} AS {mark}"
        for key, mark in zip(clause.keys, marks, strict=True)
    ]
    where = clause.extent.where
    target = clause.ask.target if isinstance(clause.ask, ForeignKey) else None
    if target is not None:
        rows = unmatched(frame, UnmatchedKeys(clause.keys, target, where), others, *more)
    else:
        rows = keyed(frame, RepeatedKeys(clause.keys, where), *more)
    if isinstance(rows, Failure):
        return rows
    shown = [
        sql.text(MASK)
        if str(key.steps[0]).lower() in masked
        else f"CASE WHEN {sql.name(f'max({mark[1:-1]})')} THEN {sql.text(MASK)}"
        f" ELSE left(CAST({name} AS STRING), {MOST_CHARACTERS}) END"
        for key, name, mark in zip(clause.keys, names, marks, strict=True)
    ]
    counted = rows.groupBy(*names).agg({"*": "count", **{mark[1:-1]: "max" for mark in marks}})
    found = (
        counted.selectExpr(
            *(f"{value} AS {name}" for value, name in zip(shown, names, strict=True)), "`count(1)` AS n"
        )
        .where("n > 0" if target else "n > 1")
        .orderBy("n", *names, ascending=[False, *([True] * len(names))])
        .limit(MOST)
        .collect()
    )
    labels = [str(key) for key in clause.keys]
    return tuple({**dict(zip(labels, row[:-1], strict=True)), "count": row[-1]} for row in found)
