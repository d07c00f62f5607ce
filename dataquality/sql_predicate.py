"""TABLE: predicates, terms and aggregates as Spark SQL, written when the types of the columns are known."""

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
from dq.dataquality.model.column import WALKED, part_of, type_below
from dq.dataquality.model.metric import RANK_ACCURACY, Aggregate

_EXACT = p.INTEGERS | {"decimal"}
_SINCE_1970 = {
    "date": "unix_date({0})",
    "timestamp": "unix_micros({0})",
    # A timestamp without zone must not pass through the session's.
    "timestamp_ntz": (
        "unix_date(CAST({0} AS DATE)) * 86400000000L + hour({0}) * 3600000000L + minute({0}) * 60000000L"
        " + CAST(extract(SECOND FROM {0}) * 1000000 AS BIGINT)"
    ),
}


@dataclass(frozen=True, slots=True)
class _SqlSubject:
    """What a predicate speaks about: the row (no name), or a part that a lambda calls by this name.

    `type` is None where it is not known.
    """

    name: str
    type: DataType | None
    depth: int = 0

    def path(self, path: p.Path) -> str:
        return ".".join([*([self.name] if self.name else []), *(sql.name(step) for step in path.steps)])

    def type_of(self, term: p.Term) -> DataType | None:
        """The type of a path; None for what is computed, and where it is not known."""
        return type_below(self.type, term)


def predicate_sql(predicate: p.Predicate, schema: DataType) -> str:
    """The predicate on rows of this schema (a struct)."""
    return _truth(predicate, _SqlSubject("", schema))


def question(metric: Aggregate, schema: DataType) -> str:
    """The aggregate over CASE: the same number as with FILTER (WHERE …), whose generated code is so much
    longer that 120 of them take four times the CPU (Spark 4.0)."""
    value = "1" if metric.value is None else _value(metric.value, _SqlSubject("", schema))
    if metric.where is not None:
        value = f"CASE WHEN {predicate_sql(metric.where, schema)} THEN {value} END"
    if metric.share is not None:
        return _RANKS[metric.name].format(value, f"CAST('{metric.share}' AS DECIMAL(38, 18))", metric.share)
    return f"{metric.name}({value})"


# {0} is the value, {1} and {2} are the share, as a decimal and as a literal. Spark's own percentile makes
# doubles of decimals and of large integers. Between two aggregates of one list Spark collects it once.
_RANKS = {
    "rank_below": "get(array_sort(collect_list({0})), CAST(floor({1} * (count({0}) - 1)) AS INT))",
    "rank_above": "get(array_sort(collect_list({0})), CAST(ceil({1} * (count({0}) - 1)) AS INT))",
    "rank_near": f"percentile_approx({{0}}, {{2}}, {RANK_ACCURACY})",
}


def _truth(node: p.Predicate, here: _SqlSubject) -> str:
    return _TRUTHS[type(node)](node, here)


def _value(node: p.Term, here: _SqlSubject) -> str:
    return _VALUES[type(node)](node, here)


def _joined(word: str, parts: Sequence[p.Predicate], here: _SqlSubject) -> str:
    return f" {word} ".join(f"({_truth(part, here)})" for part in parts)


def _present(value: str, told: str) -> str:
    """What is told of a value, and NULL of NULL, whatever Spark's settings make of it."""
    return f"CASE WHEN {value} IS NOT NULL THEN {told} END"


# Literals.


def literal_sql(value: p.Literal | None) -> str:
    """A value of Python as Spark's literal of the same kind."""
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


def _compared_with(value: p.Literal, kind: DataType | None) -> str:
    """The literal as a column of this type is compared with it.

    Spark compares a float with a number as doubles, where the float nearest to 0.1 is more than 0.1.
    """
    written = literal_sql(value)
    number = not isinstance(value, bool | str | dt.date)
    return f"CAST({written} AS FLOAT)" if number and kind is not None and kind.name == "float" else written


