"""Duplicate property name on the same level.

Why: Spark, Hive and Glue match columns case-insensitively, so both names refer to the same column. The same
applies to names that differ only in their Unicode normalization.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
          - name: Amount

Good:
    schema:
      - name: orders
        properties:
          - name: amount
          - name: amount_in_euro

How to fix: Rename one of them, or remove the duplicate.
"""

from collections.abc import Sequence

from dq.contracts.model import Property
from dq.validators.context import confusable_note, normalize_name
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, context: Context) -> Violations:
    for schema_object in contract.objects:
        yield from _duplicates(schema_object.properties)
    for prop in context.walk.properties:
        if prop.properties:
            yield from _duplicates(prop.properties)


def _duplicates(siblings: Sequence[Property]) -> Violations:
    names: dict[str, Property] = {}
    columns: dict[str, Property] = {}
    for prop in siblings:
        if not prop.name:
            continue
        first = names.setdefault(normalize_name(prop.name.lower()), prop)
        if first is not prop:
            line = f"line {first.locate('name').line}{confusable_note(prop.name, first.name or '')}"
            message = f"property name {prop.name!r} is already used in {line}."
            yield violation(prop, "name", message, "Rename one of them, or remove the duplicate.")
            continue
        first = columns.setdefault(normalize_name(prop.column.lower()), prop)
        if first is not prop:
            message = (
                f"column {prop.column!r} is already used by {first.name!r} in line "
                f"{first.locate('name').line}."
            )
            key = "physicalName" if prop.has("physicalName") else "name"
            yield violation(prop, key, message, "Give each property its own column.")


RULE = Rule("duplicate-property", Severity.ERROR, __doc__, check)
