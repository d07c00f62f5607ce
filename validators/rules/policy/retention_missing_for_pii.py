"""Personal data without a retention period.

Why: The law requires a time limit for personal data, and readers must delete their copies by the same date.

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

How to fix: Add a service level `retention` for the object.
"""

from dq.contracts.model import SchemaObject, SlaProperty
from dq.validators.rule import Argument, Context, Contract, Rule, Severity, Violations, violation

CLASSES = Argument(
    "classifications", ("pii", "personal", "sensitive"), "Classifications of personal data, case-insensitive."
)


def check(contract: Contract, context: Context) -> Violations:
    classes = {word.lower() for word in context.value(CLASSES)}
    reported: set[str] = set()
    for column in context.walk.columns:
        schema_object, prop = column.object, column.property
        if (prop.classification or "").lower() not in classes or schema_object.name in reported:
            continue
        reported.add(schema_object.name)
        if not any(_covers(sla, schema_object) for sla in contract.sla_properties):
            message = (
                f"{prop.name or 'an item'!r} is {prop.classification}, but {schema_object.name!r} has "
                "no retention."
            )
            hint = f"Add '{{property: retention, value: …, unit: d, element: {schema_object.name}}}'."
            needs = (contract.path("slaProperties"),)
            yield violation(prop, "classification", message, hint, needs=needs)


def _covers(sla: SlaProperty, schema_object: SchemaObject) -> bool:
    if sla.property.lower() != "retention":
        return False
    names = [part.strip().split(".")[0] for part in (sla.element or "").split(",") if part.strip()]
    return not names or schema_object.name in names or schema_object.physical_name in names


RULE = Rule("retention-missing-for-pii", Severity.WARNING, __doc__, check, arguments=(CLASSES,))
