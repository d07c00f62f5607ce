"""The organisation's own rules and JSON Schemas for custom properties, said in the policy."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dq.contracts.extension import VENDOR
from dq.contracts.model import (
    PLACE,
    Contract,
    CustomProperty,
    Extensible,
    Member,
    Node,
    Place,
    Property,
    Quality,
    Role,
    SchemaObject,
    Server,
    SlaProperty,
    SupportChannel,
)
from dq.contracts.odcs import SERVER_TYPES
from dq.contracts.outcome import Location, Severity
from dq.contracts.pattern import most_steps
from dq.validators.context import Context, Walk
from dq.validators.policy import json_schema
from dq.validators.policy.json_schema import UnusableSchema, vet
from dq.validators.rule import Fault, Rule, shown

if TYPE_CHECKING:
    from jsonschema import ValidationError


# Rules of the organisation's own, said in the policy: select elements, assert what holds for their keys.
#
# A closed table of selections and one of operators, and no expressions: what a policy can ask is what
# stands here.


class Selection(NamedTuple):
    """A kind of element: its model, where a contract has them, and the key that names one in a message."""

    model: type[Extensible]
    of: Callable[[Contract, Walk], Iterable[Extensible]]
    label: str


SELECTIONS: dict[str, Selection] = {
    "contract": Selection(Contract, lambda contract, _: [contract], "id"),
    "object": Selection(SchemaObject, lambda contract, _: contract.objects, "name"),
    "property": Selection(Property, lambda _, walk: walk.properties, "name"),
    "column": Selection(Property, lambda _, walk: [one.property for one in walk.columns if one.top], "name"),
    "quality": Selection(Quality, lambda _, walk: walk.qualities, "name"),
    "server": Selection(Server, lambda contract, _: contract.servers, "server"),
    "slaProperty": Selection(SlaProperty, lambda contract, _: contract.sla_properties, "property"),
    "support": Selection(SupportChannel, lambda contract, _: contract.support, "channel"),
    "role": Selection(Role, lambda contract, _: contract.roles, "role"),
    "member": Selection(Member, lambda contract, _: contract.members(), "username"),
}


class Operator(NamedTuple):
    """A test of a value that is there, and how to say in a mend what it wants."""

    holds: Callable[[Any, Any], bool]
    says: Callable[[Any], str]


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, list)) else 0


OPERATORS: dict[str, Operator] = {
    "exists": Operator(lambda _, wanted: wanted is True, lambda one: "be there" if one else "be left out"),
    "not-empty": Operator(
        lambda value, wanted: bool(value.strip() if isinstance(value, str) else value) is wanted,
        lambda one: "say something" if one else "be empty",
    ),
    "equals": Operator(lambda value, wanted: _same(value, wanted), lambda one: f"be {shown(one)}"),
    "one-of": Operator(
        lambda value, wanted: any(_same(value, one) for one in wanted),
        lambda one: f"be one of {', '.join(shown(each) for each in one)}",
    ),
    "none-of": Operator(
        lambda value, wanted: not any(_same(value, one) for one in wanted),
        lambda one: f"be none of {', '.join(shown(each) for each in one)}",
    ),
    "matches": Operator(
        lambda value, wanted: isinstance(value, str) and _matches(wanted, value),
        lambda one: f"match {one}",
    ),
    "contains": Operator(
        lambda value, wanted: isinstance(value, list) and any(_same(one, wanted) for one in value),
        lambda one: f"contain {shown(one)}",
    ),
    "min-length": Operator(lambda value, wanted: _size(value) >= wanted, lambda one: f"have {one} or more"),
    "max-length": Operator(lambda value, wanted: _size(value) <= wanted, lambda one: f"have {one} at most"),
    "at-least": Operator(
        lambda value, wanted: _number(value) and value >= wanted, lambda one: f"be {one:g} or more"
    ),
    "at-most": Operator(
        lambda value, wanted: _number(value) and value <= wanted, lambda one: f"be {one:g} at most"
    ),
}


# What a search may take in a text of a contract: Python's matcher takes about 50 million steps a second.
_MAX_MATCHER_STEPS = 10_000_000


def _matches(pattern: str, value: str) -> bool:
    """Whether a pattern is in a text; in one that would take too long it is not."""
    steps = most_steps(pattern, 1 << max(len(value) - 1, 1).bit_length())
    return steps is not None and steps <= _MAX_MATCHER_STEPS and re.search(pattern, value) is not None


def _same(value: object, wanted: object) -> bool:
    """Equal and of one type: `true` is not 1."""
    return type(value) is type(wanted) and value == wanted


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Test:
    """One operator on one key, the key as its steps: `logicalTypeOptions.format` has two."""

    key: tuple[str, ...]
    operator: str
    wanted: object

    def holds(self, value: object, absent: bool) -> bool:
        """Whether a value passes; `absent` is the answer for a key without value, but for `exists`."""
        if value is None:
            return self.wanted is False if self.operator == "exists" else absent
        return OPERATORS[self.operator].holds(value, self.wanted)


def keys_of(selection: str) -> set[str]:
    """The keys that an element of this kind may have, as written in a contract."""
    model = SELECTIONS[selection].model
    keys = set(_attributes(model)) - {PLACE}
    if model is Server:
        keys |= {key for kind in SERVER_TYPES.values() for key in (*kind.required, *kind.optional)}
    return keys


def custom_rule(
    id_: str,
    severity: Severity,
    select: str,
    where: tuple[Test, ...],
    asserts: tuple[Test, ...],
    message: str,
    mend: str | None,
) -> Rule:
    """The rule that finds every selected element for which `where` holds and an assertion does not.

    A key that is absent fails every test of `where`, and passes every assertion but `exists` and
    `not-empty`.
    """
    selection = SELECTIONS[select]

    def check(contract: Contract, context: Context) -> Iterator[Fault]:
        for node in selection.of(contract, context.walk):
            if not all(test.holds(_found(node, test.key)[2], absent=False) for test in where):
                continue
            for test in asserts:
                holder, key, value = _found(node, test.key)
                if test.holds(value, absent=test.operator != "not-empty"):
                    continue
                name = ".".join(test.key)
                said = mend or f"{name} must {OPERATORS[test.operator].says(test.wanted)}."
                label = _found(node, (selection.label,))[2]
                subject = f"{select} {label!r}" if label else select
                yield Fault(
                    holder.at(key), f"{subject}: {message}", said, holder.path(key), (holder.path(key),)
                )
                break

    return Rule(id_, severity, None, check)


def _found(node: Node, key: tuple[str, ...]) -> tuple[Node, str, Any]:
    """The element that holds the key, or would, the key there, and its value; None for an absent one."""
    holder, name, value = node, key[0], _value(node, key[0])
    for step in key[1:]:
        if isinstance(value, list) and name == "customProperties":
            own = next((one for one in value if one.property == step), None)
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
    """Key as written -> attribute."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


