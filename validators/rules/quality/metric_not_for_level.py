"""Property metric on an object, or object metric on a property.

Why: Rows are counted in a table, nulls in a column. On the other level the metric is undefined.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: nullValues, mustBe: 0}
        properties:
          - {name: order_id, logicalType: string}

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            quality:
              - {metric: nullValues, mustBe: 0}

How to fix: Move the rule to its property, or to the object.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

_OF_PROPERTIES = ("nullValues", "missingValues", "invalidValues")
_OF_OBJECTS = ("rowCount",)


def check(_contract: Contract, context: Context) -> Violations:
    for clause in context.walk.clauses:
        metric = clause.quality.metric
        if clause.property is None and metric in _OF_PROPERTIES:
            message = f"{metric} is a property metric, but {clause.object.name!r} is an object."
            yield violation(clause.quality, "metric", message, "Move the rule to its property.")
        elif clause.property is not None and metric in _OF_OBJECTS:
            message = f"{metric} is an object metric, but {clause.property.name!r} is a property."
            yield violation(clause.quality, "metric", message, f"Move the rule to {clause.object.name!r}.")


RULE = Rule("metric-not-for-level", Severity.ERROR, __doc__, check)
