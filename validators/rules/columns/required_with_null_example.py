"""Required property with null among its examples.

Why: One of the two is wrong, and readers cannot tell whether the column may be null.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string, required: true, examples: ["O-1", null]}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string, required: true, examples: ["O-1", "O-2"]}

How to fix: Remove the null from the examples, or `required` from the property.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, item_violation


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        if prop.required and prop.examples and None in prop.examples:
            message = f"{prop.name!r} is required, but null is one of its examples."
            index = prop.examples.index(None)
            yield item_violation(prop, "examples", index, message, "Remove the null, or 'required'.")


RULE = Rule("required-with-null-example", Severity.WARNING, __doc__, check)
