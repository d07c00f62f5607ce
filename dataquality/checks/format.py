"""Values have the `format` of their property: a named one of texts, the size of an integer, a date pattern.

Why: An address without `@`, a number that overflows its reader, a date that nobody can parse.
Bad: `format: email` and a row with `eve(at)example.com`.
Good: A row with `eve@example.com`.
Nulls: NULL does not break it; the empty text has no format. Texts: email (RFC 5321, without quoted parts),
uuid, uri (absolute, RFC 3986), hostname, ipv4, ipv6, date and date-time (RFC 3339), byte (base64). Integers:
i8 to i128 and u8 to u128 as ranges. Dates, timestamps and times: a pattern of the JDK's DateTimeFormatter on
columns of texts; a bare `T` stands for itself, as in the standard's examples. A column that is a date has no
form, and f32, f64, password and binary exclude nothing, so that there the format is documented only.
Mend: Correct the value at its source. For a format of your own write `pattern`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dq.contracts.model import Property
from dq.contracts.sql import text as sql
from dq.contracts.types import physical_type
from dq.dataquality import sql_values
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, asking, documented, left_out
from dq.dataquality.clauses.kind import of_properties
from dq.dataquality.model.column import Column
from dq.dataquality.model.predicate import INTEGERS, TEXTS, Compare, Operator, Path, Predicate, any_of
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.sql_values import logical, told_by_format, unfit

_BITS = (8, 16, 32, 64, 128)
_RANGES = {
    **{f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"u{bits}": (0, 2**bits - 1) for bits in _BITS},
}
_FLOATS = ("f32", "f64")
# Logical type -> the formats with a name.
FORMATS = {
    "string": (*sql_values.PATTERNS, *sql_values.ANY_TEXT),
    "integer": tuple(_RANGES),
    "number": _FLOATS,
}
_MOST = 10**sql.MAX_DIGITS - 1


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    if keys.options and (name := keys.options.format) is not None:
        made, kind = keys.option("format", f"format {name}"), logical(keys.property)
        if find := _KINDS.get(kind):
            yield find(made, keys.property, keys.column, name)
        else:
            yield left_out(made, f"{kind or 'an unknown type'} has no formats")


def _text(made: Clause, _: Property, column: Column, name: str) -> Clause:
    if name in sql_values.ANY_TEXT:
        return documented(made, sql_values.ANY_TEXT[name])
    if name not in sql_values.PATTERNS:
        return _unknown(made, name, tuple(sql_values.PATTERNS))
    breaks = column.where(lambda value: sql_values.breaks(name, value))
    return asking(made, RowTest(breaks, f"have not the format {name}"))


def _integer(made: Clause, _: Property, column: Column, name: str) -> Clause:
    if name not in _RANGES:
        return _unknown(made, name, tuple(_RANGES))
    least, most = _RANGES[name]
    # No decimal of Spark goes beyond 38 digits, so that a larger bound holds by itself.
    ends: list[tuple[Operator, int]] = [("<", least)] if least >= -_MOST else []
    ends += [(">", most)] if most <= _MOST else []
    if not ends:
        return documented(made, f"every integer of Spark fits into {name}")

    def breaks(value: Path) -> Predicate:
        number = Path(value.steps, INTEGERS | {"decimal"})
        return any_of(*(Compare(number, operator, end) for operator, end in ends))

    return asking(made, RowTest(column.where(breaks), f"do not fit into {name}"))


def _number(made: Clause, _: Property, __: Column, name: str) -> Clause:
    if name in _FLOATS:
        return documented(made, "it says how exact the numbers are, and every number has a nearest one")
    return _unknown(made, name, _FLOATS)


def _date(made: Clause, prop: Property, column: Column, pattern: str) -> Clause:
    promised = physical_type(prop)
    if told_by_format(prop):
        # Whether a text is a date at all is told by its form alone.
        made = replace(made, covers=(prop.path("logicalType"),))
    elif promised is None or promised.name not in TEXTS:
        return documented(made, f"the column is a {promised or logical(prop)}, which has no form")
    try:
        test = unfit(pattern)
    except Unusable as error:
        return left_out(made, str(error))
    return asking(made, RowTest(column.where(test), f"are not of the form {pattern}"))


def _unknown(made: Clause, name: str, known: tuple[str, ...]) -> Clause:
    return left_out(made, f"the format {name!r} is not known here; known are {', '.join(known)}, and pattern")


_KINDS: dict[str, Callable[[Clause, Property, Column, str], Clause]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    **dict.fromkeys(("date", "timestamp", "time"), _date),
}


CHECK = of_properties("format", __doc__, clauses)
