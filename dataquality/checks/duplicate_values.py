"""The number or share of repeated values is within the bounds of a `duplicateValues` rule.

Why: Some repetition is tolerable, and its growth shows a fault.
Bad: `metric: duplicateValues` with `mustBe: 0`, and three rows that are alike in the column.
Good: The same rule, and every value once.
Nulls: A row with NULL in the key repeats nothing. Counted are the rows beyond the first of each key (three
alike are two duplicates); a percentage is of all rows, and of zero rows it is skipped.
Mend: Remove the repeated rows at their source, or correct the bound.
"""

from __future__ import annotations

from dq.contracts.model import Quality, SchemaObject
from dq.dataquality.clauses.clause import Clause, UniqueKey, asking
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import Rule, arguments, listed, of_quality
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.run_context import Unusable

_CHECK = "duplicate_values"


def clause(rule: Rule) -> Clause:
    if rule.column is None:
        keys = _keys(rule.object, rule.quality)
    else:
        arguments(rule.quality)
        if not rule.column.single:
            raise Unusable("a value inside of an array or map has no row of its own")
        keys = (rule.column,)
    made = of_quality(_CHECK, rule.object, rule.quality, ", ".join(str(key) for key in keys))
    return asking(made, UniqueKey(keys, "repeat a value"))


def _keys(one: SchemaObject, quality: Quality) -> tuple[Column, ...]:
    """The columns that the rule names, by name or physical name."""
    known: dict[str, Column] = {}
    for prop, column in columns(one):
        if column.single:
            named = Column((*column.steps[:-1], prop.name or prop.column))
            known.setdefault(str(named), column)
            known.setdefault(str(column), column)
    wanted = listed(arguments(quality, "properties").get("properties"), "properties")
    absent = [name for name in wanted if not isinstance(name, str) or name not in known]
    if absent:
        raise Unusable(f"{absent[0]!r} is not a property of {one.name}")
    return tuple(known[str(name)] for name in wanted)


CHECK = CheckKind(_CHECK, __doc__, rule=clause)
