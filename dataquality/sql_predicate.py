"""TABLE: predicates, terms and aggregates as Spark SQL, for known column types."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dq.contracts.pattern import TOO_LONG
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model.column import WALKED, element_type, type_at
from dq.dataquality.model.metric import RANK_ACCURACY, Aggregate

_EXACT = p.INTEGERS | {"decimal"}
_SINCE_1970 = {
    "date": "unix_date({0})",
    "timestamp": "unix_micros({0})",
    # Timestamps without a zone must not be converted with the session's zone.
    "timestamp_ntz": (
        "unix_date(CAST({0} AS DATE)) * 86400000000L + hour({0}) * 3600000000L + minute({0}) * 60000000L"
        " + CAST(extract(SECOND FROM {0}) * 1000000 AS BIGINT)"
    ),
}


@dataclass(frozen=True, slots=True)
class _SqlSubject:
    """Subject of a predicate: the row (empty name), or the lambda variable of this name.

    `type` is None if unknown.
    """

    name: str
    type: DataType | None
    depth: int = 0

    def path(self, path: p.Path) -> str:
        return ".".join([*([self.name] if self.name else []), *(sql.name(step) for step in path.steps)])

    def type_of(self, term: p.Term) -> DataType | None:
        """Return the type of a path, or None for computed values and unknown types."""
        return type_at(self.type, term)


def predicate_sql(predicate: p.Predicate, schema: DataType) -> str:
    """Return the SQL of a predicate on rows of this schema (a struct)."""
    return _truth(predicate, _SqlSubject("", schema))


def question(metric: Aggregate, schema: DataType) -> str:
    """Return the SQL of an aggregate, filtered with CASE.

    FILTER (WHERE …) gives the same number, but its generated code is so much longer that 120 aggregates take
    four times the CPU (Spark 4.0).
    """
    value = "1" if metric.value is None else _value(metric.value, _SqlSubject("", schema))
    if metric.where is not None:
        value = f"CASE WHEN {predicate_sql(metric.where, schema)} THEN {value} END"
    if metric.share is not None:
        return _RANKS[metric.name].format(value, f"CAST('{metric.share}' AS DECIMAL(38, 18))", metric.share)
    return f"{metric.name}({value})"


# {0} is the value, {1} and {2} are the share as a decimal and as a literal. Spark's own percentile converts
# decimals and large integers to doubles. Spark collects the list of two such aggregates only once.
_RANKS = {
    "rank_below": "get(array_sort(collect_list({0})), CAST(floor({1} * (count({0}) - 1)) AS INT))",
    "rank_above": "get(array_sort(collect_list({0})), CAST(ceil({1} * (count({0}) - 1)) AS INT))",
    "rank_near": f"percentile_approx({{0}}, {{2}}, {RANK_ACCURACY})",
}


def _truth(node: p.Predicate, subject: _SqlSubject) -> str:
    return _TRUTHS[type(node)](node, subject)


def _value(node: p.Term, subject: _SqlSubject) -> str:
    return _VALUES[type(node)](node, subject)


def _join_predicates(word: str, parts: Sequence[p.Predicate], subject: _SqlSubject) -> str:
    return f" {word} ".join(f"({_truth(part, subject)})" for part in parts)


def _null_safe(value: str, expression: str) -> str:
    """Return SQL that is NULL for a NULL value, regardless of Spark's settings, and `expression`
    otherwise.
    """
    return f"CASE WHEN {value} IS NOT NULL THEN {expression} END"


# Literals.


def literal_sql(value: p.Literal | None) -> str:
    """Return a Python value as a Spark SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return sql.text(value)
    if isinstance(value, dt.datetime):
        return sql.timestamp(value) if value.tzinfo is not None else sql.civil_timestamp(value)
    if isinstance(value, dt.date):
        return sql.date(value)
    if isinstance(value, float):
        return f"({value!r}D)" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    return sql.number(value)


def _comparison_literal(value: p.Literal, kind: DataType | None) -> str:
    """Return the literal to compare with a column of this type.

    Spark compares floats with numbers as doubles, in which the float nearest to 0.1 is greater than 0.1.
    """
    literal = literal_sql(value)
    number = not isinstance(value, bool | str | dt.date)
    return f"CAST({literal} AS FLOAT)" if number and kind is not None and kind.name == "float" else literal


