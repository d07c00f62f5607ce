"""No silent skip: every clause of an object is enforced, documented only, or not evaluated, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dq.contracts.extension import delivery
from dq.contracts.model import Contract, Element, Property, Quality, SchemaObject, SlaProperty
from dq.contracts.node import Node
from dq.contracts.outcome import Location
from dq.dataquality.clause import Clause
from dq.dataquality.column import columns
from dq.dataquality.library import metric

JsonObject = dict[str, object]


class State(StrEnum):
    ENFORCED = "enforced"
    DOCUMENTED = "documented only"
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class Account:
    """What becomes of one clause. `reason` names the check that enforces it, or says why none does."""

    path: str
    object: str
    property: str
    clause: str
    state: State
    reason: str
    at: Location

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "clause": self.path,
            "object": self.object,
            "property": self.property or None,
            "says": self.clause,
            "state": self.state.value,
            "reason": self.reason,
            "at": str(self.at),
        }


_D, _N = State.DOCUMENTED, State.NOT_EVALUATED
# Keys that describe and promise nothing about the data, and those whose parts are accounted by themselves.
SILENT = frozenset(
    [
        "id",
        "name",
        "description",
        "businessName",
        "tags",
        "authoritativeDefinitions",
        "synonyms",
        "customProperties",
        "deprecated",
        "examples",
        "properties",
        "items",
        "map",
        "quality",
        "relationships",
        "logicalTypeOptions",
        "context",
        "dataGranularityDescription",
    ]
)
# What no check enforces, by key. A key that stands neither here, nor among the silent ones, nor in a clause
# of a check is "not evaluated": a later version of the standard cannot slip through.
REASONS: dict[str, tuple[State, str]] = {
    "physicalName": (_D, "it says where the data is, and is used to find it"),
    "physicalType": (_N, "it is no type of Spark, so that no column can be compared with it"),
    "logicalType": (_D, "it says what kind of thing this is"),
    "classification": (_D, "it masks samples; data does not show how sensitive it is"),
    "encryptedName": (_D, "it names another column; whether that one is encrypted cannot be seen"),
    "criticalDataElement": (_D, "it is a mark for readers"),
    "semanticType": (_D, "it is a mark for readers"),
    "transformSourceObjects": (_D, "it tells where the values come from"),
    "transformLogic": (_D, "it tells how the values are made"),
    "transformDescription": (_D, "it tells how the values are made"),
    "partitioned": (_D, "it is compared with the catalog by 'dq register', and used to read partitions"),
    "partitionKeyPosition": (_D, "it is compared with the catalog by 'dq register'"),
    "primaryKeyPosition": (_D, "it orders the columns of the key"),
    "timezone": (_D, "it tells how bounds of timestamps are read"),
    "defaultTimezone": (_D, "it tells how bounds of timestamps are read"),
    "required": (_N, "no check of this version tests a list of required fields; use required on each field"),
    "dimensions": (_N, "no check of this version tests the length of vectors; use minItems and maxItems"),
    "elementType": (_N, "no check of this version tests vectors; use items with a type"),
    "distanceMetric": (_D, "it tells how vectors are compared"),
    "embeddingModel": (_D, "it tells how vectors are made"),
    "embeddingModelVersion": (_D, "it tells how vectors are made"),
    "normalized": (_N, "no check of this version tests the norm of vectors"),
}
# The same key means something else on an object.
_OF_OBJECTS = {"physicalType": (_D, "it says whether this is a table, a view or a topic")}
_UNKNOWN = (_N, "no check of this version knows it")


def accounts(contract: Contract, one: SchemaObject, clauses: Sequence[Clause]) -> tuple[Account, ...]:
    """The account of every clause of an object, in the order of the file.

    `clauses` are those that the shelf found there (`kind.clauses_of`).
    """
    enforced: dict[str, Clause] = {}
    for clause in clauses:
        for path in (clause.path, *clause.covers):
            enforced.setdefault(path, clause)
    listed = [_object_wide(clause) for clause in clauses if clause.path == one.path("additionalColumns")]
    listed += _element(one, one.name, "", enforced)
    for prop, column in columns(one):
        listed += _element(prop, one.name, str(column), enforced)
    listed += _service_levels(contract, one)
    return tuple(sorted(listed, key=lambda account: account.at))


def _object_wide(clause: Clause) -> Account:
    return Account(clause.path, clause.object, "", "additionalColumns", *_state(clause), clause.at)


def _state(clause: Clause) -> tuple[State, str]:
    if clause.documented:
        return _D, clause.documented
    reason = clause.refused or clause.left_out
    return (_N, reason) if reason else (State.ENFORCED, clause.check)


def _element(element: Element, name: str, shown: str, enforced: dict[str, Clause]) -> Iterator[Account]:
    yield from _keys(element, name, shown, enforced)
    if isinstance(element, Property) and element.logical_type_options is not None:
        yield from _keys(element.logical_type_options, name, shown, enforced)
    for relation in element.relationships:
        state, reason = _state(enforced[relation.path()]) if relation.path() in enforced else _UNKNOWN
        to = relation.to if isinstance(relation.to, str) else ", ".join(relation.to or ())
        yield Account(relation.path(), name, shown, f"relationship: {to}", state, reason, relation.at())
    for quality in element.quality:
        state, reason = _rule(quality, enforced.get(quality.path()))
        said = quality.name or metric(quality) or quality.type
        yield Account(quality.path(), name, shown, f"quality: {said}", state, reason, quality.at())


def _keys(node: Node, name: str, shown: str, enforced: dict[str, Clause]) -> Iterator[Account]:
    reasons = {**REASONS, **_OF_OBJECTS} if isinstance(node, SchemaObject) else REASONS
    for key in node.place.keys:
        value = getattr(node, _attribute(node, key), None)
        # `required: false` promises nothing.
        if key in SILENT or value is None or value is False or value == []:
            continue
        clause = enforced.get(node.path(key))
        state, reason = _state(clause) if clause else reasons.get(key, _UNKNOWN)
        yield Account(node.path(key), name, shown, key, state, reason, node.at(key))


def _attribute(node: Node, key: str) -> str:
    return next((name for name, info in type(node).model_fields.items() if info.alias == key), key)


def _rule(quality: Quality, clause: Clause | None) -> tuple[State, str]:
    if clause is not None:
        return _state(clause)
    if quality.type == "text":
        return _D, "it is prose"
    if quality.type == "custom":
        return _N, f"rules of the engine {quality.engine!r} are not run"
    named = metric(quality)
    return _N, f"the metric {named!r} is not one that is known here" if named else "it names no metric"


def _service_levels(contract: Contract, one: SchemaObject) -> Iterator[Account]:
    """Service levels that name the object or a property of it, and those of the whole contract."""
    for sla in contract.sla_properties:
        element = sla.element or contract.sla_default_element
        named = {part.strip().split(".")[0] for part in element.split(",")} if element else {one.name}
        if not named & {one.name, one.id, one.column}:
            continue
        state, reason = _service_level(contract, sla)
        said = f"service level: {sla.property}"
        yield Account(sla.path(), one.name, "", said, state, reason, sla.at())


# Service levels about people and plans; data shows nothing of them.
_HUMAN = frozenset(
    [
        "availability",
        "throughput",
        "errorrate",
        "generalavailability",
        "endofsupport",
        "endoflife",
        "timetodetect",
        "timetonotify",
        "timetorepair",
    ]
)


def _service_level(contract: Contract, sla: SlaProperty) -> tuple[State, str]:
    terms, findings = delivery(contract, sla)
    if terms is not None and not findings:
        return State.ENFORCED, "dq watch"
    if findings:
        return _N, f"its delivery terms: {findings[0].message}"
    if sla.property.lower() in _HUMAN:
        return _D, "the data does not show it"
    return _N, "no check of this version tests it; a delivery with a schedule is watched by 'dq watch'"
