"""Whole contracts from the fragments of `compat-cases.yaml`, by way of real YAML text and the real parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse

Fragment = Mapping[str, Any]

TODAY = date(2026, 1, 15)
HEADER_KEYS = ("id", "name", "version", "status", "domain", "tenant", "dataProduct", "tags", "description")
COLUMN = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\{(?P<inner>[^}]*)\})?(?P<need>[!?])?(?:=(?P<form>\S+))?"
    r"(?:\s+default\s+(?P<default>\S+))?(?:\s+\(deprecated (?P<since>[\d-]+)\))?"
    r"(?::?\s+(?P<type>[a-z]\w*(?:\([^)]*\)|<.*>)?))?(?P<late_need>[!?])?"
    r"(?:\s+default\s+(?P<late>\S+))?(?:\s+\(deprecated (?P<late_since>[\d-]+)\))?"
)
TRANSFORM = re.compile(r"(?P<transform>[a-z]+)\((?:\d+,\s*)?(?P<name>[A-Za-z_]\w*)(?:,\s*\d+)?\)")
# What ODCS has no key for is a custom property in a contract.
CUSTOM = ("unit", "currency", "default", "renamedFrom", "deprecatedSince", "partitionTransform")


@dataclass(frozen=True)
class Side:
    """One side of a case: its contracts, and what is handed in beside them."""

    contracts: list[Contract]
    extras: dict[str, Any] = field(default_factory=dict)


def text(document: Mapping[str, Any]) -> bytes:
    return yaml.dump(dict(document), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()


def contract(document: Mapping[str, Any], file: str = "orders.odcs.yaml") -> Contract:
    made = parse(text(document), file).contract
    assert made is not None, document
    return made


def document(fragment: Fragment, other: Fragment | None = None, version: str | None = None) -> dict[str, Any]:
    """The contract that a fragment means; `other` is the other side, for columns that only it names."""
    made: dict[str, Any] = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": "orders",
        "version": version or "1.0.0",
        "status": "active",
    }
    header = dict(fragment.get("contract") or {})
    for key in HEADER_KEYS:
        if key in fragment:
            header[key] = fragment[key]
    slas = [sla_entry(one) for one in as_list(fragment.get("sla")) if one]
    for key in ("endOfSupport", "endOfLife"):
        day = header.pop(key, fragment.get(key))
        if day is not None:
            slas.append({"property": key, "value": str(day)})
    team = header.pop("team", fragment.get("team"))
    if team:
        made["team"] = {"name": team} if isinstance(team, str) else team
    support = header.pop("support", fragment.get("support"))
    if support:
        made["support"] = [{"channel": one} if isinstance(one, str) else one for one in as_list(support)]
    price = header.pop("price", fragment.get("price"))
    if price is not None:
        made["price"] = price_of(price)
    if isinstance(header.get("description"), str):
        header["description"] = {"purpose": header["description"]}
    made.update(header)
    if version is not None:
        made["version"] = version
    made["version"] = str(made["version"])
    if slas:
        made["slaProperties"] = slas
    if fragment.get("servers"):
        made["servers"] = [server_of(one) for one in fragment["servers"]]
    if fragment.get("server"):
        made["servers"] = [server_of(fragment["server"])]
    if fragment.get("roles"):
        made["roles"] = [{"role": one} if isinstance(one, str) else one for one in fragment["roles"]]
    if fragment.get("customProperties"):
        made["customProperties"] = fragment["customProperties"]
    made["schema"] = list(objects(fragment, other or {}))
    return made


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def objects(fragment: Fragment, other: Fragment) -> Iterable[dict[str, Any]]:
    if "tables" in fragment:
        for name in fragment["tables"]:
            table = {"name": name} if isinstance(name, str) else dict(name)
            yield {**table, "properties": [{"name": "a"}]}
        return
    made: dict[str, Any] = {"name": "orders", **(fragment.get("table") or {})}
    listed = made.get("properties")
    made["properties"] = properties(fragment, other) if listed is None else from_columns(listed, None)
    if fragment.get("relationships"):
        made["relationships"] = [relationship(one) for one in fragment["relationships"]]
    yield made


def properties(fragment: Fragment, other: Fragment) -> list[dict[str, Any]]:
    for key in (
        "columns",
        "struct",
        "property",
        "properties",
        "quality",
        "primaryKey",
        "partition",
        "required",
    ):
        if key in fragment:
            return _PROPERTIES[key](fragment[key], other.get(key))
    for key in ("columns", "quality"):
        if key in other and not fragment:
            return _PROPERTIES[key](other[key], None)
    return [{"name": "a"}]


def from_columns(columns: list[Any], _: Any) -> list[dict[str, Any]]:
    return [column(one) for one in columns]


def from_struct(fields: list[Any], _: Any) -> list[dict[str, Any]]:
    return [{"name": "s", "logicalType": "object", "properties": from_columns(fields, None)}]


def from_property(prop: Fragment, _: Any) -> list[dict[str, Any]]:
    made = {"name": "a", **deepcopy(dict(prop))}
    custom = list(made.get("customProperties") or [])
    custom += [{"property": key, "value": made.pop(key)} for key in CUSTOM if key in made]
    if custom:
        made["customProperties"] = custom
    if "enum" in made:
        made["enum"] = [one if isinstance(one, dict) else {"value": one} for one in made["enum"]]
    if isinstance(made.get("properties"), list):
        made["properties"] = [column(one) for one in made["properties"]]
    if isinstance(made.get("quality"), (dict, list)):
        made["quality"] = [rule(one) for one in as_list(made["quality"]) if one]
    return [made]


def from_quality(quality: Any, _: Any) -> list[dict[str, Any]]:
    rules = [rule(one) for one in as_list(quality) if one]
    return [{"name": "a", **({"quality": rules} if rules else {})}]


def from_primary_key(key: list[str], other: Any) -> list[dict[str, Any]]:
    names = sorted({*key, *(other or []), "a"})
    return [
        {
            "name": name,
            **({"primaryKey": True, "primaryKeyPosition": key.index(name) + 1} if name in key else {}),
        }
        for name in names
    ]


def from_partition(keys: list[Any], other: Any) -> list[dict[str, Any]]:
    made = [partition_column(one, number) for number, one in enumerate(keys, 1)]
    rest = [partition_column(one, 0) for one in other or []]
    named = {one["name"]: one for one in rest}
    named.update({one["name"]: one for one in made})
    for one in made:
        named[one["name"]] = one
    for one in named.values():
        if one not in made:
            one.pop("partitioned", None), one.pop("partitionKeyPosition", None)
    return [named[name] for name in sorted(named)]


def partition_column(text_: Any, position: int) -> dict[str, Any]:
    if isinstance(text_, Mapping):
        return {**text_, "partitioned": True, "partitionKeyPosition": position}
    match = TRANSFORM.fullmatch(text_)
    made = column(match["name"] if match else text_)
    if match:
        made["customProperties"] = [{"property": "partitionTransform", "value": match["transform"]}]
    return {**made, "partitioned": True, "partitionKeyPosition": position}


def from_required(required: bool, _: Any) -> list[dict[str, Any]]:
    return [{"name": "a", "required": required}]


_PROPERTIES = {
    "columns": from_columns,
    "properties": from_columns,
    "struct": from_struct,
    "property": from_property,
    "quality": from_quality,
    "primaryKey": from_primary_key,
    "partition": from_partition,
    "required": from_required,
}


def column(written: Any) -> dict[str, Any]:
    """`b!`, `n decimal(10,2)`, `s{a,b}`, `b (deprecated 2025-06-01)`, `b! default 0`, `dt=yyyy-MM-dd`."""
    if isinstance(written, Mapping):
        return from_property(written, None)[0]
    match = COLUMN.fullmatch(str(written))
    assert match is not None, written
    made: dict[str, Any] = {"name": match["name"]}
    if match["inner"] is not None:
        made["logicalType"] = "object"
        made["properties"] = [column(one.strip()) for one in match["inner"].split(",")]
    need = match["need"] or match["late_need"]
    if need:
        made["required"] = need == "!"
    if match["type"]:
        made["physicalType"] = match["type"]
    if match["form"]:
        made["logicalType"] = "date"
        made["logicalTypeOptions"] = {"format": match["form"]}
    custom = []
    default, since = match["default"] or match["late"], match["since"] or match["late_since"]
    if default:
        custom.append({"property": "default", "value": yaml.safe_load(default)})
    if since:
        made["deprecated"] = True
        custom.append({"property": "deprecatedSince", "value": since})
    if custom:
        made["customProperties"] = custom
    return made


def rule(quality: Fragment) -> dict[str, Any]:
    made = dict(quality)
    if "query" in made:
        made.setdefault("type", "sql")
    if "implementation" in made or "engine" in made:
        made.setdefault("type", "custom")
    if "text" in made:
        made["description"] = made.pop("text")
        made.setdefault("type", "text")
    return made


def sla_entry(sla: Fragment) -> dict[str, Any]:
    made = dict(sla)
    if "schedule" in made:
        made = {"property": "frequency", "value": 1, "unit": "d", "scheduler": "cron", **made}
    made.setdefault("value", None)
    return made


def server_of(server: Any) -> dict[str, Any]:
    if isinstance(server, str):
        return {"server": server, "type": "s3", "location": f"s3://bucket-{server}/orders"}
    made = {"server": "prod", "type": "s3", **server}
    if made["type"] == "s3":
        made.setdefault("location", "s3://bucket/orders")
    return made


def price_of(price: Any) -> dict[str, Any]:
    if isinstance(price, Mapping):
        renamed = {"amount": "priceAmount", "currency": "priceCurrency", "unit": "priceUnit"}
        return {renamed.get(key, key): value for key, value in price.items()}
    return {"priceAmount": price, "priceCurrency": "EUR", "priceUnit": "month"}


def relationship(written: Any) -> dict[str, Any]:
    if isinstance(written, Mapping):
        return dict(written)
    origin, _, target = written.partition("->")
    return {"from": f"orders.{origin.strip()}", "to": target.strip()}
