"""Random tables and random contracts on them, the same for the same seed."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa

Json = dict[str, Any]
NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "price": pa.decimal128(9, 2),
    "wide": pa.decimal128(24, 4),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
LOGICAL = {
    **dict.fromkeys(("int", "bigint"), "integer"),
    **dict.fromkeys(("price", "wide", "double"), "number"),
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "boolean": "boolean",
}
# The same for Python's regular expressions, ECMA-262's and Java's.
PATTERNS = ("^[a-z]+$", "^x", "[0-9]", "^.{1,3}$", "^(ab|cd)*$", "é")
OPERATORS = ("mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan")
OPERATORS += ("mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween")
_WORDS = ("", "a", "ab", "abab", "x1", "xyz", "é", "open", "paid", "😀", "a b", "0", "NULL", "NaN")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class RandomTable:
    """Columns with their kinds, and the rows, cut where a new file begins."""

    columns: dict[str, str]
    files: tuple[tuple[Json, ...], ...]

    @property
    def rows(self) -> list[Json]:
        return [row for file in self.files for row in file]

    def arrow(self, file: tuple[Json, ...]) -> pa.Table:
        schema = pa.schema([(name, TYPES[kind]) for name, kind in self.columns.items()])
        return pa.Table.from_pylist(list(file), schema=schema)


def table(chance: random.Random, kinds: tuple[str, ...]) -> RandomTable:
    """One to six columns of these kinds, up to five files of up to 3,000 rows."""
    columns = {f"c{at}": chance.choice(kinds) for at in range(chance.randint(1, 6))}
    max_rows = chance.choice((0, 3, 40, 400, 3_000))
    rows = chance.randint(0, max_rows)
    columns_by_name = {name: _values(chance, kind, rows) for name, kind in columns.items()}
    all_rows = [{name: columns_by_name[name][at] for name in columns} for at in range(rows)]
    cuts = sorted(chance.randint(0, rows) for _ in range(chance.randint(0, 4)))
    ends = [0, *cuts, rows]
    files = tuple(tuple(all_rows[low:high]) for low, high in pairwise(ends))
    return RandomTable(columns, files)


def _values(chance: random.Random, kind: str, rows: int) -> list[Any]:
    is_repetitive = chance.random() < 0.5
    pool = [_value(chance, kind) for _ in range(chance.randint(1, 6))]
    gaps = chance.choice((0.0, 0.0, 0.02, 0.5, 1.0))
    values = [chance.choice(pool) if is_repetitive else _value(chance, kind) for _ in range(rows)]
    if kind not in ("double",) and chance.random() < 0.4:
        values.sort()
    return [None if chance.random() < gaps else value for value in values]


def _value(chance: random.Random, kind: str) -> Any:
    match kind:
        case "int":
            return chance.choice((chance.randint(-9, 9), chance.randint(-(2**31), 2**31 - 1)))
        case "bigint":
            return chance.choice((chance.randint(-9, 9), chance.randint(-(2**63), 2**63 - 1)))
        case "price":
            return Decimal(
                chance.choice((chance.randint(-300, 300), chance.randint(-(10**9) + 1, 10**9 - 1)))
            ).scaleb(-2)
        case "wide":
            return Decimal(
                chance.choice((chance.randint(-300, 300), chance.randint(-(10**20), 10**20)))
            ).scaleb(-4)
        case "string":
            return chance.choice((*_WORDS, f"k{chance.randint(0, 5000)}", "y" * chance.randint(1, 90)))
        case "date":
            days = chance.choice((chance.randint(20_500, 20_600), chance.randint(-30_000, 60_000)))
            return _EPOCH.date() + dt.timedelta(days)
        case "timestamp":
            return NOW + dt.timedelta(
                microseconds=chance.choice((chance.randint(-(10**11), 10**10), -(10**15)))
            )
        case "boolean":
            return chance.random() < 0.5
        case _:
            return chance.choice(
                (chance.uniform(-9, 9), float(chance.randint(-9, 9)), math.nan, -0.0, 0.0, math.inf, 1.5e10)
            )


def contract(chance: random.Random, random_table: RandomTable) -> Json:
    """A document with clauses of every kind that fits the columns, near the values that are there."""
    rows = random_table.rows
    properties = [_property(chance, name, kind, rows) for name, kind in random_table.columns.items()]
    if len(properties) > 1 and chance.random() < 0.15:
        # A column that nobody promised.
        properties.pop()
    names = [prop["name"] for prop in properties]
    if chance.random() < 0.25:
        for prop in chance.sample(properties, min(2, len(properties))):
            prop["primaryKey"] = True
    quality: list[Json] = [{"metric": "rowCount", **_limit(chance, len(rows))}]
    if len(names) > 1 and chance.random() < 0.4:
        pair = chance.sample(names, 2)
        rule = {"metric": "duplicateValues", "arguments": {"properties": pair}, **_limit(chance, len(rows))}
        quality.append(rule)
    integers = [name for name in names if random_table.columns[name] in ("int", "bigint")]
    if integers and chance.random() < 0.4:
        above = f"{chance.choice(integers)} > {chance.randint(-9, 9)}"
        query = f"SELECT COUNT(*) FROM {{object}} WHERE {above}"
        quality.append({"type": "sql", "query": query, "_above": above, **_limit(chance, len(rows))})
    document: Json = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": "random",
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": "t", "properties": properties, "quality": quality}],
    }
    instants = [name for name in names if random_table.columns[name] == "timestamp"]
    if instants and chance.random() < 0.5:
        level = {"property": "latency", "value": chance.choice((1, 20, 48)), "unit": "h"}
        document["slaProperties"] = [{**level, "element": f"t.{chance.choice(instants)}"}]
    return document


def _property(chance: random.Random, name: str, kind: str, rows: list[Json]) -> Json:
    present = [row[name] for row in rows if row[name] is not None]
    prop: Json = {"name": name, "logicalType": LOGICAL[kind]}
    if chance.random() < 0.5:
        prop["required"] = True
    if chance.random() < 0.15:
        prop["unique"] = True
    options: Json = {}
    if kind not in ("string", "boolean"):
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if chance.random() < 0.35:
                options[key] = _near(chance, kind, present)
    if kind in ("int", "bigint", "price") and chance.random() < 0.2:
        options["multipleOf"] = chance.choice((1, 2, 5, 0.01, 0.5))
    if kind == "string":
        options |= {key: chance.randint(0, 6) for key in ("minLength", "maxLength") if chance.random() < 0.3}
        if chance.random() < 0.3:
            options["pattern"] = chance.choice(PATTERNS)
    if options:
        prop["logicalTypeOptions"] = options
    if kind not in ("boolean", "timestamp") and chance.random() < 0.3:
        prop["enum"] = [{"value": value} for value in _list(chance, kind, present)]
    rules = [_rule(chance, kind, present, len(rows)) for _ in range(chance.choice((0, 0, 1, 2)))]
    if rules:
        prop["quality"] = rules
    return prop


def _rule(chance: random.Random, kind: str, present: list[Any], rows: int) -> Json:
    metrics = ["nullValues", "duplicateValues"]
    metrics += ["missingValues", "invalidValues"] if kind not in ("boolean", "timestamp") else []
    rule: Json = {"metric": chance.choice(metrics)}
    if rule["metric"] == "missingValues":
        rule["arguments"] = {"missingValues": _list(chance, kind, present)}
    if rule["metric"] == "invalidValues":
        rule["arguments"] = {"validValues": _list(chance, kind, present)}
        if kind == "string" and chance.random() < 0.5:
            rule["arguments"] = {"pattern": chance.choice(PATTERNS)}
    unit = {"unit": "percent"} if chance.random() < 0.3 else {}
    return {**rule, **unit, **_limit(chance, 100 if unit else rows)}


def _limit(chance: random.Random, largest: int) -> Json:
    operator = chance.choice(OPERATORS)
    low, high = sorted(chance.choice((0, 1, largest, chance.randint(0, largest + 1))) for _ in range(2))
    return {operator: [low, high] if "Between" in operator else low}


def _list(chance: random.Random, kind: str, present: list[Any]) -> list[Any]:
    """Some values that are there, or all when they are few, and perhaps others."""
    different = sorted({_written(value) for value in present} - {None}, key=repr)
    if len(different) <= 6 and chance.random() < 0.6:
        listed = different
    else:
        listed = chance.sample(different, min(3, len(different)))
    absent = [_near(chance, kind, present)] if not listed or chance.random() < 0.3 else []
    return [*listed, *(value for value in absent if value not in listed)]


def _near(chance: random.Random, kind: str, present: list[Any]) -> Any:
    least_or_greatest = (min, max) if kind != "double" else ()
    pick = chance.choice((chance.choice, *least_or_greatest)) if present else None
    value = _written(pick(present)) if pick is not None and chance.random() < 0.7 else None
    while value is None:
        value = _written(_value(chance, kind))
    return value


def _written(value: Any) -> Any:
    """A value as a contract's YAML has it, or None if it cannot express it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        is_integral = value == value.to_integral_value()
        # What has more digits than a double holds would be another number.
        return int(value) if is_integral else (float(value) if abs(value) < 10**9 else None)
    return value.isoformat() if isinstance(value, (dt.date, dt.datetime)) else value
