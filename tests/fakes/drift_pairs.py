"""Random pairs of JSON and CSV files, and how the second one differs, computed from their values alone.

A difference is a sign and a path: `+` and `-` are leaves that only one file has, `~` values of another kind.
Items of arrays are `[]`; an array of plain values is a leaf. Paths are in lower case.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Kinds = Mapping[tuple[str, ...], set[str]]
_NAMES = ("id", "name", "city", "at", "amount", "ok", "lines", "owner", "sku", "tags")
_NEW_NAMES = ("state", "new name", "größe", "x.y")
_DATE = "2026-05-01"
_SCALARS = ("string", "date", "integer", "number", "boolean")
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
# Kind in the first file -> kinds of the second one that are no difference.
_JSON = {"number": {"integer"}, "string": {"date"}, "date": {"string", "integer"}}
_CSV = {
    "string": {"integer", "number", "boolean", "date"},
    "number": {"integer"},
    "date": {"integer", "string"},
}


@dataclass(frozen=True)
class Pair:
    """The texts of two files of this kind, and their differences."""

    kind: str
    before: str
    after: str
    expected: frozenset[tuple[str, str]]


def pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs of JSON and of CSV in turn."""
    chance = random.Random(seed)
    for number in range(count):
        yield _csv_pair(chance) if number % 3 == 2 else _json_pair(chance)


def shown(lines: Sequence[str]) -> frozenset[tuple[str, str]]:
    """The signs and paths of the lines of a command, without the name of the object."""
    differences = set()
    for line in lines:
        if match := re.match(r"\s*([-+~]) \w+\.(.*?): ", line):
            sign, path = match.groups()
            differences.add((sign, path if sign == "~" else re.sub(r"(\[\])+$", "", path)))
    return frozenset(differences)


# JSON: a schema is a kind, a dictionary of fields, or a list of the schema of items.


def _json_pair(chance: random.Random) -> Pair:
    schema = _schema(chance, 0)
    changed = _mutated(chance, schema)
    before = [_value(chance, schema, nulls=0.1) for _ in range(chance.randint(1, 4))]
    after = [_value(chance, changed, nulls=0.1) for _ in range(chance.randint(1, 4))]
    # A file without a column cannot be compared.
    before, after = ([{"key": 1, **row} for row in rows] for rows in (before, after))
    expected = _json_differences(_kinds(before), _kinds(after))
    texts = ["".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows) for rows in (before, after)]
    return Pair("json", *texts, expected)


def _schema(chance: random.Random, depth: int) -> Any:
    form = "object" if depth == 0 else chance.choices(("scalar", "object", "array"), (6, 2, 2))[0]
    if form == "scalar" or depth > 3:
        return chance.choice(_SCALARS)
    if form == "array":
        return [_schema(chance, depth + 1)]
    return {name: _schema(chance, depth + 1) for name in chance.sample(_NAMES, chance.randint(1, 4))}


def _mutated(chance: random.Random, schema: Any) -> Any:
    if isinstance(schema, list):
        return [_mutated(chance, schema[0])] if chance.random() < 0.9 else _schema(chance, 2)
    if isinstance(schema, str):
        return schema if chance.random() < 0.85 else _schema(chance, 2)
    fields = {}
    for name, inner in schema.items():
        if chance.random() < 0.9:
            fields[name.upper() if chance.random() < 0.1 else name] = _mutated(chance, inner)
    if chance.random() < 0.25:
        fields[chance.choice(_NEW_NAMES)] = _schema(chance, 2)
    return fields


def _value(chance: random.Random, schema: Any, nulls: float) -> Any:
    if isinstance(schema, dict):
        first = next(iter(schema), None)
        return {
            name: None if name != first and chance.random() < nulls else _value(chance, inner, nulls)
            for name, inner in schema.items()
            if name == first or chance.random() < 0.95
        }
    if isinstance(schema, list):
        return [_value(chance, schema[0], nulls) for _ in range(chance.randint(0, 3))]
    return {
        "string": chance.choice(["x", "Ana", "7", ""]),
        "date": _DATE,
        "integer": chance.randint(-5, 10**12),
        "number": chance.randint(0, 99) + 0.5,
        "boolean": chance.random() < 0.5,
    }[schema]


def _kinds(rows: Sequence[Mapping[str, Any]]) -> Kinds:
    """The kinds of the values at each path; none if all are null."""
    kinds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    stack: list[tuple[tuple[str, ...], Any]] = [((), row) for row in rows]
    while stack:
        path, value = stack.pop()
        kinds[path] |= set() if value is None else {"date" if value == _DATE else _KINDS[type(value)]}
        if isinstance(value, dict):
            stack += [((*path, name.lower()), inner) for name, inner in value.items()]
        if isinstance(value, list):
            stack += [((*path, "[]"), inner) for inner in value]
    return kinds


