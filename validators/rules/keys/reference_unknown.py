"""Relationship to an unknown property.

Why: The foreign key can never be checked, and diagrams drawn from it are wrong.

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

How to fix: Write `object.property`, or `schema/<id>/properties/<id>`.
"""

from dq.validators.context import element_id_paths, is_external, name_paths
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, nearest, violation


def check(contract: Contract, context: Context) -> Violations:
    references = context.walk.references
    if not references:
        return
    names, ids = context.walk.names, element_id_paths(contract)
    objects = {name for name in names if "." not in name}
    relied_on = name_paths(contract)
    for relationship, key, text in references:
        if is_external(text, objects):
            continue
        targets = ids if "/" in text else names
        if text.lstrip("#/") not in targets or ("/" not in text and "." not in text):
            similar = nearest(text, targets)
            hint = f"Did you mean {similar!r}?" if similar and similar != text else "Write object.property."
            message = f"{key} {text!r} is not in this contract."
            yield violation(relationship, key, message, hint, needs=relied_on)


RULE = Rule("reference-unknown", Severity.ERROR, __doc__, check)
