"""A column of the primary key may be null.

Why: A row without its key cannot be found, joined or counted once; catalogs and engines that know keys
refuse nulls in them.

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

Mend: Write `required: true`, or take the column out of the key.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

_NAMED = 3


def check(contract: Contract, _context: Context) -> Faults:
    """One finding for all of a contract: who writes `required: false` at keys does it at every one."""
    found = [
        (one, prop)
        for one in contract.objects
        for prop in one.primary_key()
        # Without the key nothing is said, and the check of the key refuses nulls anyway.
        if prop.required is False and prop.has("required") and prop.name
    ]
    if not found:
        return
    (_, first), *others = found
    message = f"{first.name!r} is part of the primary key and may be null."
    if others:
        listed = ", ".join(f"{one.name}.{prop.name}" for one, prop in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        message = f"{message[:-1]}, and so {'are' if len(others) > 1 else 'is'} {listed}{more}."
    yield fault(first, "required", message, "Write 'required: true'.")


RULE = Rule("primary-key-optional", Severity.WARNING, __doc__, check)
