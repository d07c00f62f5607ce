"""The name of a clause by ids and names, which stays when a column moves; its path is by positions.

`schema[0].properties[4].required` is `schema/orders/properties/state/required`, in the manner in which ODCS
refers to what has an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dq.contracts.model import Node, Property, Relationship, SchemaObject


def namer(one: SchemaObject) -> Callable[[str], str]:
    """What names the paths of an object's clauses.

    Of each part the id counts, else the name; of a relationship what it leads to. What has neither, or shares
    it with another one beside it, keeps its position; so does what is called like a position.
    """
    known = {one.path(): f"schema/{one.id or one.name}"}
    _below(one, known)

    def name(path: str) -> str:
        # The nearest node that the path lies in; a table of a thousand columns asks for each of them.
        node = path
        while node and node not in known:
            node = node[: max(node.rfind("."), node.rfind("["), 0)]
        if not node:
            return path
        rest = path[len(node) :].replace("[", ".").replace("]", "")
        return known[node] + rest.replace(".", "/")

    return name


def _below(element: SchemaObject | Property, known: dict[str, str]) -> None:
    above = known[element.path()]
    _label(known, f"{above}/properties", [(one, one.id or one.name) for one in element.properties])
    _label(known, f"{above}/quality", [(one, one.id or one.name) for one in element.quality])
    _label(known, f"{above}/relationships", [(one, _leads_to(one)) for one in element.relationships])
    children = list(element.properties)
    if isinstance(element, Property):
        children = list(element.children())
        if element.items is not None:
            known[element.items.path()] = f"{above}/items"
        if element.map is not None:
            known[element.map.key.path()] = f"{above}/map/key"
            known[element.map.value.path()] = f"{above}/map/value"
    for child in children:
        _below(child, known)


def _label(known: dict[str, str], above: str, labelled: Sequence[tuple[Node, str | None]]) -> None:
    times = Counter(label for _, label in labelled)
    for index, (node, label) in enumerate(labelled):
        own = label and times[label] == 1 and not label.isdecimal()
        known[node.path()] = f"{above}/{label if own else index}"


def _leads_to(one: Relationship) -> str | None:
    to = [one.to] if isinstance(one.to, str) else one.to or []
    return one.id or ",".join(to) or None
