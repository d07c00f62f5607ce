"""A bound is not a value of the property's logical type.

Why: A date cannot be compared with a number, so that the check can only fail or be skipped.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {minimum: none}}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {minimum: 0}}

Mend: Write a value of the type: a number, or a date such as "2026-01-31".
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, fits, shown

_BOUNDS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum")
_KEYS = {"exclusive_minimum": "exclusiveMinimum", "exclusive_maximum": "exclusiveMaximum"}
_NUMERIC = {"integer": "number"}


def check(contract: Contract, context: Context) -> Faults:
    # In ODCS 3.0 an exclusive bound was true or false, and spoke about the other bound.
    flags = contract.odcs < (3, 1, 0)
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is None or prop.logical_type not in ("integer", "number", "date", "timestamp", "time"):
            continue
        timed = prop.logical_type in ("date", "timestamp", "time")
        wanted = _NUMERIC.get(prop.logical_type, prop.logical_type)
        for attribute in _BOUNDS:
            value, key = getattr(options, attribute), _KEYS.get(attribute, attribute)
            type_ = "boolean" if flags and key.startswith("exclusive") else wanted
            # With a format of its own, a date is written as that says.
            if timed and options.format is not None and type_ != "boolean":
                continue
            if value is not None and not fits(value, type_):
                message = f"{key} {shown(value)} is not a value of the logical type {type_!r}."
                # To the JSON Schema, every text is a date.
                doubt = timed and isinstance(value, str) and type_ != "boolean"
                yield fault(options, key, message, "Write a value of that type.", doubt=doubt)


RULE = Rule("option-type-mismatch", Severity.ERROR, __doc__, check)
