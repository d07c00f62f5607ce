"""A quality rule counts duplicates of properties that the object does not have.

Why: The rule can only end in an error when it runs on the data.

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

Mend: Write the names of properties of this object.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, suggestion


def check(_contract: Contract, context: Context) -> Faults:
    for clause in context.walk.clauses:
        arguments = clause.quality.arguments
        if clause.quality.metric != "duplicateValues" or not isinstance(arguments, dict):
            continue
        named = arguments.get("properties")
        if not named:
            continue
        known = {one for prop in clause.object.properties for one in (prop.name, prop.physical_name) if one}
        for name in named if isinstance(named, list) else ():
            if isinstance(name, str) and name.split(".")[0] not in known:
                mend = suggestion(name, known, f"Write properties of {clause.object.name!r}.")
                message = f"{clause.object.name!r} has no property {name!r}."
                needs = tuple(prop.path("name") for prop in clause.object.properties)
                yield fault(clause.quality, "arguments", message, mend, needs=needs)


RULE = Rule("metric-property-unknown", Severity.ERROR, __doc__, check)
