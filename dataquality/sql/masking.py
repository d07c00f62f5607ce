"""Classified values left out of what Spark hands over, and those that repeat one in the same row."""

from __future__ import annotations

from collections.abc import Callable

from dq.contracts.model import SchemaObject
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.classification import MASK
from dq.dataquality.model.column import columns, resolve

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
