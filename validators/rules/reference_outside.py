"""A relationship leaves the contract, and what it refers to is not among the contracts that were read.

Why: Nobody can tell whether the other end exists. Nothing is fetched from the network to find out.

Bad:
    version: 2.0.0
    schema:
      - name: orders
        properties:
          - name: customer_id
            relationships: [{to: customers.customer_id}]

Good:
    version: 2.0.0
    schema:
      - name: orders
        properties:
          - name: customer_id
            relationships: [{to: customers.customer_id}]
      - name: customers
        properties:
          - {name: customer_id, logicalType: string}

Mend: Correct the name, or validate the folder that holds the other contract as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from dq.contracts.form import nearest
from dq.contracts.model import Contract
from dq.contracts.outcome import Severity
from dq.validators import elements
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, Scope, fault


def check(contract: Contract, context: Context) -> Iterator[Fault]:
    written = list(elements.references(context.walk, contract))
    if not written:
        return
    own = {name for one in contract.objects for name in (one.name, one.id) if name}
    for reference in written:
        if elements.leaves(reference.text, own) and not _resolved(reference.text, context):
            message = f"{reference.key} names {reference.text!r}, which no contract that was read has."
            hint = nearest(reference.text.split(".")[0], own) if "/" not in reference.text else None
            mend = f"Did you mean the object {hint!r}?" if hint else "Correct it, or validate both contracts."
            needs = elements.name_paths(contract)
            yield fault(reference.relationship, reference.key, message, mend, needs=needs)


def _resolved(text: str, context: Context) -> bool:
    if "#" in text:
        file, _, path = text.partition("#")
        folder = PurePosixPath(context.file).parent
        other = context.registry.by_file.get(str(folder / file)) or context.registry.by_file.get(file)
        return other is not None and path.lstrip("/") in elements.by_id(other)
    others = context.registry.by_object.get(text.split(".")[0], ())
    return any(text in elements.dotted(other) for other in others)


RULE = Rule("reference-outside", Severity.WARNING, __doc__, check, scope=Scope.REGISTRY)
