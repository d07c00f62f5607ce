"""Contracts with any schema that ODCS has words for, made from a seed, and a schema as facts to compare."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from dq.contracts.model import Contract, Property
from dq.contracts.types import catalog_type
from dq.contracts.yaml.portable import block

PLAIN = {
    "string": "string", "char(3)": "string", "varchar(20)": "string", "boolean": "boolean",
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer", "float": "number",
    "double": "number", "decimal(9,2)": "number", "decimal(38,0)": "integer", "decimal(38,12)": "number",
    "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp", "binary": "string",
}  # fmt: skip
"""Every plain type, with the logical type that its values have."""

NESTED = (
    "array<array<string>>", "map<string,double>", "map<int,array<date>>",
    "array<map<string,struct<x:binary>>>",
    "struct<a:int,b:array<struct<c:decimal(5,1),d:string>>>", "map<string,map<string,timestamp_ntz>>",
)  # fmt: skip
TEXTS = (
    "Plain.", "It's", 'a "b"', "a\\b", "${HOME}", "# no", "a: b", "<b>&amp;</b>", "'; DROP TABLE t --",
    "{{ x }}", "é \U0001f600", "- a", "null", "1e3", "%s", "ends with \\", "*/", "@x", "`",
)  # fmt: skip
ENUMS: dict[str, Any] = {"string": TEXTS, "int": range(9), "bigint": range(9)}
LIMITS: dict[str, Any] = {
    "string": ({"minLength": 1, "maxLength": 9}, {"format": "uuid"}),
    "integer": ({"minimum": 0, "maximum": 10},),
    "number": ({"exclusiveMinimum": 0.5}, {"multipleOf": 0.01}),
    "date": ({"minimum": "2020-01-01"},),
    "array": ({"minItems": 1, "uniqueItems": True},),
}
KEYS = ("businessName", "classification", "unique", "description", "required")


def document(seed: int, *, business: bool = True) -> str:
    """A contract of one table `t`, each property with what the dice give it; `business` names or none."""
    dice = random.Random(seed)
    columns = [_column(dice, f"c{at}", kind) for at, kind in enumerate(dice.sample([*PLAIN], 6))]
    columns += [_nested(dice, f"n{at}") for at in range(3)]
    kind = dice.choice(NESTED)
    columns.append({"name": "w", "logicalType": _logical(kind), "physicalType": kind})
    columns.append({"name": "clock", "logicalType": "time"})
    columns.append({"name": "Said", "physicalName": "written", **_plain(dice)})
    dice.shuffle(columns)
    if dice.random() < 0.6:
        for at, column in enumerate(dice.sample(columns[:4], dice.choice((1, 2))), 1):
            column |= {"primaryKey": True, "primaryKeyPosition": at, "required": True}
    columns += [
        {"name": "day", **_typed("date"), "partitioned": True, "partitionKeyPosition": 2},
        {"name": "area", **_typed("string"), "partitioned": True, "partitionKeyPosition": 1},
    ]
    for column in columns:
        if not business:
            column.pop("businessName", None)
    for column in columns[:8]:
        logical, kind = column["logicalType"], column.get("physicalType", "")
        if dice.random() < 0.4 and "physicalName" not in column and kind in ENUMS:
            column["enum"] = [{"value": one} for one in dice.sample(ENUMS[kind], 3)]
        elif dice.random() < 0.5 and logical in LIMITS and kind != "binary":
            column["logicalTypeOptions"] = dice.choice(LIMITS[logical])
    table: dict[str, object] = {"name": "t", "description": dice.choice(TEXTS), "properties": columns}
    top = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": "all", "version": "1.0.0", "status": "draft",
        "domain": "sales", "schema": [table],
    }  # fmt: skip
    return "\n".join(block(top, "")) + "\n"


def _column(dice: random.Random, name: str, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, **_typed(kind)}
    for key in dice.sample(KEYS, dice.randrange(4)):
        made[key] = True if key in ("unique", "required") else dice.choice(TEXTS)
    return made


def _typed(kind: str) -> dict[str, Any]:
    return {"logicalType": PLAIN[kind], "physicalType": kind}


def _plain(dice: random.Random) -> dict[str, Any]:
    return _typed(dice.choice([*PLAIN]))


def _nested(dice: random.Random, name: str) -> dict[str, Any]:
    return {"name": name, **_inside(dice, 0)}


def _inside(dice: random.Random, depth: int) -> dict[str, Any]:
    """What a property is, a struct, array or map at the top, and down to three deep."""
    kind = dice.choice(("struct", "array", "map") if depth == 0 else ("struct", "array", "map", "", ""))
    if kind == "" or depth > 3:
        made = _plain(dice)
    elif kind == "struct":
        fields = [{"name": f"f{at}", **_inside(dice, depth + 1)} for at in range(dice.randint(1, 3))]
        made = {"logicalType": "object", "properties": fields}
    elif kind == "array":
        made = {"logicalType": "array", "items": _inside(dice, depth + 1)}
    else:
        key = _typed(dice.choice(("string", "int", "date"))) | dice.choice(
            ({}, {"required": True, "description": "Key."})
        )
        made = {"logicalType": "map", "map": {"key": key, "value": _inside(dice, depth + 1)}}
    if dice.random() < 0.4:
        made["description"] = dice.choice(TEXTS)
    if dice.random() < 0.3:
        made["required"] = True
    return made


def _logical(kind: str) -> str:
    return "object" if kind.startswith("struct") else kind.partition("<")[0]


def facts(contract: Contract) -> dict[tuple[str, str], object]:
    """What the one table says, by path and key of ODCS; what is false or empty says nothing."""
    [one] = contract.objects
    found: dict[tuple[str, str], object] = {("", "description"): one.description}
    for prop in one.properties:
        found[prop.column, "type"] = str(catalog_type(prop))
        found |= {
            (path, key): value for path, inner in _walk(prop.column, prop) for key, value in _said(inner)
        }
    for key, order in (("partitioned", one.partition_keys()), ("primaryKey", one.primary_key())):
        found |= {(prop.column, key): at for at, prop in enumerate(order, 1)}
    return {place: value for place, value in found.items() if value not in (None, False, [])}


def _walk(path: str, prop: Property) -> Iterator[tuple[str, Property]]:
    yield path, prop
    for inner in prop.properties:
        yield from _walk(f"{path}.{inner.column}", inner)
    if prop.items is not None:
        yield from _walk(f"{path}[]", prop.items)
    if prop.map is not None:
        yield from _walk(f"{path}.^", prop.map.key)
        yield from _walk(f"{path}.*", prop.map.value)


def _said(prop: Property) -> Iterator[tuple[str, object]]:
    if prop.name != prop.column:
        yield "name", prop.name
    if prop.logical_type == "time":
        yield "logicalType", "time"
    for key in ("description", "required", "unique", "classification", "businessName"):
        yield key, getattr(prop, {"businessName": "business_name"}.get(key, key))
    yield "enum", [one.value for one in prop.enum or ()]
    options = prop.logical_type_options
    yield "logicalTypeOptions", options and options.model_dump(by_alias=True, exclude_none=True)
