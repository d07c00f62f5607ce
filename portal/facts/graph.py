"""What is made from what, among all products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dq.contracts.lineage import DataObject, inputs_of
from dq.portal.facts.card import Card

Edge = tuple[str, str, str]
Edges = Mapping[str, tuple[Edge, ...]]
"""From a contract's key to (own object, the other's key, its object), in order."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Inputs and users of products, one step away."""

    made_from: Edges = field(default_factory=dict)
    used_by: Edges = field(default_factory=dict)

    def around(self, key: str) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
        """All that the page of a product shows of it."""
        return self.made_from.get(key, ()), self.used_by.get(key, ())


def graph(cards: Iterable[Card]) -> Graph:
    """The graph of these products."""
    declared = inputs_of(one.outline for one in cards if one.outline is not None and one.readable)
    made_from: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    used_by: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for me, others in declared.items():
        for other in others:
            _note(made_from, me, other)
            _note(used_by, other, me)
    return Graph(_sorted(made_from), _sorted(used_by))


def _note(edges: dict[str, set[tuple[str, str, str]]], one: DataObject, other: DataObject) -> None:
    edges[one[0]].add((one[1], *other))


def _sorted(edges: Mapping[str, set[tuple[str, str, str]]]) -> Edges:
    return {key: tuple(sorted(found)) for key, found in edges.items()}
