"""Unknown property in a duplicateValues rule.

Why: The rule can only fail with an error when it runs on the data.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: duplicateValues, mustBe: 0, arguments: {properties: [order_nr]}}
        properties:
          - {name: order_no, logicalType: string}

Good:
    schema:
      - name: orders
        quality:
          - {metric: duplicateValues, mustBe: 0, arguments: {properties: [order_no]}}
        properties:
          - {name: order_no, logicalType: string}

How to fix: Write the names of properties of this object.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, suggestion, violation


def check(_contract: Contract, context: Context) -> Violations:
    for clause in context.walk.clauses:
        arguments = clause.quality.arguments
        if clause.quality.metric != "duplicateValues" or not isinstance(arguments, dict):
            continue
        names = arguments.get("properties")
        if not names:
            continue
        property_names = {
            column_name
            for prop in clause.object.properties
            for column_name in (prop.name, prop.physical_name)
            if column_name
        }
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and name.split(".")[0] not in property_names:
                hint = suggestion(name, property_names, f"Write properties of {clause.object.name!r}.")
                message = f"{clause.object.name!r} has no property {name!r}."
                needs = tuple(prop.path("name") for prop in clause.object.properties)
                yield violation(clause.quality, "arguments", message, hint, needs=needs)


RULE = Rule("metric-property-unknown", Severity.ERROR, __doc__, check)
