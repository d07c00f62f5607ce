"""Random predicates on the columns of one wide schema, and random rows that lie where types end."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.metric import count
from dq.dataquality.spark.measure import plan
from dq.dataquality.sql_predicate import predicate_sql

Row = dict[str, Any]
INT, BIG, FLOAT, DOUBLE = (DataType(name) for name in ("int", "bigint", "float", "double"))
TEXT, FLAG = DataType("string"), DataType("boolean")
POINT = DataType("struct", (), (INT, TEXT, FLOAT), ("a", "t", "f"))
COLUMNS: dict[str, DataType] = {
    "tiny": DataType("tinyint"),
    "n": INT,
    "big": BIG,
    "price": DataType("decimal", (9, 2)),
    "exact": DataType("decimal", (38, 18)),
    "whole": DataType("decimal", (38, 0)),
    "f": FLOAT,
    "x": DOUBLE,
    "word": TEXT,
    "o`k": TEXT,
    "flag": FLAG,
    "day": DataType("date"),
    "at": DataType("timestamp"),
    "civil": DataType("timestamp_ntz"),
    "place": POINT,
    "ns": DataType("array", (), (INT,)),
    "words": DataType("array", (), (TEXT,)),
    "vector": DataType("array", (), (FLOAT,)),
    "deep": DataType("array", (), (DataType("array", (), (DOUBLE,)),)),
    "points": DataType("array", (), (POINT,)),
    "rates": DataType("map", (), (TEXT, DOUBLE)),
    "places": DataType("map", (), (TEXT, POINT)),
}
SCHEMA = DataType("struct", (), tuple(COLUMNS.values()), tuple(COLUMNS))

_BITS = {"tinyint": 8, "int": 32, "bigint": 64}
_FLOATS = (0.0, -0.0, 0.1, 0.3, 1.0, 1.005, -1.1, 2.5, 100.0, 16777217.0, 1e-18, 1e-19, 1e15, 1e20, 3.4e38,
           5e-324, 1.7e308, 2.0**53, math.nan, math.inf, -math.inf)  # fmt: skip
_TEXTS = ("", " ", "a", "A", "ab", "abc", "b", "ß", "é", "e\u0301", "🙂", "🙂🙂a", "\U0001f1e9\U0001f1ea",
          "\n", "a\n", "\x00", "\u00a0", "\ufeff", "it's", "a\\b", "${x}", "NaN", "1", "2024-02-29",
          "2023-02-29", "0000-02-29", "9 Feb 24", "30 Feb 24", "QQ==", "żółć")  # fmt: skip
_DAYS = (dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 10), dt.date(1582, 10, 15),
         dt.date(1899, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31))  # fmt: skip
_TIMES = tuple(
    dt.datetime.fromisoformat(text)
    for text in ("0001-01-02", "1582-10-10T12:00", "1899-12-31T23:59:59.999999", "1970-01-01",
                 "2026-03-29T01:30", "9999-12-30T22:59:59.999999")
)  # fmt: skip
_PATTERNS = (r"\Aa", r"b\z", "a|b", r"\A[a-z]{1,2}\z", r"\A(?:[A-Za-z0-9+/]*+={0,2})\z", "^$", r"\d")
_SHAPES = (
    p.DayShape(r"\A([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})\z", 1, 2, 3),
    p.DayShape(r"\A([0-9]{1,2}) (Jan|Feb|Mar) ([0-9]{2})\z", 3, 2, 1, "20", "JanFebMar"),
)
_OPERATORS: tuple[p.Operator, ...] = ("<", "<=", ">", ">=", "=", "<>")


def narrow(value: float) -> float:
    """The nearest float of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def value(random: Random, kind: DataType, nulls: float = 0.2) -> Any:
    """A value of the type: maps are lists of pairs, structs are mappings."""
    if random.random() < nulls:
        return None
    return _sound(random, kind)