def _compare(node: p.Compare, subject: _SqlSubject) -> str:
    left = _value(node.value, subject)
    if isinstance(node.other, p.Term):
        return f"{left} {node.operator} {_value(node.other, subject)}"
    test = f"{left} {node.operator} {_comparison_literal(node.other, subject.type_of(node.value))}"
    # For constants beyond bigint, Spark folds the comparison to true or false even for NULL.
    exceeds_bigint = node.kind in ("integer", "decimal") and not -(2**63) <= node.other < 2**63  # type: ignore[operator]
    return _null_safe(left, test) if exceeds_bigint else test


def _in(node: p.In, subject: _SqlSubject) -> str:
    value, kind = _value(node.value, subject), subject.type_of(node.value)
    # Spark compares a whole list as one type: with a double in it, 2^63 - 1 equals 2^63.
    doubles = [value for value in node.values if isinstance(value, float) or _is_double(value)]
    others_than_doubles = [value for value in node.values if value not in doubles]
    lists = [
        ", ".join(_comparison_literal(value, kind) for value in values)
        for values in (others_than_doubles, doubles)
        if values
    ]
    return " OR ".join(f"{value} IN ({listed})" for listed in lists)


def _is_double(value: p.Literal) -> bool:
    """Return True if an exact number has too many digits for Spark's decimals and is written as a double."""
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return number and sql.digits(value) == (0, 0)  # type: ignore[arg-type]  # a number


def _missing(node: p.Missing, subject: _SqlSubject) -> str:
    holder = p.Path(node.value.steps[:-1])
    if not node.value.steps or not (holder.steps or subject.name):
        return f"{subject.path(node.value)} IS NULL"
    return f"{subject.path(holder)} IS NOT NULL AND {subject.path(node.value)} IS NULL"


def _is_nan(node: p.IsNaN, subject: _SqlSubject) -> str:
    kind = subject.type_of(node.value)
    return f"isnan({subject.path(node.value)})" if kind is None or kind.name in p.FLOATS else "FALSE"


def _has_day(node: p.HasDay, subject: _SqlSubject) -> str:
    value, shape, day_shape = subject.path(node.value), sql.text(node.shape.pattern), node.shape

    def part(group: int) -> str:
        return f"regexp_extract({value}, {shape}, {group})"

    year = (
        f"{sql.text(day_shape.century)}, {part(day_shape.year)}"
        if day_shape.century
        else part(day_shape.year)
    )
    month = part(day_shape.month)
    if day_shape.months:
        month = f"CAST((instr({sql.text(day_shape.months)}, left({month}, 3)) + 2) DIV 3 AS STRING)"
    day = f"TRY_CAST(concat({year}, '-', {month}, '-', {part(day_shape.day)}) AS DATE)"
    return f"{value} IS NOT NULL AND {value} RLIKE {shape} AND {day} IS NOT NULL"


def _matches(node: p.Matches, subject: _SqlSubject) -> str:
    value = _value(node.value, subject)
    match = f"{value} RLIKE {sql.text(node.pattern)}"
    if node.longest is None:
        return match
    raise_error = f"raise_error({sql.text(TOO_LONG)})"
    return (
        f"CASE WHEN length({value}) <= {node.longest} THEN {match} WHEN {value} IS NOT NULL THEN "
        f"{raise_error} END"
    )


def _multiple(node: p.MultipleOf, subject: _SqlSubject) -> str:
    value, step, kind = subject.path(node.value), sql.number(node.step), subject.type_of(node.value)
    if kind is not None and kind.name in _EXACT:
        return f"{value} % {step} = 0"
    # Binary floats have no exact remainder: 0.07 % 0.01 is 0.00999. Spark converts a float to a decimal
    # through a double, which has other digits.
    shortest = f"CAST({value} AS STRING)" if kind is not None and kind.name == "float" else value
    return _null_safe(value, f"coalesce(try_cast({shortest} AS DECIMAL(38,18)) % {step} = 0, FALSE)")


def _repeats(node: p.Repeats, subject: _SqlSubject) -> str:
    value = subject.path(node.value)
    return _null_safe(value, f"size(array_distinct({value})) < size({value})")


