"""Library rules of ODCS (`quality` with a `metric`): where they stand and what arguments they bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.shared.source_map import plain
from dq.contracts.versions import EARLIER_METRICS
from dq.dataquality.clauses.clause import Clause, RowTest, asking, refuse
from dq.dataquality.clauses.quality_rule import of_quality
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.threshold import Unusable


def metric(quality: Quality) -> str | None:
    """The library metric that a rule asks for, by its name of ODCS 3.1; None for rules of another type."""
    if quality.type != "library":
        return None
    named = quality.metric or quality.rule
    return EARLIER_METRICS.get(named, named) if named else None


def arguments(quality: Quality, *known: str) -> dict[str, object]:
    """The rule's arguments. Raises Unusable for one that the metric does not take."""
    given = plain(quality.arguments)
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise Unusable("its arguments must be a mapping")
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise Unusable(f"the argument {name!r} is not one of this metric; {takes}")
    return given


def listed(value: object, name: str) -> list[object]:
    """An argument that must be a list with something in it."""
    if not isinstance(value, list) or not value:
        raise Unusable(f"the argument {name!r} must be a list of values")
    return value


def counting(
    check: str, one: SchemaObject, quality: Quality, column: Column, complaint: str, breaks: Predicate
) -> Clause:
    """The clause of a rule that counts rows of one property by a predicate."""
    return asking(of_quality(check, one, quality, str(column)), RowTest(breaks, complaint))


def clauses_by(
    check: str, wanted: str, make: Callable[[SchemaObject, Quality, Property, Column], Clause]
) -> Callable[[Contract, SchemaObject], Iterator[Clause]]:
    """How a check finds its rules: those with this metric on properties; of one that is Unusable, why."""

    def found(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
        rules = ((rule, prop, column) for prop, column in columns(one) for rule in prop.quality)
        for quality, prop, column in rules:
            if metric(quality) != wanted:
                continue
            try:
                yield make(one, quality, prop, column)
            except Unusable as error:
                yield refuse(of_quality(check, one, quality, str(column)), str(error))

    return found