def _json_differences(before: Kinds, after: Kinds) -> frozenset[tuple[str, str]]:
    # A contract needs a type: a column of nulls becomes a string, and so does an item that no list has.
    promised = {path: kinds or {"string"} for path, kinds in before.items()}
    promised |= {(*path, "[]"): {"string"} for path, kinds in before.items()
                 if kinds == {"array"} and (*path, "[]") not in before}  # fmt: skip
    # Objects that cannot be a struct are read as text.
    texts = {
        path[:-1]
        for path in after
        if path
        and promised.get(path[:-1]) == {"string"}
        and not re.fullmatch(r"\w+|\[\]", path[-1], re.ASCII)
    }
    changed = {
        path
        for path in promised.keys() & after.keys()
        if after[path] and path not in texts and not _is_compatible(promised[path], after[path])
    }
    unread = {path for path, kinds in after.items() if not kinds}
    unread |= {(*path, "[]") for path, kinds in after.items() if kinds == {"array"}} - after.keys()
    added = _leaves(set(after)) - _leaves(set(promised)) - set(promised)
    removed = _leaves(set(promised)) - _leaves(set(after)) - set(after)
    return frozenset(
        {("~", _text(path)) for path in changed if not _is_below(path, changed)}
        | {("+", _leaf_text(path)) for path in added if not _is_below(path, changed | texts)}
        | {("-", _leaf_text(path)) for path in removed - unread if not _is_below(path, changed | unread)}
    )


def _is_compatible(promised: set[str], kinds: set[str]) -> bool:
    [kind] = {"number"} if promised == {"integer", "number"} else promised
    return kinds <= {kind, *_JSON.get(kind, ())}


def _leaves(paths: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return paths - {path[:-1] for path in paths}


def _is_below(path: tuple[str, ...], paths: set[tuple[str, ...]]) -> bool:
    return any(path[:length] in paths for length in range(len(path)))


def _text(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[]")


def _leaf_text(path: tuple[str, ...]) -> str:
    return re.sub(r"(\[\])+$", "", _text(path))


# CSV.


def _csv_pair(chance: random.Random) -> Pair:
    columns = {name: chance.choice(_SCALARS) for name in chance.sample(_NAMES, chance.randint(2, 6))}
    changed = {
        name.upper() if chance.random() < 0.1 else name:
            chance.choice(_SCALARS) if chance.random() < 0.2 else kind
        for name, kind in columns.items()
        if chance.random() < 0.85
    }  # fmt: skip
    changed[chance.choice(("state", "id2"))] = chance.choice(_SCALARS)
    before, after = (_csv_rows(chance, schema) for schema in (columns, changed))
    kinds = {name: _csv_kind(name, before) for name in columns}
    later = {name.lower(): _csv_kind(name, after) for name in changed}
    expected = {("+", name) for name in later.keys() - kinds.keys()}
    expected |= {("-", name) for name in kinds.keys() - later.keys()}
    for name in kinds.keys() & later.keys():
        promised, actual = kinds[name] or "string", later[name]
        if actual and actual != promised and actual not in _CSV.get(promised, ()):
            expected.add(("~", name))
    texts = [
        "\n".join(",".join(row) for row in [list(rows[0]), *map(dict.values, rows)])
        for rows in (before, after)
    ]
    return Pair("csv", *texts, frozenset(expected))  # fmt: skip


def _csv_rows(chance: random.Random, schema: Mapping[str, str]) -> list[dict[str, str]]:
    values = {
        "string": lambda: chance.choice(["x", "Ana", "a7"]),
        "date": lambda: f"2026-05-0{chance.randint(1, 9)}",
        "integer": lambda: str(chance.randint(-5, 10**12)),
        "number": lambda: f"{chance.randint(0, 99)}.{chance.randint(1, 9)}",
        "boolean": lambda: chance.choice(["true", "false"]),
    }
    return [
        {name: "" if chance.random() < 0.1 else values[kind]() for name, kind in schema.items()}
        for _ in range(chance.randint(1, 4))
    ]


def _csv_kind(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    """The kind of a column, all of whose values are of one kind, or "" if there are none."""
    value = next((row[name] for row in rows if row[name]), "")
    patterns = {"integer": r"-?\d+", "number": r"\d+\.\d", "boolean": "true|false", "date": r"\d+-\d+-\d+"}
    kinds = [kind for kind, pattern in patterns.items() if re.fullmatch(pattern, value)]
    return kinds[0] if kinds else "string" if value else ""
