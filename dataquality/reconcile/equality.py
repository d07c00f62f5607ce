"""Equality of a value on the left and a value on the right: the normal form of every pair of types.

TABLE: the meaning of equality, in the order in which it is decided.

- NULL equals NULL and nothing else. An empty string is not NULL.
- Integers, and decimals of any precision and scale, are equal if their values are: 1 = 1.00.
- A float, double or decimal is compared in the less exact type of both: a decimal equals a double if the
  double is the nearest one to it. -0.0 equals 0.0, NaN equals NaN.
- Strings are compared byte by byte, without Unicode normalization, and with case and spaces. If one side is
  a `char(n)`, trailing spaces are padding and are not compared.
- Timestamps are instants, whatever their unit and the zone they are shown in. A timestamp without a zone, or
  a date, is compared with an instant as UTC. A date equals the timestamp of its midnight.
- A string is compared with a boolean, number, date or timestamp by its value. A text that is not a value of
  that type differs from every value.
- Arrays are compared by order, structs by field names (ignoring case), maps without order.
- Any other pair of types is not comparable, which is a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS
from dq.dataquality.spark.schema import type_ddl

Expression = Callable[[str], str]
"""From SQL of a value to SQL."""

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EXACT = INTEGERS | {"decimal"}
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_UNCHANGED = frozenset({"boolean", "binary", "date", "timestamp", "timestamp_ntz"})
# Types whose values can be written as text.
_PARSED = NUMBERS | _TIMES | {"boolean"}
# JSON in which different values are different texts.
_JSON_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)


class Family(StrEnum):
    """Kind of a normal form. MICROSECONDS since 1970 are instants."""

    TEXT = "text"
    NUMBER = "number"
    TIMESTAMP = "timestamp"
    MICROSECONDS = "microseconds"
    ARRAY = "array"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Equality:
    """Comparison of values of two types: equal if and only if their normal forms are, with NULL = NULL.

    `compared_as` names the normal form. `invalid` is set if a side is text of another type; it returns the
    texts that are not values of that type, and NULL for others, for the left and the right side.
    """

    compared_as: str
    family: Family
    left: Expression
    right: Expression
    is_nested: bool = False
    invalid: tuple[Expression, Expression] | None = None

    def hashed(self, normal: str) -> str:
        """Return SQL that is equal for equal normal forms and hashed with every NULL inside."""
        # Spark's hashes skip NULLs, so that [NULL, 1] and [1, NULL] would be the same.
        return f"to_json(named_struct('v', {normal}), {_JSON_OPTIONS})" if self.is_nested else normal


def equality(left: DataType, right: DataType) -> Equality | str:
    """Return how values of two types are compared, or the reason why they are not comparable."""
    return _equality(left, right, 0)


def is_number(kind: DataType) -> bool:
    """Return True if values of the type have differences."""
    return kind.name in NUMBERS


def _equality(left: DataType, right: DataType, depth: int) -> Equality | str:
    if "void" in (left.name, right.name):
        return _with_void(left, right, depth)
    if left.name in TEXTS and right.name in TEXTS:
        is_padded = "char" in (left.name, right.name)
        label = "string without trailing spaces" if is_padded else "string"
        trim = _trimmed if is_padded else _same
        return Equality(label, Family.TEXT, trim, trim)
    if left.name in NUMBERS and right.name in NUMBERS:
        return _number(left, right)
    if left == right and left.name in _UNCHANGED:
        family = Family.TIMESTAMP if left.name.startswith("timestamp") else Family.OTHER
        return Equality(str(left), family, _same, _same)
    if left.name in _TIMES and right.name in _TIMES:
        return _time(left, right)
    if left.name == right.name == "array":
        return _array(left, right, depth)
    if left.name == right.name == "map":
        return _map(left, right, depth)
    if left.name == right.name == "struct":
        return _struct(left, right, depth)
    for text, other in ((left, right), (right, left)):
        if text.name in TEXTS and other.name in _PARSED and depth == 0:
            return _parsed(text, other, is_left=text is left)
    return f"{left} and {right} are not comparable"


def _same(value: str) -> str:
    return value


def _trimmed(value: str) -> str:
    return f"rtrim({value})"


def _with_void(left: DataType, right: DataType, depth: int) -> Equality | str:
    """Return the equality with a column that has no type, because all its values are NULL."""
    other = right if left.name == "void" else left
    if other.name == "void":
        return Equality("NULL", Family.OTHER, _same, _same)
    form = _equality(other, other, depth)
    if isinstance(form, str):
        return form
    typed = form

    def normal(value: str) -> str:
        return typed.left(_cast(value, other))

    sides = [normal if kind.name == "void" else form.left for kind in (left, right)]
    return Equality(form.compared_as, form.family, sides[0], sides[1], form.is_nested)


def _constant(text: str) -> Expression:
    return lambda _: text


def _cast(value: str, kind: DataType) -> str:
    return f"CAST({value} AS {type_ddl(kind)})"


def _number(left: DataType, right: DataType) -> Equality:
    if left.name in _EXACT and right.name in _EXACT:
        return _exact(left, right)
    name = "float" if "float" in (left.name, right.name) else "double"

    def normal(value: str) -> str:
        # Adding zero turns -0.0 into 0.0.
        return f"(CAST(CAST({value} AS {name}) AS DOUBLE) + 0.0D)"

    return Equality(name, Family.NUMBER, normal, normal)


def _exact(left: DataType, right: DataType) -> Equality:
    if left.name in INTEGERS and right.name in INTEGERS:
        return Equality("bigint", Family.NUMBER, *(lambda value: f"CAST({value} AS BIGINT)",) * 2)
    sizes = [kind.numbers if kind.name == "decimal" else (_DIGITS[kind.name], 0) for kind in (left, right)]
    scale = max(fraction for _, fraction in sizes)
    precision = max(digits - fraction for digits, fraction in sizes) + scale
    if precision <= MAX_PRECISION:
        kind = f"decimal({precision},{scale})"
        return Equality(kind, Family.NUMBER, *(lambda value: f"CAST({value} AS {kind})",) * 2)

    def parts(value: str) -> str:
        # No decimal has all digits of both: the integer and the fraction are compared separately.
        integer = f"CAST(floor({value}) AS DECIMAL({MAX_PRECISION},0))"
        fraction = f"CAST({value} % 1 AS DECIMAL({MAX_PRECISION},{scale}))"
        return f"IF({value} IS NULL, NULL, named_struct('integer', {integer}, 'fraction', {fraction}))"

    return Equality("decimal", Family.OTHER, parts, parts, is_nested=True)


def _time(left: DataType, right: DataType) -> Equality:
    kind = "timestamp" if "timestamp" in (left.name, right.name) else "timestamp_ntz"
    is_instant = kind == "timestamp"

    def normal(value: str, kind: DataType) -> str:
        civil = f"CAST({value} AS TIMESTAMP_NTZ)"
        if not is_instant:
            return civil
        # Microseconds, because the session's zone need not be UTC.
        return (
            f"unix_micros({value})"
            if kind.name == "timestamp"
            else f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {civil})"
        )

    family = Family.MICROSECONDS if is_instant else Family.TIMESTAMP
    return Equality(kind, family, lambda value: normal(value, left), lambda value: normal(value, right))


def _parsed(text: DataType, other: DataType, *, is_left: bool) -> Equality | str:
    form = _equality(other, other, 0)
    assert isinstance(form, Equality)

    def parse(value: str) -> str:
        return f"try_cast({_trimmed(value) if text.name == 'char' else value} AS {type_ddl(other)})"

    def parsed(value: str) -> str:
        return form.left(parse(value))

    def invalid(value: str) -> str:
        return f"IF({value} IS NOT NULL AND {parse(value)} IS NULL, {value}, NULL)"

    nothing = _constant("CAST(NULL AS STRING)")
    if is_left:
        return Equality(form.compared_as, form.family, parsed, form.right, invalid=(invalid, nothing))
    return Equality(form.compared_as, form.family, form.left, parsed, invalid=(nothing, invalid))


def _array(left: DataType, right: DataType, depth: int) -> Equality | str:
    item = _equality(left.parts[0], right.parts[0], depth + 1)
    if isinstance(item, str):
        return f"the items {item}"
    name = f"item{depth}"

    def for_items(form: Expression) -> Expression:
        return lambda value: f"transform({value}, {name} -> {form(name)})"

    return Equality(
        f"array<{item.compared_as}>",
        Family.ARRAY,
        for_items(item.left),
        for_items(item.right),
        is_nested=True,
    )


def _map(left: DataType, right: DataType, depth: int) -> Equality | str:
    pairs = [_equality(*kinds, depth + 1) for kinds in zip(left.parts, right.parts, strict=True)]
    for name, form in zip(("keys", "values"), pairs, strict=True):
        if isinstance(form, str):
            return f"the {name} {form}"
    key, item = pairs
    assert isinstance(key, Equality)
    assert isinstance(item, Equality)
    entry = f"entry{depth}"

    def entries(key_form: Expression, value_form: Expression) -> Expression:
        fields = f"'key', {key_form(f'{entry}.key')}, 'value', {value_form(f'{entry}.value')}"
        return lambda value: f"array_sort(transform(map_entries({value}), {entry} -> named_struct({fields})))"

    label = f"map<{key.compared_as},{item.compared_as}>"
    return Equality(
        label, Family.OTHER, entries(key.left, item.left), entries(key.right, item.right), is_nested=True
    )


def _struct(left: DataType, right: DataType, depth: int) -> Equality | str:
    right_names = {name.lower(): (name, kind) for name, kind in zip(right.names, right.parts, strict=True)}
    left_names = {name.lower() for name in left.names}
    if len(left_names) != len(left.names) or len(right_names) != len(right.names):
        return "structs with field names that differ only in case are not comparable"
    if left_names != set(right_names):
        different_names = ", ".join(sorted(left_names ^ set(right_names)))
        return f"structs have different fields: {different_names}"
    forms: list[tuple[str, str, Equality]] = []
    for name, kind in zip(left.names, left.parts, strict=True):
        right_name, right_kind = right_names[name.lower()]
        form = _equality(kind, right_kind, depth + 1)
        if isinstance(form, str):
            return f"field {name}: {form}"
        forms.append((name, right_name, form))
    label = ",".join(f"{name}:{form.compared_as}" for name, _, form in forms)

    def fields(*, is_left: bool) -> Expression:
        def normal(value: str) -> str:
            members = ", ".join(
                f"'{number}', "
                + (form.left if is_left else form.right)(
                    f"{value}.{sql.name(name if is_left else right_name)}"
                )
                for number, (name, right_name, form) in enumerate(forms)
            )
            return f"IF({value} IS NULL, NULL, named_struct({members}))"

        return normal

    return Equality(
        f"struct<{label}>", Family.OTHER, fields(is_left=True), fields(is_left=False), is_nested=True
    )
