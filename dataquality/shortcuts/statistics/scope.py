"""Which files lie in the partitions that are asked for, by what is known of their columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column, field
from dq.dataquality.shortcuts.statistics.facts import Facts, File, Partitions, Scalar, Wanted
from dq.dataquality.spark.partitions import NULL_PARTITION

# From a partition's text to a value, for the types whose texts have one reading.
TYPED: Mapping[str, Callable[[str], Scalar]] = {
    "string": str,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": dt.date.fromisoformat,
    "decimal": Decimal,
}


def asked(schema: DataType, partitions: Partitions, wanted: Wanted) -> frozenset[Column]:
    """All columns of which facts are needed: those that are wanted, and those that choose the partitions.

    Only columns that the contract writes exactly as the frame does.
    """
    names = {name.lower() for partition in partitions for name in partition}
    keys = {Column((name,)) for name in schema.names if name.lower() in names}
    return frozenset(one for one in wanted.bounds | wanted.values | keys if named_alike(schema, one))


def named_alike(schema: DataType, column: Column) -> bool:
    """Whether nothing repeated lies on the way, and each name is written as in the schema.

    Spark looks names up without case, and two could be meant.
    """
    here = schema
    for step in column.steps:
        if not isinstance(step, str) or step not in here.names:
            return False
        here = here.parts[here.names.index(step)]
    return True


def within(files: list[File], partitions: Partitions, schema: DataType) -> list[File]:
    """The files that may hold rows of the partitions; those that may hold other rows, too, are not whole."""
    return list(_within(files, partitions, schema)) if partitions else files


def _within(files: Sequence[File], partitions: Partitions, schema: DataType) -> Iterator[File]:
    names = {name.lower(): Column((name,)) for name in schema.names}
    for file in files:
        held = [_held(file, one, names, schema) for one in partitions]
        if True in held:
            yield file
        elif None in held:
            yield replace(file, whole=False)


def _held(
    file: File, partition: Mapping[str, str], names: Mapping[str, Column], schema: DataType
) -> bool | None:
    """Whether all rows of the file lie in the partition (True), none (False), or it is not known."""
    told = []
    for name, text in partition.items():
        column, kind = names.get(name.lower()), field(schema, name)
        told.append(_equals(file.of(column), file.rows, kind, text) if column and kind else None)
    if False in told:
        return False
    return None if None in told else True


def _equals(facts: Facts, rows: int, kind: DataType, text: str) -> bool | None:
    if text == NULL_PARTITION:
        return None if facts.nulls is None else {0: False, rows: True}.get(facts.nulls)
    if facts.nulls == rows:
        return False
    try:
        value: Any = TYPED[kind.name](text)
    except (KeyError, ValueError, ArithmeticError):
        return None
    if facts.values is not None:
        if value not in facts.values:
            return False
        return True if len(facts.values) == 1 and facts.nulls == 0 else None
    least: Any = facts.least
    greatest: Any = facts.greatest
    if least is None or greatest is None:
        return None
    if not least <= value <= greatest:
        return False
    return True if least == greatest and facts.nulls == 0 else None
