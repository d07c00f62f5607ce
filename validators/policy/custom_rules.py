"""Custom rules and JSON Schemas for custom properties, defined in the policy."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dq.contracts.extension import VENDOR
from dq.contracts.model import (
    SOURCE_MAP_KEY,
    Contract,
    CustomProperty,
    Extensible,
    Member,
    Node,
    Property,
    Quality,
    Role,
    SchemaObject,
    Server,
    SlaProperty,
    SourceMap,
    SupportChannel,
)
from dq.contracts.odcs import SERVER_TYPES
from dq.contracts.outcome import Location, Severity
from dq.contracts.pattern import max_search_steps
from dq.validators.context import Context, Walk
from dq.validators.policy import json_schema
from dq.validators.policy.json_schema import UnusableSchema, vet
from dq.validators.rule import Rule, Violation, quote_value

if TYPE_CHECKING:
    from jsonschema import ValidationError


# Custom rules of the policy: select elements, and assert conditions on their keys.
#
# Selections and operators are closed tables; there are no expressions.


class Selection(NamedTuple):
    """Kind of element: its model, how to list the elements of a contract, and the key for messages."""

    model: type[Extensible]
    elements: Callable[[Contract, Walk], Iterable[Extensible]]
    label: str


SELECTIONS: dict[str, Selection] = {
    "contract": Selection(Contract, lambda contract, _: [contract], "id"),
    "object": Selection(SchemaObject, lambda contract, _: contract.objects, "name"),
    "property": Selection(Property, lambda _, walk: walk.properties, "name"),
    "column": Selection(
        Property, lambda _, walk: [column.property for column in walk.columns if column.is_top_level], "name"
    ),
    "quality": Selection(Quality, lambda _, walk: walk.qualities, "name"),
    "server": Selection(Server, lambda contract, _: contract.servers, "server"),
    "slaProperty": Selection(SlaProperty, lambda contract, _: contract.sla_properties, "property"),
    "support": Selection(SupportChannel, lambda contract, _: contract.support, "channel"),
    "role": Selection(Role, lambda contract, _: contract.roles, "role"),
    "member": Selection(Member, lambda contract, _: contract.members(), "username"),
}


class Operator(NamedTuple):
    """Test of an existing value, and the description of its requirement for hints."""

    holds: Callable[[Any, Any], bool]
    describe: Callable[[Any], str]


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, list)) else 0


OPERATORS: dict[str, Operator] = {
    "exists": Operator(
        lambda _, expected: expected is True, lambda expected: "be present" if expected else "be absent"
    ),
    "not-empty": Operator(
        lambda value, expected: bool(value.strip() if isinstance(value, str) else value) is expected,
        lambda expected: "not be empty" if expected else "be empty",
    ),
    "equals": Operator(
        lambda value, expected: _equals(value, expected), lambda expected: f"be {quote_value(expected)}"
    ),
    "one-of": Operator(
        lambda value, expected: any(_equals(value, item) for item in expected),
        lambda expected: f"be one of {', '.join(quote_value(item) for item in expected)}",
    ),
    "none-of": Operator(
        lambda value, expected: not any(_equals(value, item) for item in expected),
        lambda expected: f"be none of {', '.join(quote_value(item) for item in expected)}",
    ),
    "matches": Operator(
        lambda value, expected: isinstance(value, str) and _matches(expected, value),
        lambda expected: f"match {expected}",
    ),
    "contains": Operator(
        lambda value, expected: isinstance(value, list) and any(_equals(item, expected) for item in value),
        lambda expected: f"contain {quote_value(expected)}",
    ),
    "min-length": Operator(
        lambda value, expected: _size(value) >= expected, lambda expected: f"have {expected} or more"
    ),
    "max-length": Operator(
        lambda value, expected: _size(value) <= expected, lambda expected: f"have at most {expected}"
    ),
    "at-least": Operator(
        lambda value, expected: _is_number(value) and value >= expected,
        lambda expected: f"be {expected:g} or more",
    ),
    "at-most": Operator(
        lambda value, expected: _is_number(value) and value <= expected,
        lambda expected: f"be at most {expected:g}",
    ),
}


# Maximum steps of a search in a contract's text; Python's matcher does about 50 million steps a second.
_MAX_MATCHER_STEPS = 10_000_000


def _matches(pattern: str, value: str) -> bool:
    """Return True if the text contains the pattern; False if the search would take too long."""
    steps = max_search_steps(pattern, 1 << max(len(value) - 1, 1).bit_length())
    return steps is not None and steps <= _MAX_MATCHER_STEPS and re.search(pattern, value) is not None


def _equals(value: object, expected: object) -> bool:
    """Return True if the values are equal and of the same type: `true` is not 1."""
    return type(value) is type(expected) and value == expected


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class KeyTest:
    """Operator on a key; the key is a tuple of steps, e.g. two for `logicalTypeOptions.format`."""

    key: tuple[str, ...]
    operator: str
    expected: object

    def holds(self, value: object, absent: bool) -> bool:
        """Return True if the value passes; `absent` is the result for a missing value, except for
        `exists`.
        """
        if value is None:
            return self.expected is False if self.operator == "exists" else absent
        return OPERATORS[self.operator].holds(value, self.expected)


def allowed_keys(selection: str) -> set[str]:
    """Return the keys that an element of this kind may have, as written in a contract."""
    model = SELECTIONS[selection].model
    keys = set(_attributes(model)) - {SOURCE_MAP_KEY}
    if model is Server:
        keys |= {key for kind in SERVER_TYPES.values() for key in (*kind.required, *kind.optional)}
    return keys


def custom_rule(
    id_: str,
    severity: Severity,
    select: str,
    conditions: tuple[KeyTest, ...],
    asserts: tuple[KeyTest, ...],
    message: str,
    hint: str | None,
) -> Rule:
    """Return a rule that reports every selected element that meets `conditions` but fails an assertion.

    A missing key fails every condition, and passes every assertion except `exists` and `not-empty`.
    """
    selection = SELECTIONS[select]

    def check(contract: Contract, context: Context) -> Iterator[Violation]:
        for node in selection.elements(contract, context.walk):
            if not all(test.holds(_resolve_key(node, test.key)[2], absent=False) for test in conditions):
                continue
            for test in asserts:
                holder, key, value = _resolve_key(node, test.key)
                if test.holds(value, absent=test.operator != "not-empty"):
                    continue
                name = ".".join(test.key)
                text = hint or f"{name} must {OPERATORS[test.operator].describe(test.expected)}."
                label = _resolve_key(node, (selection.label,))[2]
                subject = f"{select} {label!r}" if label else select
                yield Violation(
                    holder.locate(key), f"{subject}: {message}", text, holder.path(key), (holder.path(key),)
                )
                break

    return Rule(id_, severity, None, check)


def _resolve_key(node: Node, key: tuple[str, ...]) -> tuple[Node, str, Any]:
    """Return the element that has (or would have) the key, the key in it, and its value or None."""
    holder, name, value = node, key[0], _value(node, key[0])
    for step in key[1:]:
        if isinstance(value, list) and name == "customProperties":
            own = next((candidate for candidate in value if candidate.property == step), None)
            if own is None:
                return holder, name, None
            holder, name, value = own, "value", own.value
        elif isinstance(value, Node):
            holder, name, value = value, step, _value(value, step)
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return holder, name, value


def _value(node: Node, key: str) -> Any:
    attribute = _attributes(type(node)).get(key)
    if attribute is None:
        return (node.model_extra or {}).get(key)
    return getattr(node, attribute) if node.has(key) else None


@lru_cache(64)
def _attributes(model: type[Node]) -> dict[str, str]:
    """Return a mapping from key as written to attribute name."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


