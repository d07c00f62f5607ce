"""Nullable primary key column.

Why: A row without a key cannot be found, joined or counted exactly once; catalogs and engines with primary
keys reject nulls in them.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string, primaryKey: true, required: false}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string, primaryKey: true, required: true}

How to fix: Write `required: true`, or remove the column from the key.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

_MAX_LISTED = 3


def check(contract: Contract, _context: Context) -> Violations:
    """Report one finding per contract: `required: false` on keys is usually a habit."""
    optional_keys = [
        (schema_object, prop)
        for schema_object in contract.objects
        for prop in schema_object.primary_key()
        # Without 'required' there is no contradiction, and the check of the key rejects nulls anyway.
        if prop.required is False and prop.has("required") and prop.name
    ]
    if not optional_keys:
        return
    (_, first), *remaining = optional_keys
    message = f"{first.name!r} is part of the primary key but may be null."
    if remaining:
        names = ", ".join(
            f"{schema_object.name}.{prop.name}" for schema_object, prop in remaining[:_MAX_LISTED]
        )
        suffix = f" and {len(remaining) - _MAX_LISTED} more" if len(remaining) > _MAX_LISTED else ""
        message = f"{message[:-1]}, and so {'are' if len(remaining) > 1 else 'is'} {names}{suffix}."
    yield violation(first, "required", message, "Write 'required: true'.")


RULE = Rule("primary-key-optional", Severity.WARNING, __doc__, check)