def _sound(random: Random, kind: DataType) -> Any:
    if kind.name in _BITS:
        end = 2 ** (_BITS[kind.name] - 1)
        return random.choice([0, 1, -1, 2, 5, 10, end - 1, -end, random.randint(-end, end - 1)])
    if kind.name == "decimal":
        precision, scale = kind.numbers
        most = 10**precision - 1
        digits = random.choice([0, 1, -1, 5 * 10**scale, most, -most, random.randint(-most, most)])
        return Decimal(f"{digits}E-{scale}")
    if kind.name in ("float", "double"):
        found = random.choice([*_FLOATS, random.uniform(-10, 10)])
        # Before version 19, Java writes the float of 1e15 as 9.9999999E14, which is not the shortest.
        return (narrow(found) if found != 1e15 else 1.0) if kind.name == "float" else found
    if kind.name == "struct":
        return {name: value(random, part) for name, part in zip(kind.names, kind.parts, strict=True)}
    if kind.name == "array":
        return [value(random, kind.parts[0]) for _ in range(random.choice([0, 0, 1, 2, 3]))]
    if kind.name == "map":
        keys = random.sample(["", "a", "b", "🙂"], random.choice([0, 1, 2]))
        return [(key, value(random, kind.parts[1])) for key in keys]
    return random.choice(_POOLS[kind.name])


_POOLS: dict[str, Sequence[Any]] = {
    "string": _TEXTS,
    "boolean": (True, False),
    "date": _DAYS,
    "timestamp": tuple(one.replace(tzinfo=dt.UTC) for one in _TIMES),
    "timestamp_ntz": _TIMES,
}


def askable(predicate: p.Predicate) -> bool:
    """Whether the columns have the types and digits that the predicate needs; dq asks no other."""
    return not plan([count(predicate)], SCHEMA).failures


def row(random: Random) -> Row:
    return {name: value(random, kind) for name, kind in COLUMNS.items()}


