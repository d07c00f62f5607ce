"""Unknown or misplaced custom property with `vendor: dq`.

Why: It is ignored, although its author believes that it is in effect.

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

How to fix: Correct the name, or move it: `delivery` and `retention` belong to a service level, `dataset` to
an object, `csv` and `layout` to a server, `scope` to a quality rule, `identity` to a property, `route` to a
support channel, `inputs` to the contract or an object.
"""

from collections.abc import Sequence

from dq.contracts import extension
from dq.contracts.model import CustomProperty, Extensible
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, suggestion, violation

# Custom property -> the element that it belongs to, as named in messages.
_PLACES = {
    "delivery": "a service level",
    "dataset": "an object",
    "csv": "a server",
    "layout": "a server",
    "scope": "a quality rule",
    "route": "a support channel",
    "identity": "a property",
    "retention": "a service level",
    "inputs": "the contract or an object",
}


def check(contract: Contract, context: Context) -> Violations:
    nodes: list[tuple[Sequence[str], Sequence[Extensible]]] = [
        (["inputs"], [contract]),
        (["csv", "layout"], contract.servers),
        (["identity"], context.walk.properties),
        (extension.SLA_NAMES, contract.sla_properties),
        (["dataset", "inputs"], contract.objects),
        (["scope"], context.walk.qualities),
        (["route"], contract.support),
    ]
    for allowed, elements in nodes:
        for node in elements:
            for custom in node.custom_properties:
                if custom.vendor == extension.VENDOR and custom.property not in allowed:
                    yield from _check_property(custom, node is contract)


def _check_property(custom: CustomProperty, on_contract: bool) -> Violations:
    name = custom.property
    if on_contract and name.startswith(tuple(f"{level}:" for level in extension.SLA_NAMES)):
        return
    if name in _PLACES:
        message = f"{name!r} is not allowed here."
        yield violation(custom, "property", message, f"Move it to {_PLACES[name]}.")
        return
    hint = suggestion(name, _PLACES, f"dq supports {', '.join(_PLACES)}.")
    yield violation(custom, "property", f"unknown dq custom property {name!r}.", hint)


RULE = Rule("extension-unknown", Severity.ERROR, __doc__, check)
