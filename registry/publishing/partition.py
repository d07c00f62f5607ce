"""The values of one partition, checked against the table's keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

from dq.contracts.shared.errors import UsageError
from dq.registry.catalog import Values
from dq.registry.table import Column, TableSpec


def _date(text: str) -> str:
    return dt.date.fromisoformat(text).isoformat()


def _whole(text: str) -> str:
    return str(int(text))


# How the value of a key is spelled in only one way, by type; other types take any text.
_SPELLINGS: dict[str, tuple[Callable[[str], str], str]] = {
    "date": (_date, "2026-11-20"),
    "int": (_whole, "7"),
    "bigint": (_whole, "7"),
    "smallint": (_whole, "7"),
    "tinyint": (_whole, "7"),
}


def partition_values(spec: TableSpec, given: Mapping[str, str]) -> Values:
    """The values in the order of the table's keys, each in its one spelling (`07` of an int is `7`).

    Raises UsageError for a key that is missing or unknown and for a value that is not of the key's type.
    """
    table = f"{spec.database}.{spec.name}"
    lowered = {key.lower(): value for key, value in given.items()}
    keys = [column.name for column in spec.partitions]
    if sorted(lowered) != sorted(keys):
        wanted = ", ".join(f"{key}=…" for key in keys) or "no partition"
        found = ", ".join(lowered) or "none"
        raise UsageError(
            f"{table} has the partition keys {', '.join(keys) or 'none'}, not {found}.", f"Give {wanted}."
        )
    return tuple((column.name, _value(table, column, lowered[column.name])) for column in spec.partitions)


def _value(table: str, column: Column, text: str) -> str:
    spelling, example = _SPELLINGS.get(column.type, (str, "text"))
    try:
        value = spelling(text)
    except ValueError as error:
        raise UsageError(
            f"{table}: partition key {column.name} is a {column.type}, and {text!r} is none.",
            f"Write it as {column.name}={example}.",
        ) from error
    if not value:
        raise UsageError(f"{table}: partition key {column.name} has no value.", f"Give {column.name}=….")
    return value