# The organisation's own fields: JSON Schemas of the policy for the custom properties of each level.
#
# A level's custom properties are judged as one JSON object of names and values, so that a schema can ask
# for some, close the set, and describe each value. Schemas are JSON Schema 2020-12 (`jsonschema`), whose
# `$ref` stays within the schema: nothing is ever fetched. Their size and the work that they take are
# limited.

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
        return brief(str(error)), error.path
    return None


def custom_property_faults(schemas: Schemas, contract: Contract, walk: Walk) -> Iterator[Fault]:
    """What the contract's custom properties lack of these schemas, at the line of each value.

    Where that costs more than a contract may, the last fault says so, and the rest is not judged.
    """
    budget = json_schema.WorkBudget()
    for level, schema in schemas.items():
        selection = SELECTIONS[level]
        for node in selection.of(contract, walk):
            given = _given(node)
            name = getattr(node, selection.label, None)
            subject = f"{level} {name!r}" if name else level
            try:
                with json_schema.within(budget):
                    errors = json_schema.errors(
                        schema, {key: as_json(custom.value) for key, custom in given.items()}
                    )
            except json_schema.WorkLimitExceeded:
                yield _not_evaluated(node, subject, "the policy's schema takes too much work for its values")
                return
            except Exception as error:  # noqa: BLE001  # one guard per contract: the others are judged
                yield _not_evaluated(node, subject, brief(str(error)))
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


def as_json(value: object) -> object:
    """The value as JSON has it: what YAML read as a date is a text there."""
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items() if key != PLACE}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
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
        message = f"{subject}: its custom properties are not as the policy asks: {brief(error.message)}."
        yield Fault(at, message, _says(error.schema) or _MEND, path)


def _of_value(error: ValidationError, given: Mapping[str, CustomProperty]) -> Iterator[Fault]:
    """What is wrong with the value of one custom property."""
    name, *way = error.absolute_path
    custom = given[str(name)]
    at, path, _ = locate(custom.place, "value", custom.value, way)
    message = f"custom property {custom.property!r}: {brief(error.message)}."
    yield Fault(at, message, _says(error.schema) or _MEND, path)


_MEND = "Write what the policy's schema describes."


def _says(schema: object, before: str = "") -> str:
    """What the schema says in its `description`."""
    said = schema.get("description") if isinstance(schema, Mapping) else None
    return f"{before}The policy says: {said}" if said else ""


def locate(place: Place, key: str, value: Any, steps: Iterable[str | int]) -> tuple[Location, str, Any]:
    """Return where a part of a key's value stands, as near as its places tell, its path, and the part."""
    at, path = place.at(key), place.below(key)
    for step in steps:
        if isinstance(value, dict) and isinstance(inside := value.get(PLACE), Place):
            place, key = inside, str(step)
            at, path, value = place.at(key), place.below(key), value.get(key)
        elif isinstance(value, list) and isinstance(step, int):
            at, path, value = place.at(key, step), f"{path}[{step}]", value[step]
    return at, path, value


def brief(message: str) -> str:
    return (message if len(message) <= _SHOWN else message[:_SHOWN] + "…").rstrip(".")
