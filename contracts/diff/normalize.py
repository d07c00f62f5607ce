"""A contract in normal form: what means the same compares equal, whatever its order or spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dq.contracts import extension
from dq.contracts.diff import columns, terms
from dq.contracts.diff.canonical import SERVER_DEFAULTS, canonical
from dq.contracts.diff.element import ElementKind, FlatElement, Value
from dq.contracts.diff.reading import element, show, value, values
from dq.contracts.model import Contract, Role, Server, SupportChannel, Team

# Where data lives. A server is the same under another label when these are.
COORDINATES = (
    "account", "catalog", "catalogUrl", "database", "dataset", "endpointUrl", "host", "location", "namespace",
    "path", "port", "project", "region", "regionName", "schema", "serviceName", "stream", "warehouse",
)  # fmt: skip
_S3 = re.compile(r"^s3[an]://")


def normalise(contract: Contract) -> FlatElement:
    """The contract as elements. Total: every key that says something is in a value or in a part."""
    found = values(contract, ElementKind.CONTRACT)
    found.pop("team", None)
    found.update(_team(contract))
    parts: list[FlatElement] = [
        *columns.objects(contract.objects),
        *terms.slas(contract),
        *(_server(server) for server in contract.servers),
        *_roles(contract.roles, ""),
        *(_support(channel) for channel in contract.support),
        *_price(contract),
    ]
    keys = (("id", contract.id),)
    return FlatElement(ElementKind.CONTRACT, keys, contract.id, "", "", contract.at(), found, tuple(parts))


def _team(contract: Contract) -> Iterator[tuple[str, Value]]:
    """The team in one of its two forms; a list of members says the same as an object that holds it."""
    team = contract.team
    if not team:
        return
    raw: Any = team if isinstance(team, Team) else {"members": team}
    normal = canonical(raw)
    if normal:
        yield "team", value(contract, "team", normal, show(raw))


def _server(server: Server) -> FlatElement:
    found = values(server, ElementKind.SERVER)
    for key in server.model_extra or {}:
        text = server.get(key)
        if text is not None and SERVER_DEFAULTS.get((server.type, key)) != text:
            found[key] = value(server, key, _coordinate(text) if key in COORDINATES else text, text)
    for key in ("customProperties.csv", "customProperties.dq:csv"):
        if key in found:
            raw = found.pop(key)
            form, wrong = extension.csv(server)
            stated = form.model_dump(exclude_defaults=True)
            # To say what holds anyway changes nothing; what is not understood is compared as it is written.
            if wrong or stated:
                found["csv"] = replace(raw, normal=raw.normal if wrong else canonical(stated))
    place = "|".join(str(found[key].normal) for key in COORDINATES if key in found)
    keys = (
        ("id", server.id or ""),
        ("column", server.server),
        ("place", f"{server.type}|{place}" if place else ""),
    )
    path = f"servers.{server.server}"
    parts = tuple(_roles(server.roles, f"{path}."))
    return element(server, ElementKind.SERVER, keys, server.server, path, found, parts)


def _coordinate(text: str) -> str:
    return _S3.sub("s3://", text).rstrip("/")


def _roles(roles: list[Role], prefix: str) -> Iterator[FlatElement]:
    for role in roles:
        keys = (("id", role.id or ""), ("column", role.role))
        found = values(role, ElementKind.ROLE)
        yield element(role, ElementKind.ROLE, keys, role.role, f"{prefix}roles.{role.role}", found)


def _support(channel: SupportChannel) -> FlatElement:
    found = values(channel, ElementKind.SUPPORT)
    route, _ = extension.route(channel)
    found.update(terms.terms(route, "route"))
    keys = (("id", channel.id or ""), ("column", channel.channel))
    path = f"support.{channel.channel}"
    return element(channel, ElementKind.SUPPORT, keys, channel.channel, path, found)


def _price(contract: Contract) -> Iterator[FlatElement]:
    if contract.price is not None:
        found = values(contract.price, ElementKind.PRICE)
        keys = (("column", "price"),)
        yield element(contract.price, ElementKind.PRICE, keys, "price", "price", found)
