"""Option that the logicalType does not have.

Why: It is never checked: a string has no minimum, and a number has no maximum length.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {maxLength: 10}}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {maximum: 9999999999}}

How to fix: Use an option of the type, or correct `logicalType`.
"""

from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    missing_key,
    suggestion,
    violation,
)

_RANGE = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TIMES = (*_RANGE, "format", "timezone", "defaultTimezone")
_VECTOR = (
    "dimensions", "elementType", "distanceMetric", "embeddingModel", "embeddingModelVersion", "normalized",
)  # fmt: skip

# Logical type -> its options, by the JSON Schema of ODCS 3.2.0.
OPTIONS: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": (*_RANGE, "multipleOf", "format"),
    "number": (*_RANGE, "multipleOf", "format"),
    "date": (*_RANGE, "format"),
    "timestamp": _TIMES,
    "time": _TIMES,
    "object": ("minProperties", "maxProperties", "required"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "vector": _VECTOR,
    "boolean": (),
    "map": (),
}
# ODCS 3.0 does not distinguish timestamps from dates.
_EARLIER_DATE = _TIMES


def check(contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is None or not options.place.keys:
            continue
        if prop.logical_type is None:
            message = f"logicalTypeOptions of {prop.name!r} have no effect without a logicalType."
            yield missing_key(prop, message, "Add 'logicalType: …'.", "logicalType")
            continue
        allowed = OPTIONS[prop.logical_type]
        if prop.logical_type == "date" and contract.odcs < (3, 1, 0):
            allowed = _EARLIER_DATE
        for key in options.place.keys:
            if key not in allowed:
                message = f"the logical type {prop.logical_type!r} has no option {key!r}."
                hint = f"Its options are {', '.join(allowed)}." if allowed else "It has no options."
                yield violation(options, key, message, suggestion(key, allowed, hint))


RULE = Rule("option-not-for-type", Severity.ERROR, __doc__, check)
