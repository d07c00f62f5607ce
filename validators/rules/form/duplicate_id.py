"""Two elements of one list have the same id.

Why: An id is what references, service levels and their history hold on to, across versions of the contract.

Bad:
    slaProperties:
      - {id: fresh, property: latency, value: 2, unit: h}
      - {id: fresh, property: retention, value: 1, unit: y}

Good:
    slaProperties:
      - {id: fresh, property: latency, value: 2, unit: h}
      - {id: kept, property: retention, value: 1, unit: y}

Mend: Give each element of a list an id of its own.
"""

from collections.abc import Sequence

from dq.contracts.model import Node
from dq.validators.context import alike, note, sibling_nodes
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, of_promise

# Deliveries without an id go by their property; those with the same id stand among the siblings.
_PROMISES = of_promise("duplicate-id")


def check(contract: Contract, context: Context) -> Faults:
    for siblings in sibling_nodes(contract, context.walk):
        if len(siblings) > 1:
            yield from _twins(siblings)
    yield from (one for one in _PROMISES(contract, context) if not one.path.endswith(".id"))


def _twins(siblings: Sequence[Node]) -> Faults:
    seen: dict[str, Node] = {}
    for one in siblings:
        if not one.has("id"):
            continue
        id_ = str(getattr(one, "id", ""))
        first = seen.setdefault(alike(id_), one)
        if first is not one:
            line = f"line {first.at('id').line}{note(id_, str(getattr(first, 'id', '')))}"
            message = f"id {id_!r} is that of the element in {line} already."
            yield fault(one, "id", message, "Give it an id of its own.")


RULE = Rule("duplicate-id", Severity.ERROR, __doc__, check)
