"""The organisation's own fields: JSON Schemas of the policy for the custom properties of each level.

A level's custom properties are judged as one JSON object of names and values, so that a schema can ask for
some, close the set, and describe each value. Schemas are JSON Schema 2020-12 (`jsonschema`), whose `$ref`
stays within the schema: nothing is ever fetched. Their size and the work that they take are limited.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dq.contracts.extension import VENDOR
from dq.contracts.model import Contract, CustomProperty, Extensible
from dq.contracts.shared.outcome import Location
from dq.contracts.shared.source_map import PLACE, Place
from dq.validators.context import Walk
from dq.validators.policy import bounded_schema
from dq.validators.policy.own_rules import SELECTIONS
from dq.validators.policy.schema_vetting import UnusableSchema, vet
from dq.validators.rule import Fault

if TYPE_CHECKING:
    from jsonschema import ValidationError


Schemas = Mapping[str, object]
"""JSON Schemas by the name of the level, as plain values."""

Way = tuple[str | int, ...]

LEVELS = ("contract", "object", "property", "slaProperty", "server")

_SHOWN = 200


def wrong_schema(schema: Any) -> tuple[str, Way] | None:
    """Why this is no JSON Schema that can be used, and the way to the part that is wrong; None if it can."""
    try:
        vet(schema)
    except UnusableSchema as error:
        return _brief(str(error)), error.path
    return None


def custom_property_faults(schemas: Schemas, contract: Contract, walk: Walk) -> Iterator[Fault]:
    """What the contract's custom properties lack of these schemas, at the line of each value.

    Where that costs more than a contract may, the last fault says so, and the rest is not judged.
    """
    budget = bounded_schema.WorkBudget()
    for level, schema in schemas.items():
        selection = SELECTIONS[level]
        for node in selection.of(contract, walk):
            given = _given(node)
            name = getattr(node, selection.label, None)
            subject = f"{level} {name!r}" if name else level
            try:
                with bounded_schema.within(budget):
                    errors = bounded_schema.errors(
                        schema, {key: _json(custom.value) for key, custom in given.items()}
                    )
            except bounded_schema.WorkLimitExceeded:
                yield _not_evaluated(node, subject, "the policy's schema takes too much work for its values")
                return
            except Exception as error:  # noqa: BLE001  # one guard per contract: the others are judged
                yield _not_evaluated(node, subject, _brief(str(error)))
                continue
            for wrong in errors:
                yield from (
                    _of_value(wrong, given) if wrong.absolute_path else _of_set(wrong, node, given, subject)
                )


def _not_evaluated(node: Extensible, subject: str, reason: str) -> Fault:
    message = f"{subject}: its custom properties were not evaluated: {reason}."
    hint = "Shorten the values, or simplify the schema in the policy."
    return Fault(node.at("customProperties"), message, hint, node.path("customProperties"))


def _given(node: Extensible) -> dict[str, CustomProperty]:
    """The custom properties by name, the first of each; dq's own have a form of their own."""
    found: dict[str, CustomProperty] = {}
    for custom in node.custom_properties:
        if custom.vendor != VENDOR:
            found.setdefault(custom.property, custom)
    return found


def _json(value: object) -> object:
    """The value as JSON has it: what YAML read as a date is a text there."""
    if isinstance(value, dict):
        return {key: _json(inner) for key, inner in value.items() if key != PLACE}
    if isinstance(value, list):
        return [_json(inner) for inner in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def _of_set(
    error: ValidationError, node: Extensible, given: Mapping[str, CustomProperty], subject: str
) -> Iterator[Fault]:
    """What is wrong with which custom properties there are."""
    wanted: Any = error.validator_value
    known: Any = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    at, path = node.at("customProperties"), node.path("customProperties")
    if error.validator == "required":
        for name in (one for one in wanted if one not in given and repr(one) in error.message):
            message = f"{subject} lacks the custom property {name!r}, which the policy asks for."
            mend = f"Add {{property: {name}, value: …}} to its customProperties."
            yield Fault(at, message, mend + _says(known.get(name), " "), path)
    elif error.validator == "additionalProperties" and wanted is False:
        for name, custom in given.items():
            if name not in known:
                message = f"{subject}: the policy knows no custom property {name!r} here."
                mend = f"It knows {', '.join(known) or 'none'}."
                yield Fault(custom.at("property"), message, mend, custom.path("property"))
    else:
        message = f"{subject}: its custom properties are not as the policy asks: {_brief(error.message)}."
        yield Fault(at, message, _says(error.schema) or _MEND, path)


def _of_value(error: ValidationError, given: Mapping[str, CustomProperty]) -> Iterator[Fault]:
    """What is wrong with the value of one custom property."""
    name, *way = error.absolute_path
    custom = given[str(name)]
    at, path = _spot(custom, way)
    message = f"custom property {custom.property!r}: {_brief(error.message)}."
    yield Fault(at, message, _says(error.schema) or _MEND, path)


_MEND = "Write what the policy's schema describes."


def _says(schema: object, before: str = "") -> str:
    """What the schema says in its `description`."""
    said = schema.get("description") if isinstance(schema, Mapping) else None
    return f"{before}The policy says: {said}" if said else ""


def _spot(custom: CustomProperty, way: Iterable[str | int]) -> tuple[Location, str]:
    """Where a part of a custom property's value stands, as near as its places tell."""
    at, path, value = custom.at("value"), custom.path("value"), custom.value
    place, key = custom.place, "value"
    for step in way:
        if isinstance(value, dict) and isinstance(inside := value.get(PLACE), Place):
            place, key = inside, str(step)
            at, path, value = place.at(key), place.below(key), value.get(key)
        elif isinstance(value, list) and isinstance(step, int):
            at, path, value = place.at(key, step), f"{path}[{step}]", value[step]
    return at, path


def _brief(message: str) -> str:
    return (message if len(message) <= _SHOWN else message[:_SHOWN] + "…").rstrip(".")
