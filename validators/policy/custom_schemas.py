"""The organisation's own fields: JSON Schemas of the policy for the custom properties of each level.

A level's custom properties are judged as one JSON object of names and values, so that a schema can ask for
some, close the set, and describe each value. Schemas are JSON Schema 2020-12 (`jsonschema`), whose `$ref`
stays within the schema: nothing is ever fetched.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dq.contracts.extension import VENDOR
from dq.contracts.model import Contract, CustomProperty, Extensible
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.outcome import Location
from dq.contracts.shared.source_map import PLACE, Place
from dq.validators.context import Walk
from dq.validators.policy.own_rules import SELECTIONS
from dq.validators.rule import Fault

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

Schemas = Mapping[str, object]
"""JSON Schemas by the name of the level, as plain values."""

Way = tuple[str | int, ...]

LEVELS = ("contract", "object", "property", "slaProperty", "server")

_REFERENCES = ("$ref", "$dynamicRef")
_SHOWN = 200


def wrong_schema(schema: Any) -> tuple[str, Way] | None:
    """Why this is no JSON Schema that can be used, and the way to the part that is wrong; None if it can."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return _brief(error.message), tuple(error.absolute_path)
    resolver = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for key, value, way in _walk(schema, ()):
        if key in _REFERENCES and not value.startswith("#"):
            return f"{key} {value!r} leaves the schema, and nothing is fetched", way
        try:
            if key in _REFERENCES:
                resolver.lookup(value)
            elif key == "pattern":
                re.compile(value)
        except Unresolvable:
            return f"{key} {value!r} names nothing", way
        except re.error as error:
            return f"{value!r} is not a regular expression: {error}", way
    return None


def _walk(part: object, way: Way) -> Iterator[tuple[str, str, Way]]:
    """Every key with a text in the schema, and the way to it."""
    if isinstance(part, list):
        for index, inner in enumerate(part):
            yield from _walk(inner, (*way, index))
    elif isinstance(part, dict):
        for key, inner in part.items():
            if isinstance(inner, str):
                yield key, inner, (*way, key)
            yield from _walk(inner, (*way, key))


def faults(schemas: Schemas, contract: Contract, walk: Walk) -> Iterator[Fault]:
    """What the contract's custom properties lack of these schemas, at the line of each value.

    Raises UsageError for a schema that refers to itself without end.
    """
    for level, schema in schemas.items():
        validator = _validator(schema)
        selection = SELECTIONS[level]
        for node in selection.of(contract, walk):
            given = _given(node)
            name = getattr(node, selection.label, None)
            subject = f"{level} {name!r}" if name else level
            for error in _errors(validator, {key: _json(custom.value) for key, custom in given.items()}):
                yield from (
                    _of_value(error, given) if error.absolute_path else _of_set(error, node, given, subject)
                )


def _validator(schema: Any) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from referencing import Registry

    # With a registry of its own, which holds nothing, jsonschema fetches nothing.
    return Draft202012Validator(schema, registry=Registry())


def _errors(validator: Draft202012Validator, given: object) -> list[ValidationError]:
    try:
        return sorted(validator.iter_errors(given), key=lambda one: [str(step) for step in one.absolute_path])
    except RecursionError:
        raise UsageError(
            "the policy cannot be understood: a schema of its customProperties refers to itself without end.",
            "Let each $ref lead one level deeper into the value.",
        ) from None


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
