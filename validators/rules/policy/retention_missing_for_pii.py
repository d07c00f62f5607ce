"""An object holds personal data, and nothing says how long it is kept.

Why: The law wants a limit for personal data, and readers must delete what they copied by the same date.

Bad:
    schema:
      - name: orders
        properties:
          - {name: email, logicalType: string, classification: pii}

Good:
    schema:
      - name: orders
        properties:
          - {name: email, logicalType: string, classification: pii}
    slaProperties:
      - {property: retention, value: 2, unit: y, element: orders}

Mend: Add a service level `retention` for the object.
"""

from dq.contracts.model import SchemaObject, SlaProperty
from dq.validators.rule import Argument, Context, Contract, Faults, Rule, Severity, fault

CLASSES = Argument(
    "classifications", ("pii", "personal", "sensitive"), "The classifications of personal data, in any case."
)


def check(contract: Contract, context: Context) -> Faults:
    classes = {one.lower() for one in context.value(CLASSES)}
    said: set[str] = set()
    for column in context.walk.columns:
        one, prop = column.object, column.property
        if (prop.classification or "").lower() not in classes or one.name in said:
            continue
        said.add(one.name)
        if not any(_covers(sla, one) for sla in contract.sla_properties):
            message = (
                f"{prop.name or 'an item'!r} is {prop.classification}, and {one.name!r} has no retention."
            )
            mend = f"Add '{{property: retention, value: …, unit: d, element: {one.name}}}'."
            needs = (contract.path("slaProperties"),)
            yield fault(prop, "classification", message, mend, needs=needs)


def _covers(sla: SlaProperty, one: SchemaObject) -> bool:
    if sla.property.lower() != "retention":
        return False
    named = [part.strip().split(".")[0] for part in (sla.element or "").split(",") if part.strip()]
    return not named or one.name in named or one.physical_name in named


RULE = Rule("retention-missing-for-pii", Severity.WARNING, __doc__, check, arguments=(CLASSES,))
