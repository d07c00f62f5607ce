"""Relationship to a contract that was not read.

Why: dq cannot tell whether the target exists, and does not fetch anything from the network to find out.

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

How to fix: Correct the name, or also validate the folder with the other contract.
"""

from posixpath import basename

from dq.validators.rule import (
    ContractEntry,
    Registry,
    Severity,
    Violation,
    Violations,
    nearest,
    registry_rule,
)


def check(entry: ContractEntry, registry: Registry) -> Violations:
    for reference in entry.references:
        holders = registry.holders(reference, entry.file)
        if len(holders) > 1:
            several = ", ".join(sorted(" ".join(other.identity) for other in holders))
            message = f"{reference.key} {reference.text!r} is ambiguous; it is in {several}."
            hint = (
                "Read only the contract to compare with."
                if reference.contract
                else f"Name the file: {basename(holders[0].file)}#{reference.text}."
            )
            yield Violation(reference.location, message, hint, reference.path, reference.needs)
        elif not holders:
            message = f"{reference.key} {reference.text!r} is not in any contract that was read."
            similar = (
                nearest(reference.text.split(".")[0], entry.objects) if "/" not in reference.text else None
            )
            hint = (
                f"Did you mean the object {similar!r}?"
                if similar
                else "Correct it, or validate both contracts."
            )
            yield Violation(reference.location, message, hint, reference.path, reference.needs)
        elif not registry.is_key(reference, entry.file):
            other = " ".join(holders[0].identity)
            message = (
                f"{reference.key} {reference.text!r} does not have exactly one value per row of {other}."
            )
            hint = "Write object.property for a column outside of arrays and maps."
            yield Violation(reference.location, message, hint, reference.path, reference.needs)


RULE = registry_rule("reference-outside", Severity.WARNING, __doc__, check)
