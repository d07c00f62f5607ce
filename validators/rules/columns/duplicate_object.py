"""Duplicate object name.

Why: References, service levels and the catalog find an object by its name; a duplicate makes them ambiguous.

Bad:
    schema:
      - name: orders
      - name: Orders

Good:
    schema:
      - name: orders
      - name: order_lines

How to fix: Rename one of them, or remove the duplicate.
"""

from dq.contracts.model import SchemaObject
from dq.validators.context import confusable_note, normalize_name
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    by_name: dict[str, SchemaObject] = {}
    for schema_object in contract.objects:
        first = by_name.setdefault(normalize_name(schema_object.name.lower()), schema_object)
        if first is not schema_object:
            line = f"line {first.locate('name').line}{confusable_note(schema_object.name, first.name)}"
            message = f"object name {schema_object.name!r} is already used in {line}."
            yield violation(schema_object, "name", message, "Rename one of them, or remove the duplicate.")


RULE = Rule("duplicate-object", Severity.ERROR, __doc__, check)
