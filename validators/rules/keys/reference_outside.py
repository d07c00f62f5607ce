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

from posixpath import basename

from dq.validators.rule import Entry, Fault, Faults, Registry, Severity, among_others, nearest


def check(one: Entry, registry: Registry) -> Faults:
    for link in one.links:
        holders = registry.holders(link, one.file)
        if len(holders) > 1:
            several = ", ".join(sorted(" ".join(other.identity) for other in holders))
            message = f"{link.key} names {link.text!r}, which several contracts have: {several}."
            mend = f"Name the file: {basename(holders[0].file)}#{link.text}."
            yield Fault(link.at, message, mend, link.path, link.needs)
        elif not holders:
            message = f"{link.key} names {link.text!r}, which no contract that was read has."
            hint = nearest(link.text.split(".")[0], one.objects) if "/" not in link.text else None
            mend = f"Did you mean the object {hint!r}?" if hint else "Correct it, or validate both contracts."
            yield Fault(link.at, message, mend, link.path, link.needs)
        elif not registry.is_key(link, one.file):
            other = " ".join(holders[0].identity)
            message = f"{link.key} names {link.text!r}, which does not stand once in a row of {other}."
            mend = "Write object.property, of a column that is not inside of an array or map."
            yield Fault(link.at, message, mend, link.path, link.needs)


RULE = among_others("reference-outside", Severity.WARNING, __doc__, check)
