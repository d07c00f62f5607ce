"""A quality rule asks an object for a metric of properties, or the other way round.

Why: Rows are counted in a table, nulls in a column. On the other level the question has no answer.

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

Mend: Move the rule to the property that it is about, or to the object.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

_OF_PROPERTIES = ("nullValues", "missingValues", "invalidValues")
_OF_OBJECTS = ("rowCount",)


def check(_contract: Contract, context: Context) -> Faults:
    for clause in context.walk.clauses:
        metric = clause.quality.metric
        if clause.property is None and metric in _OF_PROPERTIES:
            message = f"{metric} is a metric of a property, and {clause.object.name!r} is an object."
            yield fault(clause.quality, "metric", message, "Move the rule to the property that it is about.")
        elif clause.property is not None and metric in _OF_OBJECTS:
            message = f"{metric} is a metric of an object, and {clause.property.name!r} is a property."
            yield fault(clause.quality, "metric", message, f"Move the rule to {clause.object.name!r}.")


RULE = Rule("metric-not-for-level", Severity.ERROR, __doc__, check)
