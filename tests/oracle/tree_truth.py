"""What a predicate is of a row, in plain Python and from its docstring: no renderer's code is in it."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from oracle.formats import shortest
from oracle.trees import narrow

from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t

Truth = bool | None


class Plain:
    """Evaluates predicates; `meanings` are the trees that users' texts were written from."""

    def __init__(self, meanings: Mapping[str, p.Predicate]) -> None:
        self.meanings = meanings

    def truth(self, node: p.Predicate, subject: Any, kind: DataType, *, row: bool = True) -> Truth:
        """True, False or None for a subject of this type."""

        def again(inner: p.Predicate) -> Truth:
            return self.truth(inner, subject, kind, row=row)

        if isinstance(node, t.Opaque):
            return again(self.meanings[node.sql])
        if isinstance(node, p.Not):
            inner = again(node.part)
            return None if inner is None else not inner
        if isinstance(node, p.And):
            found = [again(part) for part in node.parts]
            return False if False in found else None if None in found else True
        if isinstance(node, p.Or):
            found = [again(part) for part in node.parts]
            return True if True in found else None if None in found else False
        if isinstance(node, p.Exists):
            return self._exists(node, subject, kind)
        if isinstance(node, p.Constant):
            return node.truth
        if isinstance(node, p.Missing):
            held = subject
            for step in node.value.steps[:-1]:
                held = None if held is None else held[step]
            inside = bool(node.value.steps) and not (row and len(node.value.steps) == 1)
            value = _at(subject, node.value)
            return value is None and (held is not None if inside else True)
        value, of = _value(node.value, subject), _type(node.value, kind)
        if isinstance(node, p.IsNull):
            return value is None
        if isinstance(node, p.IsNaN):
            return isinstance(value, float) and math.isnan(value)
        if isinstance(node, p.HasDay):
            return value is not None and _names_a_day(value, node.shape)
        if value is None:
            return None
        if isinstance(node, p.Compare) and isinstance(node.other, t.Term):
            other = _value(node.other, subject)
            return None if other is None else _COMPARED[node.operator](_rank(value, other, None))
        return _of_value(node, value, of)

    def _exists(self, node: p.Exists, subject: Any, kind: DataType) -> Truth:
        parts = _at(subject, node.value)
        if parts is None:
            return None
        holder = _type(node.value, kind)
        assert holder is not None
        part = holder.parts[1 if node.part is t.Inside.VALUE else 0]
        if node.part is not t.Inside.ITEM:
            parts = [pair[0 if node.part is t.Inside.KEY else 1] for pair in parts]
        found = [self.truth(node.holds, one, part, row=False) for one in parts]
        return True if True in found else None if None in found else False


def readable(node: p.Predicate) -> bool:
    """Whether every pattern in it means to Python what it means to Java."""
    if isinstance(node, p.And | p.Or):
        return all(map(readable, node.parts))
    if isinstance(node, p.Not):
        return readable(node.part)
    if isinstance(node, p.Exists):
        return readable(node.holds)
    return not isinstance(node, p.Matches) or r"\p{" not in node.pattern.lower()


_CODE = re.compile(r"\\x\{([0-9A-F]+)\}")


def _python(java: str) -> str:
    """Java's pattern for Python: code points by number, and classes in classes as one."""
    made, depth = "", 0
    for token in re.findall(r"\\x\{[0-9A-F]+\}|\\.|.", java, re.DOTALL):
        if token == "[":
            depth += 1
            made += "[" if depth == 1 else ""
        elif token == "]":
            depth -= 1
            made += "]" if depth == 0 else ""
        else:
            code = _CODE.fullmatch(token)
            made += f"\\U{int(code[1], 16):08x}" if code else r"\Z" if token == r"\z" else token
    return made