# JSON Schemas of the policy for the custom properties of each level.
#
# The custom properties of an element are validated as one JSON object of names and values, so that a schema
# can require some, forbid others, and describe each value. Schemas are JSON Schema 2020-12 (`jsonschema`)
# with local `$ref` only: nothing is ever fetched. Their size and evaluation cost are limited.

Schemas = Mapping[str, object]
"""JSON Schemas by the name of the level, as plain values."""

SchemaPath = tuple[str | int, ...]

LEVELS = ("contract", "object", "property", "slaProperty", "server")

_MAX_LENGTH = 200


def schema_problem(schema: Any) -> tuple[str, SchemaPath] | None:
    """Return why the JSON Schema cannot be used and the path to the wrong part, or None if it is usable."""
    try:
        vet(schema)
    except UnusableSchema as error:
        return brief(str(error)), error.path
    return None


def custom_property_violations(schemas: Schemas, contract: Contract, walk: Walk) -> Iterator[Violation]:
    """Yield the violations of these schemas by the contract's custom properties, at the line of each value.

    If the evaluation exceeds the work limit, the last violation says so and evaluation stops.
    """
    budget = json_schema.WorkBudget()
    for level, schema in schemas.items():
        selection = SELECTIONS[level]
        for node in selection.elements(contract, walk):
            properties = _custom_properties(node)
            name = getattr(node, selection.label, None)
            subject = f"{level} {name!r}" if name else level
            try:
                with json_schema.within(budget):
                    errors = json_schema.errors(
                        schema, {key: as_json(custom.value) for key, custom in properties.items()}
                    )
            except json_schema.WorkLimitExceeded:
                yield _not_evaluated(node, subject, "the policy's schema takes too long to evaluate")
                return
            except Exception as error:  # noqa: BLE001  # one guard per contract: the others are judged
                yield _not_evaluated(node, subject, brief(str(error)))
                continue
            for wrong in errors:
                yield from (
                    _value_violation(wrong, properties)
                    if wrong.absolute_path
                    else _set_violations(wrong, node, properties, subject)
                )


