"""Files of JSON and YAML as plain values, at bounded cost; limits of values in JSON Schema and ODCS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from dq.contracts.model import plain
from dq.contracts.shared.outcome import Unreadable
from dq.contracts.yaml import source as yaml_source
from dq.lake.storage import content, reading

# Files of JSON and YAML as plain values, at bounded cost.

MOST_BYTES = 256 << 20
"""So much of a document is read; YAML has the smaller limit of contracts."""

_SHOWN = 100
# So many things that a source says more are told one by one.
_MOST_TOLD = 100

Mapped = dict[str, object]


def parsed(source: str, mend: str, most: int = MOST_BYTES) -> Any:
    """What a file of JSON holds, of so many bytes at the most. Raises Unreadable for what is none."""
    data = content(source, most)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Unreadable(f"{source} is no JSON: {reason}.", mend) from error


def json_of(source: str, mend: str) -> Mapped:
    """The object in a file of JSON. Raises Unreadable for what is none."""
    made = parsed(source, mend)
    if not isinstance(made, dict):
        raise Unreadable(f"{source} is no object of JSON.", mend)
    return made


def yaml_of(source: str, mend: str) -> Mapped:
    """The mapping in a file of YAML. Raises Unreadable, with every fault, for what is none."""
    with reading(source) as held:
        data = held.read(MOST_BYTES)
    top, findings = yaml_source.read(data, source)
    wrong = [f"    {one.at}: {one.message}" for one in findings if one.severity.blocks]
    if top is None or wrong:
        raise Unreadable(f"{source} cannot be read as YAML:", mend, wrong)
    made = plain(top)
    assert isinstance(made, dict)
    return made


def mapped(value: object) -> Mapped:
    """The mapping, with its keys as texts; empty for what is none."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, Mapping) else {}


def fields_of(schema: Mapping[str, object]) -> list[Mapped]:
    """The fields of a record or a struct; none of what is neither."""
    return [one for one in listed(schema.get("fields")) if isinstance(one, dict)]


def listed(value: object) -> list[object]:
    """The list; empty for what is none."""
    return list(value) if isinstance(value, list | tuple) else []


def text(value: object) -> str:
    """The text without blanks around it; "" for what is none."""
    return value.strip() if isinstance(value, str) else ""


def shown(value: object) -> str:
    """The beginning of a value, for a sentence that tells of it."""
    made = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return " ".join(made.split())[:_SHOWN]


def told(said: list[str]) -> tuple[str, ...]:
    """Each sentence once, and of very many how many are left out."""
    unique = list(dict.fromkeys(said))
    more = len(unique) - _MOST_TOLD
    return (*islice(unique, _MOST_TOLD), *((f"… and {more:,} more",) if more > 0 else ()))


# TABLE: what limits values, where JSON Schema and ODCS call it the same.

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# What a value is to JSON Schema -> the keys of `logicalTypeOptions` that it has too.
LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": ("minItems", "maxItems", "uniqueItems"),
}
FORMATS = ("email", "hostname", "ipv4", "ipv6", "uri", "uuid")
"""Formats of texts that are nothing but texts in a table."""

_VALUES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")


def is_limit(key: str, value: object) -> bool:
    """Whether a value can stand at the key. In ODCS 3.0 and old drafts `exclusiveMinimum` is a flag."""
    if key == "uniqueItems":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (key in _COUNTS and (value < 0 or int(value) != value)) and (key != "multipleOf" or value > 0)


def are_values(kind: str, values: object) -> bool:
    """Whether they are a list of values, of which each is of this kind of JSON Schema."""
    wanted = _VALUES.get(kind, ())
    return isinstance(values, list) and bool(values) and all(type(one) in wanted for one in values)