def _normalized(node: p.Normalized, subject: _SqlSubject) -> str:
    value = subject.path(node.value)
    squares = f"aggregate({value}, 0D, (_dq_sum, _dq_one) -> _dq_sum + CAST(_dq_one AS DOUBLE) * _dq_one)"
    return _null_safe(value, f"coalesce(abs(sqrt({squares}) - 1) <= {node.tolerance}, FALSE)")


def _exists(node: p.Exists, subject: _SqlSubject) -> str:
    name, part = f"_dq_{subject.depth}", element_type(subject.type_of(node.value), node.part)
    inner = _truth(node.holds, _SqlSubject(name, part, subject.depth + 1))
    return f"exists({WALKED[node.part].format(subject.path(node.value))}, {name} -> {inner})"


def _opaque(node: p.Opaque, subject: _SqlSubject) -> str:
    # Its names refer to the row's columns, so it cannot be inside a lambda.
    assert not subject.name
    return node.sql


# The first parameter is the class of the key; mypy cannot express this, hence Any.
_TRUTHS: Mapping[type, Callable[[Any, _SqlSubject], str]] = {
    p.Constant: lambda node, _: "CAST(NULL AS BOOLEAN)" if node.truth is None else str(node.truth).upper(),
    p.Holds: lambda node, subject: _value(node.value, subject),
    p.IsNull: lambda node, subject: f"{_value(node.value, subject)} IS NULL",
    p.Missing: _missing,
    p.IsNaN: _is_nan,
    p.Compare: _compare,
    p.In: _in,
    p.Matches: _matches,
    p.HasDay: _has_day,
    p.MultipleOf: _multiple,
    p.Repeats: _repeats,
    p.HasKey: lambda node, subject: f"map_contains_key({subject.path(node.value)}, {sql.text(node.key)})",
    p.Normalized: _normalized,
    p.Not: lambda node, subject: f"NOT ({_truth(node.part, subject)})",
    p.And: lambda node, subject: _join_predicates("AND", node.parts, subject),
    p.Or: lambda node, subject: _join_predicates("OR", node.parts, subject),
    p.Exists: _exists,
    p.Opaque: _opaque,
}


def _count_present(node: p.Present, subject: _SqlSubject) -> str:
    value = subject.path(node.value)
    field_flags = [f"CAST({value}.{sql.name(name)} IS NOT NULL AS INT)" for name in node.fields]
    return _null_safe(value, " + ".join(field_flags))


def _integer_value(node: p.IntegerValue, subject: _SqlSubject) -> str:
    value, kind = subject.path(node.value), subject.type_of(node.value)
    return f"CAST({value} AS INT)" if kind is not None and kind.name == "boolean" else value


def _function(node: p.Function, subject: _SqlSubject) -> str:
    arguments = [
        _value(argument, subject) if isinstance(argument, p.Term) else literal_sql(argument)
        for argument in node.arguments
    ]
    if node.name in _FUNCTIONS:
        return _FUNCTIONS[node.name].format(*arguments)
    return f"{node.name}({', '.join(arguments)})"


# Functions that Spark SQL writes in another way than `name(arguments)`.
_FUNCTIONS = {
    "plus": "({0} + {1})",
    "div": "({0} DIV {1})",
    "try_date": "TRY_CAST({0} AS DATE)",
    "try_decimal": "TRY_CAST({0} AS DECIMAL({1}, {2}))",
}

_VALUES: Mapping[type, Callable[[Any, _SqlSubject], str]] = {
    p.Path: lambda node, subject: subject.path(node),
    p.Length: lambda node, subject: f"char_length({_value(node.value, subject)})",
    p.Remainder: lambda node, subject: f"{_value(node.value, subject)} % {node.by}",
    p.Size: lambda node, subject: _null_safe(subject.path(node.value), f"size({subject.path(node.value)})"),
    p.Entries: lambda node, subject: _null_safe(
        subject.path(node.value), f"size({subject.path(node.value)})"
    ),
    p.Present: _count_present,
    p.IntegerValue: _integer_value,
    p.Since1970: lambda node, subject: _SINCE_1970[node.type].format(subject.path(node.value)),
    p.Function: _function,
    p.Opaque: _opaque,
}
