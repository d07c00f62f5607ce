"""A relationship refers to a property that its object in this contract does not have.

Why: The foreign key can never be checked, and the picture that readers draw from it is wrong.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}
          - name: replaces
            relationships: [{to: orders.order_nr}]

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}
          - name: replaces
            relationships: [{to: orders.order_id}]

Mend: Write `object.property`, or `schema/<id>/properties/<id>`.
"""

from dq.validators.context import by_id, leaves, name_paths
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest


def check(contract: Contract, context: Context) -> Faults:
    written = context.walk.references
    if not written:
        return
    names, ids = context.walk.names, by_id(contract)
    objects = {name for name in names if "." not in name}
    relied_on = name_paths(contract)
    for relationship, key, text in written:
        if leaves(text, objects):
            continue
        known = ids if "/" in text else names
        if text.lstrip("#/") not in known or ("/" not in text and "." not in text):
            hint = nearest(text, known)
            mend = f"Did you mean {hint!r}?" if hint and hint != text else "Write object.property."
            message = f"{key} names {text!r}, which this contract does not have."
            yield fault(relationship, key, message, mend, needs=relied_on)


RULE = Rule("reference-unknown", Severity.ERROR, __doc__, check)
