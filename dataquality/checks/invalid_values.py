"""The number or share of invalid values is within the bounds of an `invalidValues` rule.

Why: In ODCS 3.1 it restricts values to a list or pattern and allows exceptions.
Bad: `metric: invalidValues` with `mustBe: 0`, `validValues: [kg, lb]`, and a row with `pounds`.
Good: The same rule and rows with `kg`.
Nulls: NULL is neither valid nor invalid: it is not counted. A percentage of zero rows is skipped.
How to fix: Correct the values at their source, or the list, pattern or bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.clause import Clause, RowTest, with_test
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import (
    Rule,
    accepted_values_clause,
    arguments,
    clause_from_quality,
    pattern_clause,
    require_list,
)
from dq.dataquality.model.predicate import any_of
from dq.dataquality.model.run_context import Unusable

_CHECK = "invalid_values"


def clause(rule: Rule) -> Clause | None:
    quality, prop, column = rule.quality, rule.property, rule.column
    if prop is None or column is None:
        return None
    rule_arguments = arguments(quality, "validValues", "pattern")
    # ODCS 3.0 had the list on the rule itself.
    values = rule_arguments.get("validValues", quality.valid_values)
    pattern = rule_arguments.get("pattern")
    draft = clause_from_quality(_CHECK, rule.object, quality, rule.column_name)
    if values is None and pattern is None:
        raise Unusable("it needs the argument 'validValues' or 'pattern'")
    if pattern is not None and not isinstance(pattern, str):
        raise Unusable("the argument 'pattern' must be text")
    parts = []
    if values is not None:
        parts.append(accepted_values_clause(draft, prop, column, require_list(values, "validValues")))
    if pattern is not None:
        parts.append(pattern_clause(draft, column, pattern))
    if len(parts) == 1 or any(part.refusal_reason for part in parts):
        return next((part for part in parts if part.refusal_reason), parts[0])
    breaks = any_of(*(part.breaks for part in parts if part.breaks is not None))
    return with_test(parts[0], RowTest(breaks, "are invalid"))


CHECK = CheckKind(_CHECK, __doc__, rule=clause)