def _of_value(node: p.Predicate, value: Any, kind: DataType | None) -> Truth:
    if isinstance(node, p.Holds):
        return bool(value)
    if isinstance(node, p.Compare):
        return _COMPARED[node.operator](_rank(value, node.other, kind))
    if isinstance(node, p.In):
        return any(_rank(value, other, kind) == 0 for other in node.values)
    if isinstance(node, p.Matches):
        return re.search(_python(node.pattern), value, re.ASCII) is not None
    if isinstance(node, p.Repeats):
        return len({_key(one) for one in value}) < len(value)
    if isinstance(node, p.HasKey):
        return node.key in [key for key, _ in value]
    if isinstance(node, p.Normalized):
        if None in value or any(not math.isfinite(one) for one in value):
            return False
        try:
            return abs(math.sqrt(sum(one * one for one in value)) - 1) <= node.tolerance
        except OverflowError:
            return False
    assert isinstance(node, p.MultipleOf)
    if isinstance(value, float):
        if not math.isfinite(value) or abs(value) >= 1e20:
            return False
        shown = Fraction(shortest(value, "float" if kind and kind.name == "float" else "double"))
        places = Fraction(10**18)
        whole = math.floor(abs(shown) * places + Fraction(1, 2)) / places
        return whole % Fraction(node.step) == 0
    return Fraction(value) % Fraction(node.step) == 0


_COMPARED = {
    "<": lambda rank: rank < 0,
    "<=": lambda rank: rank <= 0,
    ">": lambda rank: rank > 0,
    ">=": lambda rank: rank >= 0,
    "=": lambda rank: rank == 0,
    "<>": lambda rank: rank != 0,
}


def _rank(value: Any, other: Any, kind: DataType | None) -> int:
    """Below zero, zero or above, with NaN above every number."""
    if isinstance(other, bool) or not isinstance(other, int | float | Decimal):
        return (value > other) - (value < other)
    if isinstance(value, float):
        other = nearest_float(other) if kind is not None and kind.name == "float" else float(other)
        if math.isnan(value) or math.isnan(other):
            return math.isnan(value) - math.isnan(other)
        return (value > other) - (value < other)
    one, two = Fraction(value), Fraction(other)
    return (one > two) - (one < two)


def nearest_float(number: float | Decimal) -> float:
    """The float of 32 bits that is nearest, the even one of two, found by looking at both."""
    if isinstance(number, float) and math.isinf(number):
        return number
    exact, close = Fraction(number), narrow(float(number))
    if not math.isfinite(close):
        return close
    steps = [close, *(narrow(close + sign * abs(close) * 2.0**-23) for sign in (-1, 1))]
    return min((one for one in steps if math.isfinite(one)), key=lambda one: abs(Fraction(one) - exact))


def _names_a_day(text: str, shape: p.DayShape) -> bool:
    match = re.search(shape.pattern.replace(r"\z", r"\Z"), text, re.ASCII)
    if match is None:
        return False
    year = int(shape.century + match[shape.year])
    month = match[shape.month]
    number = shape.months.index(month) // 3 + 1 if shape.months else int(month)
    leap = calendar.isleap(year)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= number <= 12 and 1 <= int(match[shape.day]) <= lengths[number - 1]


def _at(subject: Any, path: t.Path) -> Any:
    for step in path.steps:
        subject = None if subject is None else subject[step]
    return subject


def _type(term: t.Term, kind: DataType) -> DataType | None:
    if not isinstance(term, t.Path):
        return None
    for step in term.steps:
        kind = kind.parts[kind.names.index(step)]
    return kind


def _value(term: t.Term, subject: Any) -> Any:
    if isinstance(term, t.Path):
        return _at(subject, term)
    assert not isinstance(term, t.Opaque | t.Since1970)
    if isinstance(term, t.Function):
        assert isinstance(term.arguments[0], t.Path)
        text, other = _at(subject, term.arguments[0]), term.arguments[1]
        if text is None:
            return None
        return text[:other] if term.name == "left" else text[: len(other)] == other  # type: ignore[arg-type]
    value = _value(term.value, subject)
    if value is None:
        return None
    if isinstance(term, t.Present):
        return sum(value[name] is not None for name in term.fields)
    if isinstance(term, t.IntegerValue):
        return int(value)
    if isinstance(term, t.Remainder):
        return value % term.by
    return len(value)


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(_key(one) for one in value.values())
    return tuple(_key(one) for one in value) if isinstance(value, list) else value
