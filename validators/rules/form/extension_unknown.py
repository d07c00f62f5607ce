"""A custom property of dq is one that dq does not know, or not at this place.

Why: It is read by nobody, while its author believes that it holds.

Bad:
    schema:
      - name: orders
        customProperties:
          - {property: datset, vendor: dq, value: {additionalColumns: forbid}}

Good:
    schema:
      - name: orders
        customProperties:
          - {property: dataset, vendor: dq, value: {additionalColumns: forbid}}

Mend: Correct the name, or move it: `delivery` stands on a service level, `dataset` on an object, `csv` on a
server, `scope` on a quality rule, `route` on a support channel, `inputs` on the contract or an object.
"""

from collections.abc import Sequence

from dq.contracts import extension
from dq.contracts.model import CustomProperty, Extensible
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, suggestion

# What belongs where, in the words of a message.
_PLACES = {
    "delivery": "a service level",
    "dataset": "an object",
    "csv": "a server",
    "scope": "a quality rule",
    "route": "a support channel",
    "inputs": "the contract or an object",
}


def check(contract: Contract, context: Context) -> Faults:
    nodes: list[tuple[Sequence[str], Sequence[Extensible]]] = [
        (["inputs"], [contract]),
        (["csv"], contract.servers),
        ([], context.walk.properties),
        (["delivery"], contract.sla_properties),
        (["dataset", "inputs"], contract.objects),
        (["scope"], context.walk.qualities),
        (["route"], contract.support),
    ]
    for own, listed in nodes:
        for node in listed:
            for custom in node.custom_properties:
                if custom.vendor == extension.VENDOR and custom.property not in own:
                    yield from _judge(custom, node is contract)


def _judge(custom: CustomProperty, on_contract: bool) -> Faults:
    name = custom.property
    if name.startswith("delivery:") and on_contract:
        return
    if name in _PLACES:
        message = f"{name!r} does not belong here."
        yield fault(custom, "property", message, f"Move it to {_PLACES[name]}.")
        return
    mend = suggestion(name, _PLACES, f"dq knows {', '.join(_PLACES)}.")
    yield fault(custom, "property", f"dq has no custom property {name!r}.", mend)


RULE = Rule("extension-unknown", Severity.ERROR, __doc__, check)
