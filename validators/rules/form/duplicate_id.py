"""Duplicate id in a list.

Why: References, service levels and their history identify an element by its id, across versions of the
contract.

Bad:
    slaProperties:
      - {id: fresh, property: latency, value: 2, unit: h}
      - {id: fresh, property: retention, value: 1, unit: y}

Good:
    slaProperties:
      - {id: fresh, property: latency, value: 2, unit: h}
      - {id: kept, property: retention, value: 1, unit: y}

How to fix: Give each element of a list its own id.
"""

from collections.abc import Sequence

from dq.contracts.model import Node
from dq.validators.context import confusable_note, normalize_name, sibling_nodes
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, slo_finding_check, violation

# Deliveries without an id are identified by their property; duplicate ids are found among the siblings.
_PROMISES = slo_finding_check("duplicate-id")


def check(contract: Contract, context: Context) -> Violations:
    for siblings in sibling_nodes(contract, context.walk):
        if len(siblings) > 1:
            yield from _duplicates(siblings)
    yield from (violation for violation in _PROMISES(contract, context) if not violation.path.endswith(".id"))


def _duplicates(siblings: Sequence[Node]) -> Violations:
    by_id: dict[str, Node] = {}
    for node in siblings:
        if not node.has("id"):
            continue
        id_ = str(getattr(node, "id", ""))
        first = by_id.setdefault(normalize_name(id_), node)
        if first is not node:
            line = f"line {first.locate('id').line}{confusable_note(id_, str(getattr(first, 'id', '')))}"
            message = f"id {id_!r} is already used by the element in {line}."
            yield violation(node, "id", message, "Give it its own id.")


RULE = Rule("duplicate-id", Severity.ERROR, __doc__, check)