def _not_evaluated(node: Extensible, subject: str, reason: str) -> Violation:
    message = f"{subject}: its custom properties were not evaluated: {reason}."
    hint = "Shorten the values, or simplify the schema in the policy."
    return Violation(node.locate("customProperties"), message, hint, node.path("customProperties"))


def _custom_properties(node: Extensible) -> dict[str, CustomProperty]:
    """Return the custom properties by name, the first of each, without those of dq, which have their own
    models.
    """
    properties: dict[str, CustomProperty] = {}
    for custom in node.custom_properties:
        if custom.vendor != VENDOR:
            properties.setdefault(custom.property, custom)
    return properties


def as_json(value: object) -> object:
    """Convert a YAML value to JSON: dates become text."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items() if key != SOURCE_MAP_KEY}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def _set_violations(
    error: ValidationError, node: Extensible, properties: Mapping[str, CustomProperty], subject: str
) -> Iterator[Violation]:
    """Yield the violations for missing or unexpected custom properties."""
    expected: Any = error.validator_value
    schema_properties: Any = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
    location, path = node.locate("customProperties"), node.path("customProperties")
    if error.validator == "required":
        for name in (key for key in expected if key not in properties and repr(key) in error.message):
            message = f"{subject} lacks the custom property {name!r}, which the policy requires."
            hint = f"Add {{property: {name}, value: …}} to its customProperties."
            yield Violation(
                location, message, hint + _schema_description(schema_properties.get(name), " "), path
            )
    elif error.validator == "additionalProperties" and expected is False:
        for name, custom in properties.items():
            if name not in schema_properties:
                message = f"{subject}: the policy does not allow a custom property {name!r} here."
                hint = f"Allowed: {', '.join(schema_properties) or 'none'}."
                yield Violation(custom.locate("property"), message, hint, custom.path("property"))
    else:
        message = f"{subject}: its custom properties do not match the policy: {brief(error.message)}."
        yield Violation(location, message, _schema_description(error.schema) or _DEFAULT_HINT, path)


def _value_violation(error: ValidationError, properties: Mapping[str, CustomProperty]) -> Iterator[Violation]:
    """Yield the violation for the value of a custom property."""
    name, *steps = error.absolute_path
    custom = properties[str(name)]
    location, path, _ = locate(custom.place, "value", custom.value, steps)
    message = f"custom property {custom.property!r}: {brief(error.message)}."
    yield Violation(location, message, _schema_description(error.schema) or _DEFAULT_HINT, path)


_DEFAULT_HINT = "Write a value that matches the policy's schema."


def _schema_description(schema: object, before: str = "") -> str:
    """Return the schema's `description` as a sentence, or "" if it has none."""
    description = schema.get("description") if isinstance(schema, Mapping) else None
    return f"{before}The policy says: {description}" if description else ""


def locate(place: SourceMap, key: str, value: Any, steps: Iterable[str | int]) -> tuple[Location, str, Any]:
    """Return the nearest known location of a part of a key's value, its path, and the part."""
    location, path = place.locate(key), place.child_path(key)
    for step in steps:
        if isinstance(value, dict) and isinstance(inside := value.get(SOURCE_MAP_KEY), SourceMap):
            place, key = inside, str(step)
            location, path, value = place.locate(key), place.child_path(key), value.get(key)
        elif isinstance(value, list) and isinstance(step, int):
            location, path, value = place.locate(key, step), f"{path}[{step}]", value[step]
    return location, path, value


def brief(message: str) -> str:
    return (message if len(message) <= _MAX_LENGTH else message[:_MAX_LENGTH] + "…").rstrip(".")
