"""Delivery terms at the top of a contract belong to no service level.

Why: In ODCS 3.0 and 3.1 they stand apart, under `delivery:<id>`. With another id nobody watches them.

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

Mend: Write the `id` of one of the entries of `slaProperties`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, unmatched_terms


def check(contract: Contract, _context: Context) -> Faults:
    for custom, id_, hint in unmatched_terms(contract):
        mend = f"Did you mean 'delivery:{hint}'?" if hint else "Write the id of a service level."
        needs = tuple(sla.path("id") for sla in contract.sla_properties)
        yield fault(custom, "property", f"no service level has the id {id_!r}.", mend, needs=needs)


RULE = Rule("delivery-without-service-level", Severity.ERROR, __doc__, check)