def _compare(node: p.Compare, here: _SqlSubject) -> str:
    left = _value(node.value, here)
    if isinstance(node.other, p.Term):
        return f"{left} {node.operator} {_value(node.other, here)}"
    test = f"{left} {node.operator} {_compared_with(node.other, here.type_of(node.value))}"
    # Spark takes what no bigint can hold for true or false of a NULL, too.
    beyond = node.kind in ("integer", "decimal") and not -(2**63) <= node.other < 2**63  # type: ignore[operator]
    return _present(left, test) if beyond else test


def _in(node: p.In, here: _SqlSubject) -> str:
    value, kind = _value(node.value, here), here.type_of(node.value)
    # Spark compares all of a list as one type: with a double in it, 2^63 - 1 is 2^63.
    doubles = [one for one in node.values if isinstance(one, float) or _is_double(one)]
    rest = [one for one in node.values if one not in doubles]
    lists = [", ".join(_compared_with(one, kind) for one in some) for some in (rest, doubles) if some]
    return " OR ".join(f"{value} IN ({listed})" for listed in lists)


def _is_double(value: p.Literal) -> bool:
    """Whether an exact number has more digits than Spark's decimals, and is written as a double."""
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return number and sql.digits(value) == (0, 0)  # type: ignore[arg-type]  # a number


def _missing(node: p.Missing, here: _SqlSubject) -> str:
    holder = p.Path(node.value.steps[:-1])
    if not node.value.steps or not (holder.steps or here.name):
        return f"{here.path(node.value)} IS NULL"
    return f"{here.path(holder)} IS NOT NULL AND {here.path(node.value)} IS NULL"


def _is_nan(node: p.IsNaN, here: _SqlSubject) -> str:
    kind = here.type_of(node.value)
    return f"isnan({here.path(node.value)})" if kind is None or kind.name in p.FLOATS else "FALSE"


def _has_day(node: p.HasDay, here: _SqlSubject) -> str:
    value, shape, known = here.path(node.value), sql.text(node.shape.pattern), node.shape

    def part(group: int) -> str:
        return f"regexp_extract({value}, {shape}, {group})"

    year = f"{sql.text(known.century)}, {part(known.year)}" if known.century else part(known.year)
    month = part(known.month)
    if known.months:
        month = f"CAST((instr({sql.text(known.months)}, left({month}, 3)) + 2) DIV 3 AS STRING)"
    day = f"TRY_CAST(concat({year}, '-', {month}, '-', {part(known.day)}) AS DATE)"
    return f"{value} IS NOT NULL AND {value} RLIKE {shape} AND {day} IS NOT NULL"


def _matches(node: p.Matches, here: _SqlSubject) -> str:
    value = _value(node.value, here)
    found = f"{value} RLIKE {sql.text(node.pattern)}"
    if node.longest is None:
        return found
    beyond = f"raise_error({sql.text(TOO_LONG)})"
    return (
        f"CASE WHEN length({value}) <= {node.longest} THEN {found} WHEN {value} IS NOT NULL THEN {beyond} END"
    )


def _multiple(node: p.MultipleOf, here: _SqlSubject) -> str:
    value, step, kind = here.path(node.value), sql.number(node.step), here.type_of(node.value)
    if kind is not None and kind.name in _EXACT:
        return f"{value} % {step} = 0"
    # Binary floats have no exact remainder: 0.07 % 0.01 is 0.00999. Spark makes a decimal of a float by way
    # of a double, which has other digits.
    shortest = f"CAST({value} AS STRING)" if kind is not None and kind.name == "float" else value
    return _present(value, f"coalesce(try_cast({shortest} AS DECIMAL(38,18)) % {step} = 0, FALSE)")


def _repeats(node: p.Repeats, here: _SqlSubject) -> str:
    value = here.path(node.value)
    return _present(value, f"size(array_distinct({value})) < size({value})")


