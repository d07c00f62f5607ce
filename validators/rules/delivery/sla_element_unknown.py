"""Service level for an unknown object or property.

Why: Nothing is measured for it, so the service level silently has no effect. For a delivery this is an error,
for other service levels a warning, as ODCS does not require that an element is part of the schema.

Bad:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: order
        schedule: "0 6 * * *"
        customProperties: [{property: delivery, vendor: dq, value: {grace: 1h}}]

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h, element: orders}

How to fix: Write the name of an object, or `object.property`; separate multiple names with commas.
"""

from dq.contracts import extension
from dq.contracts.model import Node, SlaProperty
from dq.validators.context import name_paths
from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    slo_finding_check,
    suggestion,
    violation,
)


def check(contract: Contract, context: Context) -> Violations:
    if not contract.sla_default_element:
        # A delivery must name one object; other service levels may apply to all.
        unnamed = {sla.path("element") for sla in contract.sla_properties if not sla.element}
        yield from (
            violation for violation in _check_deliveries(contract, context) if violation.path in unnamed
        )
    if not contract.objects:
        # Nothing can be misspelt where nothing is named.
        return
    if not contract.sla_default_element and not any(sla.element for sla in contract.sla_properties):
        return
    names = context.walk.names
    references: list[tuple[Node, str, str | None]] = [
        (sla, "element", sla.element) for sla in contract.sla_properties
    ]
    references.append((contract, "slaDefaultElement", contract.sla_default_element))
    wrong = [
        (node, key, name)
        for node, key, elements in references
        for name in (part.strip() for part in (elements or "").split(","))
        if name and name not in names
    ]
    relied_on = name_paths(contract) if wrong else ()
    for node, key, name in wrong:
        hint = suggestion(name, names, "Write an object, or object.property.")
        doubt = not (isinstance(node, SlaProperty) and extension.delivery(contract, node)[0])
        yield violation(
            node, key, f"no object or property named {name!r}.", hint, needs=relied_on, doubt=doubt
        )


_check_deliveries = slo_finding_check("sla-element-unknown")
RULE = Rule("sla-element-unknown", Severity.ERROR, __doc__, check)
