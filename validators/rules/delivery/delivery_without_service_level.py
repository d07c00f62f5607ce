"""Top-level delivery terms without a matching service level.

Why: In ODCS 3.0 and 3.1, delivery terms are a custom property of the contract, `delivery:<id>`. If no service
level has that id, the delivery is not watched.

Bad:
    slaProperties:
      - {id: daily, property: frequency, value: 1, unit: d, element: orders}
    customProperties:
      - {property: "delivery:dayly", value: {grace: 45m}}

Good:
    slaProperties:
      - {id: daily, property: frequency, value: 1, unit: d, element: orders, schedule: "0 6 * * *"}
    customProperties:
      - {property: "delivery:daily", value: {grace: 45m}}

How to fix: Use the `id` of an entry of `slaProperties`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, unmatched_terms, violation


def check(contract: Contract, _context: Context) -> Violations:
    for custom, id_, similar in unmatched_terms(contract):
        hint = (
            f"Did you mean '{custom.property.partition(':')[0]}:{similar}'?"
            if similar
            else "Use the id of a service level."
        )
        needs = tuple(sla.path("id") for sla in contract.sla_properties)
        yield violation(custom, "property", f"no service level has the id {id_!r}.", hint, needs=needs)


RULE = Rule("delivery-without-service-level", Severity.ERROR, __doc__, check)
