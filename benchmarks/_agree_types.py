"""Types of columns as writers have them, with random values; and random tables of such columns."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

Row = dict[str, Any]
Draw = Callable[[random.Random], Any]
_EPOCH = dt.datetime(2020, 1, 1)  # noqa: DTZ001  # some columns have no zone
_WORDS = ("", "a", "é", "open", "a b", "NULL", "0", "1.50", "x,y", "😀", "true", "2026-01-01", "NaN")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type of Arrow, and how a value of it is drawn."""

    arrow: pa.DataType
    draw: Draw


def _integer(bits: int, *, signed: bool = True) -> Draw:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda chance: chance.choice((0, 1, low, high, chance.randint(low, high)))


def _decimal(precision: int, scale: int) -> Draw:
    largest = 10**precision - 1
    return lambda chance: Decimal(
        f"{chance.choice((0, largest, -largest, chance.randint(-largest, largest)))}E-{scale}"
    )


def _real(chance: random.Random) -> float:
    return chance.choice((0.0, -0.0, 1.5, -2.25, chance.randint(-999, 999) / 4))


def _word(chance: random.Random) -> str:
    return chance.choice(_WORDS)


def _instant(chance: random.Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(seconds=chance.randint(0, 10**8))


def _day(chance: random.Random) -> dt.date:
    return _instant(chance).date()


def _time(chance: random.Random) -> dt.time:
    return _instant(chance).time()


def _listed(draw: Draw, size: int | None = None) -> Draw:
    return lambda chance: [draw(chance) for _ in range(chance.randint(0, 3) if size is None else size)]


def _entries(draw: Draw) -> Draw:
    return lambda chance: [(word, draw(chance)) for word in ("k", "l")[: chance.randint(0, 2)]]


def _fields(**draws: Draw) -> Draw:
    return lambda chance: {name: draw(chance) for name, draw in draws.items()}


_POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
_POINT_VALUE = _fields(x=_integer(32), y=_real)
_MILLIS = pa.timestamp("ms")

TYPES: dict[str, ColumnType] = {
    "int8": ColumnType(pa.int8(), _integer(8)),
    "int16": ColumnType(pa.int16(), _integer(16)),
    "int32": ColumnType(pa.int32(), _integer(32)),
    "int64": ColumnType(pa.int64(), _integer(64)),
    "uint8": ColumnType(pa.uint8(), _integer(8, signed=False)),
    "uint16": ColumnType(pa.uint16(), _integer(16, signed=False)),
    "uint32": ColumnType(pa.uint32(), _integer(32, signed=False)),
    "uint64": ColumnType(pa.uint64(), _integer(64, signed=False)),
    "half": ColumnType(pa.float16(), lambda chance: np.float16(chance.randint(-9, 9) / 2)),
    "float": ColumnType(pa.float32(), _real),
    "double": ColumnType(pa.float64(), _real),
    "decimal(4,2)": ColumnType(pa.decimal128(4, 2), _decimal(4, 2)),
    "decimal(9,0)": ColumnType(pa.decimal128(9, 0), _decimal(9, 0)),
    "decimal(18,6)": ColumnType(pa.decimal128(18, 6), _decimal(18, 6)),
    "decimal(24,4)": ColumnType(pa.decimal128(24, 4), _decimal(24, 4)),
    "decimal(38,10)": ColumnType(pa.decimal128(38, 10), _decimal(38, 10)),
    "boolean": ColumnType(pa.bool_(), lambda chance: chance.random() < 0.5),
    "string": ColumnType(pa.string(), _word),
    "large string": ColumnType(pa.large_string(), _word),
    "string view": ColumnType(pa.string_view(), _word),
    "dictionary": ColumnType(pa.dictionary(pa.int32(), pa.string()), _word),
    "dictionary of ints": ColumnType(
        pa.dictionary(pa.int8(), pa.int64()), lambda chance: chance.randint(0, 5)
    ),
    "binary": ColumnType(pa.binary(), lambda chance: chance.randbytes(chance.randint(0, 4))),
    "large binary": ColumnType(pa.large_binary(), lambda chance: chance.randbytes(2)),
    "fixed": ColumnType(pa.binary(5), lambda chance: chance.randbytes(5)),
    "uuid": ColumnType(pa.uuid(), lambda chance: uuid.UUID(int=chance.getrandbits(128)).bytes),
    "date": ColumnType(pa.date32(), _day),
    "date in millis": ColumnType(pa.date64(), _day),
    "time in millis": ColumnType(pa.time32("ms"), _time),
    "time in micros": ColumnType(pa.time64("us"), _time),
    "time in nanos": ColumnType(pa.time64("ns"), _time),
    "local in millis": ColumnType(_MILLIS, _instant),
    "local in micros": ColumnType(pa.timestamp("us"), _instant),
    "local in nanos": ColumnType(pa.timestamp("ns"), _instant),
    "instant in seconds": ColumnType(pa.timestamp("s", "UTC"), _instant),
    "instant in millis": ColumnType(pa.timestamp("ms", "UTC"), _instant),
    "instant in micros": ColumnType(pa.timestamp("us", "UTC"), _instant),
    "instant in nanos": ColumnType(pa.timestamp("ns", "UTC"), _instant),
    "instant elsewhere": ColumnType(pa.timestamp("us", "America/New_York"), _instant),
    "duration": ColumnType(pa.duration("us"), lambda chance: dt.timedelta(seconds=chance.randint(0, 99))),
    "null": ColumnType(pa.null(), lambda _: None),
    "struct": ColumnType(_POINT, _POINT_VALUE),
    "struct of odd types": ColumnType(
        pa.struct([("u", pa.uint16()), ("t", pa.timestamp("ms", "UTC")), ("d", pa.decimal128(7, 3))]),
        _fields(u=_integer(16, signed=False), t=_instant, d=_decimal(7, 3)),
    ),
    "deep struct": ColumnType(
        pa.struct([("a", pa.struct([("b", pa.list_(_POINT))]))]),
        _fields(a=_fields(b=_listed(_POINT_VALUE))),
    ),
    "list": ColumnType(pa.list_(pa.int64()), _listed(_integer(64))),
    "large list": ColumnType(pa.large_list(pa.string()), _listed(_word)),
    "fixed list": ColumnType(pa.list_(pa.float32(), 2), _listed(_real, 2)),
    "list of structs": ColumnType(pa.list_(_POINT), _listed(_POINT_VALUE)),
    "list of lists": ColumnType(pa.list_(pa.list_(pa.date32())), _listed(_listed(_day))),
    "map": ColumnType(pa.map_(pa.string(), pa.int32()), _entries(_integer(32))),
    "map of structs": ColumnType(pa.map_(pa.string(), _POINT), _entries(_POINT_VALUE)),
}

# Columns whose names hold partitions: a type, and values with the names of their folders.
KEYS: dict[str, tuple[str, ...]] = {
    "day": ("2026-01-01", "2026-01-02", "2026-02-28"),
    "region": ("eu", "us-east", "a b", "ü", "100%", "x=y", "it's", "a/b", "q?", "#1", "c:d", "[x]"),
    "hour": ("0", "7", "23", "007"),
    "Part": ("A", "b"),
}


@dataclass(frozen=True, slots=True)
class RandomTable:
    """Columns with the names of their types, and the rows of each file, with the partition it lies in."""

    columns: dict[str, str]
    keys: tuple[str, ...]
    files: tuple[tuple[tuple[str, ...], tuple[Row, ...]], ...]

    @property
    def rows(self) -> int:
        return sum(len(rows) for _, rows in self.files)

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        kinds = {name: TYPES[kind].arrow for name, kind in self.columns.items()}
        return pa.table({name: _array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if isinstance(kind, pa.UuidType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def random_table(chance: random.Random, types: Sequence[str], *, partitioned: bool) -> RandomTable:
    """One to six columns of these types, in one to four files of few rows."""
    columns = {f"c{at}": chance.choice(types) for at in range(chance.randint(1, 6))}
    number = chance.randint(1, 4)
    keys: tuple[str, ...] = ()
    if partitioned:
        keys = tuple(chance.sample(tuple(KEYS), chance.choice((1, 1, 2))))
    absent = {name: chance.choice((0.0, 0.0, 0.3, 1.0)) for name in columns}

    def row() -> Row:
        return {
            name: None if chance.random() < absent[name] else TYPES[kind].draw(chance)
            for name, kind in columns.items()
        }

    size = chance.choice((0, 1, 5, 40))
    rows = [row() for _ in range(size)]
    ends = [0, *sorted(chance.randint(0, size) for _ in range(number - 1)), size]
    parts = [tuple(chance.choice(KEYS[key]) for key in keys) for _ in range(number)]
    cuts = zip(parts, pairwise(ends), strict=True)
    files = tuple((part, tuple(rows[low:high])) for part, (low, high) in cuts)
    return RandomTable(columns, keys, files)