@dataclass(slots=True)
class Trees:
    """Makes predicates. `meanings` are the trees that texts of users' SQL were written from."""

    random: Random
    meanings: dict[str, p.Predicate] = field(default_factory=dict)

    def tree(self, subject: DataType = SCHEMA, depth: int = 3) -> p.Predicate:
        """A predicate on a subject of this type; the row's may hold a user's own SQL."""
        choice = self.random.random() if depth else 1.0
        if choice < 0.15:
            return p.Not(self.tree(subject, depth - 1))
        if choice < 0.45:
            parts = tuple(self.tree(subject, depth - 1) for _ in range(self.random.choice([2, 2, 3])))
            return p.And(parts) if self.random.random() < 0.5 else p.Or(parts)
        if choice < 0.55 and subject is SCHEMA:
            made = self._opaque()
            if made is not None:
                return made
        return self._leaf(subject, t.Path(), depth)

    def _opaque(self) -> p.Predicate | None:
        name = self.random.choice(["n", "big", "word", "day", "price"])
        inner = self._scalar(t.Path((name,)), COLUMNS[name])
        # What Spark rounds, dq refuses to ask; of a user's own SQL nobody knows.
        if isinstance(inner, p.MultipleOf | p.HasDay) or not askable(inner):
            return None
        text = predicate_sql(inner, SCHEMA)
        self.meanings[text] = inner
        return t.Opaque(text)

    def _leaf(self, kind: DataType, path: t.Path, depth: int) -> p.Predicate:
        """A predicate on something at or below a path to this type."""
        random = self.random
        if path.steps and random.random() < 0.12:
            return random.choice([p.IsNull, p.Missing])(path)
        if kind.name == "struct":
            if path.steps and random.random() < 0.15:
                return p.Compare(t.Present(path, kind.names), random.choice(_OPERATORS), random.randint(0, 3))
            at = random.randrange(len(kind.names))
            return self._leaf(kind.parts[at], t.Path((*path.steps, kind.names[at])), depth)
        if kind.name == "array":
            return self._of_array(kind, path, depth)
        if kind.name == "map":
            return self._of_map(kind, path, depth)
        if not path.steps and random.random() < 0.12:
            return p.IsNull(path)
        return self._scalar(path, kind)

    def _of_array(self, kind: DataType, path: t.Path, depth: int) -> p.Predicate:
        choice, random = self.random.random(), self.random
        if choice < 0.2:
            return p.Compare(t.Size(path), random.choice(_OPERATORS), random.randint(0, 3))
        if choice < 0.3:
            return p.Repeats(path)
        if choice < 0.5 and kind.parts[0].name in ("float", "double"):
            return p.Normalized(path, 0.001)
        return p.Exists(path, t.Inside.ITEM, self.tree(kind.parts[0], max(depth - 1, 0)))

    def _of_map(self, kind: DataType, path: t.Path, depth: int) -> p.Predicate:
        choice, random = self.random.random(), self.random
        if choice < 0.2:
            return p.Compare(t.Entries(path), random.choice(_OPERATORS), random.randint(0, 2))
        if choice < 0.4:
            return p.HasKey(path, random.choice(["", "a", "c", "🙂"]))
        inside = random.choice([t.Inside.KEY, t.Inside.VALUE])
        part = kind.parts[0 if inside is t.Inside.KEY else 1]
        return p.Exists(path, inside, self.tree(part, max(depth - 1, 0)))

    def _scalar(self, path: t.Path, kind: DataType) -> p.Predicate:
        random = self.random
        choice = random.random()
        if kind.name in t.NUMBERS:
            if choice < 0.1:
                return p.IsNaN(path)
            if choice < 0.25:
                return p.MultipleOf(path, random.choice([1, 2, 5, 10**15, Decimal("0.01"), Decimal("0.5")]))
            if choice < 0.3 and kind.name in t.INTEGERS:
                return p.Compare(t.IntegerValue(path), random.choice(_OPERATORS), random.randint(-1, 2))
        if kind.name == "string":
            if choice < 0.25:
                return p.Matches(path, random.choice(_PATTERNS))
            if choice < 0.35:
                return p.HasDay(path, random.choice(_SHAPES))
            if choice < 0.55:
                size = t.Length(path) if random.random() < 0.6 else t.Remainder(t.Length(path), 4)
                return p.Compare(size, random.choice(_OPERATORS), random.randint(0, 3))
            if choice < 0.62:
                word = t.Function("left", (path, random.randint(0, 2)))
                return p.Compare(word, random.choice(_OPERATORS), random.choice(_TEXTS))
            if choice < 0.66:
                return p.Holds(t.Function("startswith", (path, random.choice(["", "a", "🙂"]))))
        if kind.name == "boolean":
            if choice < 0.3:
                return p.Holds(path)
            if choice < 0.4:
                return p.Compare(t.IntegerValue(path), random.choice(_OPERATORS), random.randint(0, 1))
            return p.Compare(path, random.choice(["=", "<>"]), random.choice([True, False]))
        if choice > 0.7:
            listed = tuple(self._literal(kind) for _ in range(random.choice([1, 2, 5])))
            return p.In(path, listed)
        return p.Compare(path, random.choice(_OPERATORS), self._literal(kind))

    def _literal(self, kind: DataType) -> t.Literal:
        """A literal as a contract has them: exact numbers, and a float where a user wrote one."""
        random = self.random
        if kind.name not in t.NUMBERS:
            found: t.Literal = _sound(random, kind)
            return found
        whole = [0, 1, -1, 5, 10, 16777217, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**40]
        exact = [Decimal(text) for text in ("0.1", "0.3", "1.005", "-1.1", "2.50", "0.10", "1E-18", "1E+20",
                                            "0.1000000000000000055", "1.00000005960464477539")]  # fmt: skip
        floats = [0.1, -0.0, 2.5, 1e20] if kind.name in ("float", "double") else []
        return random.choice([*whole, *exact, *floats, *whole])
