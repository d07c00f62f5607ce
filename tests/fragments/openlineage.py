"""Events of OpenLineage, read back by the client's own classes, which are generated from the JSON schema.

No package ships the schema's files (the client's wheel and sdist, and openlineage-java, were looked through).
The classes have its names, types and required fields, validators for instants and ids, and the file that each
is made from, as `_schemaURL`. What they would take all the same is refused here: another type, a key that
they do not know, a facet below another key or in another place.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

import attr
from openlineage.client import generated
from openlineage.client.generated import base
from openlineage.client.serde import Serde

SPEC = "https://openlineage.io/spec/"
_KINDS = ("InputDatasetFacet", "OutputDatasetFacet", "DatasetFacet", "RunFacet", "JobFacet")
_WRITTEN = ("_producer", "_schemaURL", "schemaURL")


def _classes() -> Iterator[type]:
    for module in pkgutil.iter_modules(generated.__path__):
        for value in vars(importlib.import_module(f"{generated.__name__}.{module.name}")).values():
            if isinstance(value, type) and attr.has(value) and hasattr(value, "_get_schema"):
                yield value


BY_URL = {one._get_schema(): one for one in _classes()}


def read_back(event: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for an event that is not the standard's, with the place of the fault."""
    made = _made(base.RunEvent, event, "event")
    # What was left out on the way would be missing here.
    if Serde.to_dict(made) != Serde.to_dict(event):
        raise ValueError(f"it reads as another event: {Serde.to_dict(made)}")


def _made(wanted: type, value: Any, at: str) -> Any:
    """The object of this class that the JSON object is."""
    if not isinstance(value, dict):
        raise TypeError(f"{at} is {value!r}, and no {wanted.__name__}")
    fields = {one.name: one for one in attr.fields(wanted)}
    if unknown := set(value) - set(fields):
        raise TypeError(f"{at} has {sorted(unknown)}, which {wanted.__name__} has not")
    hints = typing.get_type_hints(wanted)
    given = {name: _value(hints[name], each, f"{at}.{name}") for name, each in value.items()}
    for name in set(given) & set(_WRITTEN):
        if urlsplit(given[name]).scheme != "https":
            raise ValueError(f"{at}.{name} is no URL: {given[name]!r}")
    taken = {fields[name].alias: each for name, each in given.items() if fields[name].init}
    made = wanted(**taken)
    for name in given:
        if not fields[name].init and getattr(made, name) != given[name]:
            raise ValueError(
                f"{at}.{name} is {given[name]!r}, and {wanted.__name__} is {getattr(made, name)!r}"
            )
    return made


def _value(hint: Any, value: Any, at: str) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in parts:
            return None
        (hint,) = (one for one in parts if one is not types.NoneType)
        return _value(hint, value, at)
    if origin is list:
        if not isinstance(value, list):
            raise TypeError(f"{at} is {value!r}, and no list")
        return [_value(parts[0], one, f"{at}[{number}]") for number, one in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise TypeError(f"{at} is {value!r}, and no object")
        return {key: _in_map(parts[1], key, one, f"{at}.{key}") for key, one in value.items()}
    if hint is Any:
        return value
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if isinstance(hint, type) and attr.has(hint):
        return _made(hint, value, at)
    allowed = (int, float) if hint is float else (hint,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
        raise TypeError(f"{at} is {value!r}, and no {hint.__name__}")
    return value


def _in_map(hint: Any, key: str, value: Any, at: str) -> Any:
    if not (isinstance(hint, type) and issubclass(hint, base.BaseFacet)):
        return _value(hint, value, at)
    # A map of facets knows their base; which of them it is, each says itself.
    wanted = BY_URL.get(value.get("_schemaURL")) if isinstance(value, dict) else None
    if wanted is None or not issubclass(wanted, hint):
        raise TypeError(f"{at} is no {hint.__name__} that the client knows: {value!r}")
    name = next(wanted.__name__.removesuffix(kind) for kind in _KINDS if wanted.__name__.endswith(kind))
    if key != name[0].lower() + name[1:]:
        raise ValueError(f"{at} is a {wanted.__name__}, which has another key")
    return _made(wanted, value, at)
