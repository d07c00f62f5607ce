"""The id of an element holds signs that a reference to it cannot have.

Why: References such as `schema/orders/properties/total` are taken apart at their signs, so that an id with
a slash, a dot or a blank can never be found.

Bad:
    slaProperties:
      - {id: fresh/daily, property: latency, value: 2, unit: h}

Good:
    slaProperties:
      - {id: fresh-daily, property: latency, value: 2, unit: h}

Mend: Write letters, digits, `-` and `_`.
"""

import re

from dq.validators.context import sibling_nodes
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

# `StableId` in the JSON Schemas of ODCS 3.1.0 and 3.2.0.
_EARLIER = re.compile(r"[A-Za-z0-9_-]+")
_ID = re.compile(r"[^\s.#/\\@!%&^]+")


def check(contract: Contract, context: Context) -> Faults:
    form = _EARLIER if contract.odcs < (3, 2, 0) else _ID
    for node in (one for siblings in sibling_nodes(contract, context.walk) for one in siblings):
        written = getattr(node, "id", None)
        if written is not None and not form.fullmatch(written):
            mend = f"Write {re.sub(r'[^A-Za-z0-9_-]+', '-', written).strip('-')[:60] or 'a word'!r}."
            yield fault(node, "id", f"id {written[:60]!r} cannot stand in a reference.", mend)


RULE = Rule("element-id-form", Severity.ERROR, __doc__, check, first=(3, 1, 0))
