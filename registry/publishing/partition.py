"""The values of one partition, checked against the table's keys."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from dq.contracts.shared.errors import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.catalog import Values
from dq.registry.table import TableColumn, TableSpec

# `int` and `Decimal` also take `1_000`, spaces, and digits of other scripts, which no engine reads back.
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _date(text: str, _: DataType) -> str:
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return dt.date.fromisoformat(text).isoformat()


def _whole(text: str, kind: DataType) -> str:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    number, half = int(text), 1 << (_BITS[kind.name] - 1)
    if not -half <= number < half:
        raise ValueError(text)
    return str(number)


def _decimal(text: str, kind: DataType) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    digits, places = kind.numbers
    number = Decimal(text)
    shown = f"{number:.{places}f}"
    if Decimal(shown) != number or len(shown.lstrip("-").replace(".", "").lstrip("0")) > digits:
        raise ValueError(text)
    return "0" if number == 0 and not places else shown.removeprefix("-") if number == 0 else shown


def _boolean(text: str, _: DataType) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


def _timestamp(text: str, _: DataType) -> str:
    if not _MOMENT.fullmatch(text):
        raise ValueError(text)
    shown = dt.datetime.fromisoformat(text).isoformat(" ")
    # As Spark names folders: no zeros at the end of a fraction.
    return shown.rstrip("0") if "." in shown else shown


def _limited(text: str, kind: DataType) -> str:
    if kind.numbers and len(text) > kind.numbers[0]:
        raise ValueError(text)
    return text


# How the value of a key is spelled in only one way, by type; other types take any text.
_SPELLINGS: dict[str, tuple[Callable[[str, DataType], str], str]] = {
    "date": (_date, "2026-11-20"),
    "timestamp": (_timestamp, "'2026-11-20 07:00:00'"),
    "timestamp_ntz": (_timestamp, "'2026-11-20 07:00:00'"),
    **dict.fromkeys(_BITS, (_whole, "7")),
    "decimal": (_decimal, "7.50"),
    "boolean": (_boolean, "true"),
    "char": (_limited, "text"),
    "varchar": (_limited, "text"),
}


def given_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values by key. Raises UsageError for a key that is given twice, in whatever case."""
    made: dict[str, str] = {}
    for key, value in pairs:
        if key.lower() in made:
            raise UsageError(f"The partition key {key!r} is given twice.", "Give each key one value.")
        made[key.lower()] = value
    return made


def partition_values(spec: TableSpec, given: Mapping[str, str]) -> Values:
    """The values in the order of the table's keys, each in its one spelling (`07` of an int is `7`).

    Raises UsageError for a key that is missing, unknown or given twice, and for a value that is not of the
    key's type.
    """
    table = f"{spec.database}.{spec.name}"
    lowered = given_once(given.items())
    keys = [column.name for column in spec.partitions]
    if sorted(lowered) != sorted(keys):
        wanted = ", ".join(f"{key}=…" for key in keys) or "no partition"
        found = ", ".join(lowered) or "none"
        raise UsageError(
            f"{table} has the partition keys {', '.join(keys) or 'none'}, not {found}.", f"Give {wanted}."
        )
    return tuple((column.name, _value(table, column, lowered[column.name])) for column in spec.partitions)


def _value(table: str, column: TableColumn, text: str) -> str:
    if not text:
        raise UsageError(f"{table}: partition key {column.name} has no value.", f"Give {column.name}=….")
    try:
        kind = parse(column.type)
    except NotAType:
        return text
    if kind.name not in _SPELLINGS:
        return text
    spelling, example = _SPELLINGS[kind.name]
    try:
        return spelling(text, kind)
    except ValueError as error:
        raise UsageError(
            f"{table}: partition key {column.name} is a {column.type}, and {text!r} is none.",
            f"Write it as {column.name}={example}.",
        ) from error
