"""Element id with characters that references cannot contain.

Why: References, e.g. `schema/orders/properties/total`, are split at separators, so an id with a slash, a dot
or a space can never be resolved.

Bad:
    slaProperties:
      - {id: fresh/daily, property: latency, value: 2, unit: h}

Good:
    slaProperties:
      - {id: fresh-daily, property: latency, value: 2, unit: h}

How to fix: Use letters, digits, `-` and `_`.
"""

import re

from dq.validators.context import sibling_nodes
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

# `StableId` in the JSON Schemas of ODCS 3.1.0 and 3.2.0.
_EARLIER = re.compile(r"[A-Za-z0-9_-]+")
_ID = re.compile(r"[^\s.#/\\@!%&^]+")


def check(contract: Contract, context: Context) -> Violations:
    form = _EARLIER if contract.odcs < (3, 2, 0) else _ID
    for node in (sibling for siblings in sibling_nodes(contract, context.walk) for sibling in siblings):
        id_ = getattr(node, "id", None)
        if id_ is not None and not form.fullmatch(id_):
            hint = f"Write {re.sub(r'[^A-Za-z0-9_-]+', '-', id_).strip('-')[:60] or 'a word'!r}."
            yield violation(
                node, "id", f"id {id_[:60]!r} has characters that a reference cannot contain.", hint
            )


RULE = Rule("element-id-form", Severity.ERROR, __doc__, check, first=(3, 1, 0))
