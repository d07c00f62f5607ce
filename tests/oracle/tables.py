"""One random case: a contract, the rows of its tables, how they lie in files, and the session that reads."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import yaml
from hypothesis import strategies as st
from oracle.evaluate import Data
from oracle.predicates import predicates
from oracle.promises import Json, properties, scopes, thresholds
from oracle.values import has_map, types, values

from dq.contracts.types import DataType
from dq.dataquality.answers.sources import Optimization

NAMES = ("a", "Id", "select", "o`k", "x.y", "žluť", "two words")
PART = "part"
PARTS = (DataType("string"), DataType("int"), DataType("date"))
_PART_VALUES = {
    "string": ["a", "01", "1", "é/x=y %", "2026-01-01", None],
    "int": [0, -1, 20260101, None],
    "date": [dt.date(2026, 1, 1), dt.date(1582, 10, 10), None],
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are cut into files and row groups, and what the files say about them."""

    files: int = 1
    row_group: int = 2
    dictionary: bool = True
    dictionary_bytes: int = 1 << 20
    page: str = "1.0"
    integers: bool = False
    # Whether each file has statistics; the first one for the first file, and so on.
    statistics: tuple[bool, ...] = (True,)


layouts = st.builds(
    Layout,
    files=st.integers(1, 3),
    row_group=st.integers(1, 4),
    dictionary=st.booleans(),
    dictionary_bytes=st.sampled_from([1 << 20, 1 << 20, 8]),
    page=st.sampled_from(["1.0", "2.0"]),
    integers=st.booleans(),
    statistics=st.lists(st.booleans(), min_size=1, max_size=3).map(tuple),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their types, and rows; `part` is the column that folders are named after."""

    columns: tuple[tuple[str, DataType], ...]
    rows: tuple[Json, ...]
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """`asked` are the partitions to check, as values of the partition column; empty for the whole table."""

    document: Json
    tables: dict[str, Table]
    layout: Layout
    asked: tuple[Any, ...] = ()
    session: dict[str, str] = field(default_factory=dict)
    optimizations: tuple[Optimization, ...] = tuple(Optimization)

    def data(self) -> dict[str, Data]:
        """The tables as the evaluation wants them."""
        found = {}
        for name, table in self.tables.items():
            chosen = self.asked if table.part else ()
            asked = [row for row in table.rows if not chosen or row[str(table.part)] in chosen]
            parts = frozenset({str(table.part)} if chosen else ())
            found[name] = Data(table.columns, table.rows, asked, parts)
        return found

    def yaml(self) -> str:
        return yaml.safe_dump(_plain(self.document), sort_keys=False, allow_unicode=True)

    def __repr__(self) -> str:
        lines = [self.yaml()]
        for name, table in self.tables.items():
            lines.append(f"{name}: {', '.join(f'{column} {kind}' for column, kind in table.columns)}")
            counted = groupby(f"  {list(row.values())}" for row in table.rows)
            lines += [f"{shown}  × {len(list(same))}" for shown, same in counted]
        lines.append(f"{self.layout} session={self.session} partitions={self.asked}")
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("what the message above shows")


def _plain(value: Any) -> Any:
    """Without the halves that only the evaluation reads."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if not key.startswith("_")}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@st.composite
def tables(draw: st.DrawFn, names: tuple[str, ...], own: st.SearchStrategy[DataType], part: bool) -> Table:
    columns = [(name, draw(own)) for name in names]
    if part:
        columns.append((PART, draw(st.sampled_from(PARTS))))
    pools = {}
    for name, kind in columns:
        known = st.sampled_from(_PART_VALUES[kind.name]) if name == PART else values(kind)
        pool = draw(st.lists(known, max_size=4)) or [None]
        pools[name] = st.sampled_from([*pool, None] if draw(st.booleans()) else pool)
    rows = draw(st.lists(st.fixed_dictionaries(pools), min_size=1 if part else 0, max_size=8))
    times = draw(st.sampled_from([1, 1, 1, 30]))
    return Table(tuple(columns), tuple(row for row in rows for _ in range(times)), PART if part else None)


@st.composite
def cases(
    draw: st.DrawFn, names: tuple[str, ...] = NAMES, own: st.SearchStrategy[DataType] | None = None
) -> Case:
    """A case of one object with one to four columns, sometimes with partitions or another object."""
    chosen_columns = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)))
    table = draw(tables(chosen_columns, types() if own is None else own, draw(st.integers(0, 3)) == 0))
    kinds = dict(table.columns)
    compared = {
        name: [row[name] for row in table.rows if _tame(row[name])] or ["" if kind.name == "string" else 0]
        for name, kind in table.columns
        if kind.name in ("int", "bigint", "string") and "`" not in name
    }
    wheres = predicates(compared) if compared else None
    props = [draw(properties(name, kind, (name,), table.rows, wheres)) for name, kind in table.columns]
    if table.part:
        props[-1] |= {"partitioned": True, "partitionKeyPosition": 1}
    keyable = [prop for prop in props if not has_map(kinds[prop["name"]])]
    if keyable and draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(range(len(keyable))), min_size=1, max_size=2, unique=True))
        for position, number in enumerate(chosen):
            keyable[number] |= {"primaryKey": True, "primaryKeyPosition": position + 1}
    one: Json = {"name": "t", "properties": props}
    one["quality"] = [
        {"metric": "rowCount", **draw(thresholds(len(table.rows))), **draw(scopes(wheres)), "unit": "rows"}
    ]
    if keyable and draw(st.booleans()):
        chosen_names = draw(
            st.lists(st.sampled_from([prop["name"] for prop in keyable]), min_size=1, max_size=2, unique=True)
        )
        rule = {"metric": "duplicateValues", "arguments": {"properties": chosen_names}}
        one["quality"].append(rule | draw(thresholds(len(table.rows))) | draw(scopes(wheres)))
    document: Json = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": "random",
        "version": "1.0.0",
        "schema": [one],
    }
    found = {"t": table}
    simple = [prop for prop in props if not kinds[prop["name"]].parts and "." not in prop["name"]]
    if simple and draw(st.integers(0, 3)) == 0:
        found["other"] = draw(_referred(document, draw(st.sampled_from(simple)), kinds, table))
    _disturb(draw, one)
    asked: tuple[Any, ...] = ()
    if table.part and table.rows and draw(st.booleans()):
        asked = tuple(
            draw(st.lists(st.sampled_from([row[PART] for row in table.rows]), min_size=1, max_size=2))
        )
    session = {
        "spark.sql.ansi.enabled": draw(st.sampled_from(["true", "false"])),
        "spark.sql.session.timeZone": draw(st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"])),
    }
    optimizations = draw(
        st.sampled_from([tuple(Optimization), tuple(Optimization), *((one,) for one in Optimization)])
    )
    return Case(document, found, draw(layouts), asked, session, optimizations)


def _tame(value: Any) -> bool:
    """Whether a predicate may hold it."""
    return value is not None and (
        not isinstance(value, str) or (value.isprintable() and not set(value) & set("'\\$"))
    )


@st.composite
def _referred(draw: st.DrawFn, document: Json, prop: Json, kinds: dict[str, DataType], table: Table) -> Table:
    """Another object whose column `key` the property refers to."""
    name = prop["name"]
    kind = kinds[name]
    known = [row[name] for row in table.rows]
    keys = draw(st.lists(st.sampled_from([*known, None]) if known else values(kind), max_size=4))
    prop["relationships"] = [{"to": "other.key"}]
    theirs: Json = {key: prop[key] for key in ("logicalType", "physicalType") if key in prop}
    document["schema"].append({"name": "other", "properties": [{"name": "key", **theirs}]})
    return Table((("key", kind),), tuple({"key": key} for key in keys))


def _disturb(draw: st.DrawFn, one: Json) -> None:
    """Another case of a name, a promised column that is absent, or one that nobody promised."""
    props = one["properties"]
    first = props[0]
    match draw(st.integers(0, 9)):
        case 0:
            first["physicalName"] = first["name"].swapcase()
        case 1:
            props.insert(0, {"name": "absent", "logicalType": "string", "required": True, "unique": True})
        case 2 if len(props) > 1 and len(one["quality"]) == 1 and not first.get("partitioned"):
            props.pop(0)
