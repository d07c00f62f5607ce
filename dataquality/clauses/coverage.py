"""No silent skip: every clause of an object is enforced, documented only, or not evaluated, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from dq.contracts.diff.level import name_of
from dq.contracts.extension import delivery
from dq.contracts.measures.read import measure_named
from dq.contracts.model import Contract, Element, Property, Quality, SchemaObject, SlaProperty
from dq.contracts.node import Node
from dq.contracts.shared.outcome import Location
from dq.dataquality.clauses.age import elements
from dq.dataquality.clauses.clause import Clause, NoResult
from dq.dataquality.clauses.documented import LEVELS, OF_OBJECTS, REASONS, SILENT
from dq.dataquality.clauses.library import metric
from dq.dataquality.model.column import columns

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
_UNKNOWN = (_N, "no check of this version knows it")


def accounts(contract: Contract, one: SchemaObject, clauses: Sequence[Clause]) -> tuple[Account, ...]:
    """The account of every clause of an object, in the order of the file.

    `clauses` are those that the shelf found there (`kind.clauses_of`).
    """
    enforced: dict[str, Clause] = {}
    for clause in clauses:
        for path in (clause.path, *clause.covers):
            enforced.setdefault(path, clause)
    listed = [
        Account(clause.path, clause.object, "", "additionalColumns", *_state(clause), clause.at)
        for clause in clauses
        if clause.path == one.path("additionalColumns")
    ]
    listed += _element(one, one.name, "", enforced)
    for prop, column in columns(one):
        listed += _element(prop, one.name, str(column), enforced)
    listed += _service_levels(contract, one, enforced)
    return tuple(sorted(listed, key=lambda account: account.at))


def _state(clause: Clause) -> tuple[State, str]:
    if isinstance(clause.ask, NoResult):
        return _D if clause.ask.proven else _N, clause.ask.reason
    return (_N, clause.refused) if clause.refused else (State.ENFORCED, clause.check)


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
        measured = measure_named(quality)
        own = measured.name if measured else quality.type
        said = quality.name or metric(quality) or own
        yield Account(quality.path(), name, shown, f"quality: {said}", state, reason, quality.at())


def _keys(node: Node, name: str, shown: str, enforced: dict[str, Clause]) -> Iterator[Account]:
    reasons = {**REASONS, **OF_OBJECTS} if isinstance(node, SchemaObject) else REASONS
    for key in node.place.keys:
        value = getattr(node, _attributes(type(node)).get(key, key), None)
        clause = enforced.get(node.path(key))
        # `required: false` promises nothing, `timezone: false` does.
        if key in SILENT or value is None or (clause is None and (value is False or value == [])):
            continue
        state, reason = _state(clause) if clause else _told(reasons, key)
        yield Account(node.path(key), name, shown, key, state, reason, node.at(key))


def _told(reasons: Mapping[str, tuple[str, str]], key: str) -> tuple[State, str]:
    state, reason = reasons.get(key, _UNKNOWN)
    return State(state), reason


@cache
def _attributes(kind: type[Node]) -> dict[str, str]:
    """The key of a contract -> the attribute that holds it, where they differ."""
    return {info.alias: name for name, info in kind.model_fields.items() if info.alias}


def _rule(quality: Quality, clause: Clause | None) -> tuple[State, str]:
    if clause is not None:
        return _state(clause)
    if quality.type == "text":
        return _D, "it is prose"
    if quality.type == "custom":
        return _N, f"rules of the engine {quality.engine!r} are not run"
    named = metric(quality)
    return _N, f"the metric {named!r} is not one that is known here" if named else "it names no metric"


def service_levels(contract: Contract, one: SchemaObject, clauses: Sequence[Clause]) -> tuple[Account, ...]:
    """The accounts of the service levels that name the object or a property of it alone."""
    enforced = {path: clause for clause in clauses for path in (clause.path, *clause.covers)}
    return tuple(_service_levels(contract, one, enforced))


def _service_levels(contract: Contract, one: SchemaObject, enforced: dict[str, Clause]) -> Iterator[Account]:
    """Service levels that name the object or a property of it, and those of the whole contract."""
    for sla in contract.sla_properties:
        clause = enforced.get(sla.path())
        if clause is None and not elements(contract, one, sla):
            continue
        state, reason = _service_level(contract, sla, clause)
        shown = clause.property if clause else ""
        yield Account(sla.path(), one.name, shown, f"service level: {sla.property}", state, reason, sla.at())


def _service_level(contract: Contract, sla: SlaProperty, clause: Clause | None) -> tuple[State, str]:
    terms, findings = delivery(contract, sla)
    if findings:
        return _N, f"its delivery terms: {findings[0].message}"
    tested = _state(clause) if clause is not None else None
    if terms is not None:
        both = tested is not None and tested[0] is State.ENFORCED
        return State.ENFORCED, f"dq watch, {clause.check}" if both and clause else "dq watch"
    if tested is not None:
        return tested
    name = name_of(sla.property)
    return _told(LEVELS, name)
