"""The number or share of repeated values is within the bounds of a `duplicateValues` rule.

Why: Some repetition is tolerable, and its growth shows a fault.
Bad: `metric: duplicateValues` with `mustBe: 0`, and three rows that are alike in the column.
Good: The same rule, and every value once.
Nulls: A row with NULL in the key repeats nothing. Counted are the rows beyond the first of each key (three
alike are two duplicates); a percentage is of all rows, and of zero rows it is skipped.
How to fix: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from dq.contracts.model import Quality, SchemaObject
from dq.dataquality.clauses.clause import Clause, UniqueKey, with_test
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import Rule, arguments, clause_from_quality, require_list
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.run_context import Unusable

_CHECK = "duplicate_values"


def clause(rule: Rule) -> Clause:
    if rule.column is None:
        keys = _keys(rule.object, rule.quality)
    else:
        arguments(rule.quality)
        if not rule.column.single:
            raise Unusable("a value inside an array or map does not have its own row")
        keys = (rule.column,)
    draft = clause_from_quality(_CHECK, rule.object, rule.quality, ", ".join(str(key) for key in keys))
    return with_test(draft, UniqueKey(keys, "repeat a value"))


def _keys(schema_object: SchemaObject, quality: Quality) -> tuple[Column, ...]:
    """Return the columns that the rule names, by name or physical name."""
    by_name: dict[str, Column] = {}
    for prop, column in columns(schema_object):
        if column.single:
            named = Column((*column.steps[:-1], prop.name or prop.column))
            by_name.setdefault(str(named), column)
            by_name.setdefault(str(column), column)
    names = require_list(arguments(quality, "properties").get("properties"), "properties")
    unknown = [name for name in names if not isinstance(name, str) or name not in by_name]
    if unknown:
        raise Unusable(f"{unknown[0]!r} is not a property of {schema_object.name}")
    return tuple(by_name[str(name)] for name in names)


CHECK = CheckKind(_CHECK, __doc__, rule=clause)
