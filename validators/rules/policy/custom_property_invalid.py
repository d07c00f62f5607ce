"""Custom properties that do not match the policy's JSON Schema.

Why: Organisations keep their own fields in custom properties: cost centre, retention class, approver. Tools
that read them fail if one is missing or misspelt.

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

How to fix: Write the custom property as the policy describes it. The schemas are in `dq-policy.yaml` under
`customProperties`, by level: `contract`, `object`, `property`, `slaProperty` and `server`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations


def check(contract: Contract, context: Context) -> Violations:
    if context.schemas:
        from dq.validators.policy.custom_rules import custom_property_violations

        yield from custom_property_violations(context.schemas, contract, context.walk)


RULE = Rule("custom-property-invalid", Severity.ERROR, __doc__, check, policies=True)
