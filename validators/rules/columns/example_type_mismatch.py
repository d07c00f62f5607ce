"""An example is not a value of the property's logical type.

Why: People copy examples into tests and queries, and trust them more than the type beside them.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, examples: ["31.01.2026"]}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, examples: ["2026-01-31"]}

Mend: Write the example as the data has it; numbers without quotes, dates as 2026-01-31. Where the options of
the type name a `format`, examples follow it and are not judged.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fits, item_fault, shown


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if not prop.examples or (options is not None and options.format is not None):
            continue
        for index, value in enumerate(prop.examples):
            # What a string column holds may look like a number; null is another rule's.
            if value is None or prop.logical_type == "string" or _fits(value, prop.logical_type):
                continue
            message = f"example {shown(value)[:60]} is not a value of the logical type {prop.logical_type!r}."
            yield item_fault(prop, "examples", index, message, "Write a value that the column can hold.")


def _fits(value: object, logical: str | None) -> bool:
    """Numbers and truth values are often quoted in a list of examples; what they say counts."""
    if isinstance(value, str) and logical in ("integer", "number"):
        try:
            number = float(value)
        except ValueError:
            return False
        return logical == "number" or number.is_integer()
    if isinstance(value, str) and logical == "boolean":
        return value.lower() in ("true", "false")
    return isinstance(value, (dict, list)) or fits(value, logical)


RULE = Rule("example-type-mismatch", Severity.WARNING, __doc__, check)
