"""The custom properties of an element are not as the policy's JSON Schema describes them.

Why: Organisations keep their own fields in custom properties: cost centre, retention class, approver. What
reads them stops at one that is missing or misspelt.

Bad:
    customProperties:
      contract:
        required: [costCentre]
        properties:
          costCentre: {type: string, pattern: "^CC-[0-9]{4}$"}

Good:
    customProperties:
      contract:
        properties:
          costCentre: {type: string, pattern: "^CC-[0-9]{4}$"}

Mend: Write the custom property as the policy describes it. Schemas stand in `dq-policy.yaml` under
`customProperties`, by level: `contract`, `object`, `property`, `slaProperty` and `server`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity


def check(contract: Contract, context: Context) -> Faults:
    if context.schemas:
        from dq.validators.policy.custom_rules import custom_property_faults

        yield from custom_property_faults(context.schemas, contract, context.walk)


RULE = Rule("custom-property-invalid", Severity.ERROR, __doc__, check, policies=True)
