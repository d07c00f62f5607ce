"""Values have the `format` of their property: a named text format, an integer size or a date pattern.

Why: Consumers fail on an address without `@`, a number that overflows, or a date that cannot be parsed.
Bad: `format: email` and a row with `eve(at)example.com`.
Good: A row with `eve@example.com`.
Nulls: NULL passes; the empty text matches no format. Texts: email (RFC 5321, without quoted parts),
uuid, uri (absolute, RFC 3986), hostname, ipv4, ipv6, date and date-time (RFC 3339), byte (base64). Integers:
i8 to i128 and u8 to u128 as ranges. Dates, timestamps and times: a pattern of the JDK's DateTimeFormatter on
columns of texts; a bare `T` stands for itself, as in the standard's examples. A column that is a date has no
text format, and f32, f64, password and binary exclude nothing, so these are documented only.
How to fix: Correct the value at its source. For your own format use `pattern`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dq.contracts.model import Property
from dq.contracts.sql import text as sql
from dq.contracts.types import physical_type
from dq.dataquality import sql_values
from dq.dataquality.clauses.clause import (
    Clause,
    PropertyKeys,
    RowTest,
    documented_only,
    not_evaluated,
    with_test,
)
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import INTEGERS, TEXTS, Compare, Operator, Path, Predicate, any_of
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.sql_values import has_text_format, logical_type_of, violates_date_pattern

_BITS = (8, 16, 32, 64, 128)
_RANGES = {
    **{f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"u{bits}": (0, 2**bits - 1) for bits in _BITS},
}
_FLOATS = ("f32", "f64")
# Logical type -> named formats.
FORMATS = {
    "string": (*sql_values.PATTERNS, *sql_values.UNCHECKED_FORMATS),
    "integer": tuple(_RANGES),
    "number": _FLOATS,
}
_MAX_INTEGER = 10**sql.MAX_DIGITS - 1


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if keys.options and (name := keys.options.format) is not None:
        clause, kind = keys.option("format", f"format {name}"), logical_type_of(keys.property)
        if find := _KINDS.get(kind):
            yield find(clause, keys.property, keys.column, name)
        else:
            yield not_evaluated(clause, f"{kind or 'an unknown type'} has no formats")


def _text(clause: Clause, _: Property, column: Column, name: str) -> Clause:
    if name in sql_values.UNCHECKED_FORMATS:
        return documented_only(clause, sql_values.UNCHECKED_FORMATS[name])
    if name not in sql_values.PATTERNS:
        return _unknown(clause, name, tuple(sql_values.PATTERNS))
    breaks = column.where(lambda value: sql_values.violates_format(name, value))
    return with_test(clause, RowTest(breaks, f"do not match format {name}"))


def _integer(clause: Clause, _: Property, column: Column, name: str) -> Clause:
    if name not in _RANGES:
        return _unknown(clause, name, tuple(_RANGES))
    least, greatest = _RANGES[name]
    # Spark's decimals have at most 38 digits, so larger bounds always hold.
    limits: list[tuple[Operator, int]] = [("<", least)] if least >= -_MAX_INTEGER else []
    limits += [(">", greatest)] if greatest <= _MAX_INTEGER else []
    if not limits:
        return documented_only(clause, f"every integer of Spark fits into {name}")

    def breaks(value: Path) -> Predicate:
        number = Path(value.steps, INTEGERS | {"decimal"})
        return any_of(*(Compare(number, operator, end) for operator, end in limits))

    return with_test(clause, RowTest(column.where(breaks), f"do not fit into {name}"))


def _number(clause: Clause, _: Property, __: Column, name: str) -> Clause:
    if name in _FLOATS:
        return documented_only(clause, "it describes precision, and every number can be rounded to it")
    return _unknown(clause, name, _FLOATS)


def _date(clause: Clause, prop: Property, column: Column, pattern: str) -> Clause:
    promised = physical_type(prop)
    if has_text_format(prop):
        # For texts, the format also decides whether the value is a date at all.
        clause = replace(clause, covers=(prop.path("logicalType"),))
    elif promised is None or promised.name not in TEXTS:
        return documented_only(
            clause, f"the column is a {promised or logical_type_of(prop)}, which has no text format"
        )
    try:
        test = violates_date_pattern(pattern)
    except Unusable as error:
        return not_evaluated(clause, str(error))
    return with_test(clause, RowTest(column.where(test), f"do not match the format {pattern}"))


def _unknown(clause: Clause, name: str, known_formats: tuple[str, ...]) -> Clause:
    return not_evaluated(
        clause, f"unknown format {name!r}; known formats: {', '.join(known_formats)}; or use pattern"
    )


_KINDS: dict[str, Callable[[Clause, Property, Column, str], Clause]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    **dict.fromkeys(("date", "timestamp", "time"), _date),
}


CHECK = property_check("format", __doc__, clauses)
