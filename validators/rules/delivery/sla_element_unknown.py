"""A service level speaks about an object or property that the contract does not have.

Why: Nothing is measured for it, and the promise is silently void. Of a delivery it is an error, of every
other service level a warning: ODCS does not say that an element must be part of the schema.

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

Mend: Write the name of an object, or `object.property`; separate several by commas.
"""

from dq.contracts import extension
from dq.contracts.model import Node, SlaProperty
from dq.validators.context import name_paths
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, of_promise, suggestion


def check(contract: Contract, context: Context) -> Faults:
    if not contract.sla_default_element:
        # A delivery must speak about one object; other service levels may speak about all.
        unnamed = {sla.path("element") for sla in contract.sla_properties if not sla.element}
        yield from (one for one in _of_deliveries(contract, context) if one.path in unnamed)
    if not contract.objects:
        # Nothing can be misspelt where nothing is named.
        return
    if not contract.sla_default_element and not any(sla.element for sla in contract.sla_properties):
        return
    known = context.walk.names
    named: list[tuple[Node, str, str | None]] = [
        (sla, "element", sla.element) for sla in contract.sla_properties
    ]
    named.append((contract, "slaDefaultElement", contract.sla_default_element))
    wrong = [
        (node, key, name)
        for node, key, written in named
        for name in (part.strip() for part in (written or "").split(","))
        if name and name not in known
    ]
    relied_on = name_paths(contract) if wrong else ()
    for node, key, name in wrong:
        mend = suggestion(name, known, "Write an object, or object.property.")
        doubt = not (isinstance(node, SlaProperty) and extension.delivery(contract, node)[0])
        yield fault(node, key, f"the contract has no element {name!r}.", mend, needs=relied_on, doubt=doubt)


_of_deliveries = of_promise("sla-element-unknown")
RULE = Rule("sla-element-unknown", Severity.ERROR, __doc__, check)