def _normalized(node: p.Normalized, here: _SqlSubject) -> str:
    value = here.path(node.value)
    squares = f"aggregate({value}, 0D, (_dq_sum, _dq_one) -> _dq_sum + CAST(_dq_one AS DOUBLE) * _dq_one)"
    return _present(value, f"coalesce(abs(sqrt({squares}) - 1) <= {node.tolerance}, FALSE)")


def _exists(node: p.Exists, here: _SqlSubject) -> str:
    name, part = f"_dq_{here.depth}", part_of(here.type_of(node.value), node.part)
    inner = _truth(node.holds, _SqlSubject(name, part, here.depth + 1))
    return f"exists({WALKED[node.part].format(here.path(node.value))}, {name} -> {inner})"


def _opaque(node: p.Opaque, here: _SqlSubject) -> str:
    # Its names are those of the row's columns.
    assert not here.name
    return node.sql


# What is given in a type for each class; mypy knows no dispatch by type in a table.
_TRUTHS: Mapping[type, Callable[[Any, _SqlSubject], str]] = {
    p.Constant: lambda node, _: "CAST(NULL AS BOOLEAN)" if node.truth is None else str(node.truth).upper(),
    p.Holds: lambda node, here: _value(node.value, here),
    p.IsNull: lambda node, here: f"{_value(node.value, here)} IS NULL",
    p.Missing: _missing,
    p.IsNaN: _is_nan,
    p.Compare: _compare,
    p.In: _in,
    p.Matches: _matches,
    p.HasDay: _has_day,
    p.MultipleOf: _multiple,
    p.Repeats: _repeats,
    p.HasKey: lambda node, here: f"map_contains_key({here.path(node.value)}, {sql.text(node.key)})",
    p.Normalized: _normalized,
    p.Not: lambda node, here: f"NOT ({_truth(node.part, here)})",
    p.And: lambda node, here: _joined("AND", node.parts, here),
    p.Or: lambda node, here: _joined("OR", node.parts, here),
    p.Exists: _exists,
    p.Opaque: _opaque,
}


def _count_present(node: p.Present, here: _SqlSubject) -> str:
    value = here.path(node.value)
    known = [f"CAST({value}.{sql.name(name)} IS NOT NULL AS INT)" for name in node.fields]
    return _present(value, " + ".join(known))


def _whole(node: p.Whole, here: _SqlSubject) -> str:
    value, kind = here.path(node.value), here.type_of(node.value)
    return f"CAST({value} AS INT)" if kind is not None and kind.name == "boolean" else value


def _function(node: p.Function, here: _SqlSubject) -> str:
    told = [_value(each, here) if isinstance(each, p.Term) else literal_sql(each) for each in node.arguments]
    if node.name in _FUNCTIONS:
        return _FUNCTIONS[node.name].format(*told)
    return f"{node.name}({', '.join(told)})"


# Those that are no functions by their name.
_FUNCTIONS = {
    "plus": "({0} + {1})",
    "div": "({0} DIV {1})",
    "try_date": "TRY_CAST({0} AS DATE)",
    "try_decimal": "TRY_CAST({0} AS DECIMAL({1}, {2}))",
}

_VALUES: Mapping[type, Callable[[Any, _SqlSubject], str]] = {
    p.Path: lambda node, here: here.path(node),
    p.Length: lambda node, here: f"char_length({_value(node.value, here)})",
    p.Remainder: lambda node, here: f"{_value(node.value, here)} % {node.by}",
    p.Size: lambda node, here: _present(here.path(node.value), f"size({here.path(node.value)})"),
    p.Entries: lambda node, here: _present(here.path(node.value), f"size({here.path(node.value)})"),
    p.Present: _count_present,
    p.Whole: _whole,
    p.Since1970: lambda node, here: _SINCE_1970[node.type].format(here.path(node.value)),
    p.Function: _function,
    p.Opaque: _opaque,
}
