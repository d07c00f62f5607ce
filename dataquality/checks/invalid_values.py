"""The number or share of invalid values is within the bounds of an `invalidValues` rule.

Why: It is the way of ODCS 3.1 to promise a list of values or a form, with room for exceptions.
Bad: `metric: invalidValues` with `mustBe: 0`, `validValues: [kg, lb]`, and a row with `pounds`.
Good: The same rule and rows with `kg`.
Nulls: NULL is neither valid nor invalid: it is not counted. Zero rows make a percentage skipped.
Mend: Correct the values at their source, or the list, pattern or bound.
"""

from __future__ import annotations

from dq.dataquality.clauses.clause import Clause, RowTest, asking
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.clauses.quality_rule import Rule, arguments, listed, matching, of_quality, one_of
from dq.dataquality.model.predicate import any_of
from dq.dataquality.model.run_context import Unusable

_CHECK = "invalid_values"


def clause(rule: Rule) -> Clause | None:
    quality, prop, column = rule.quality, rule.property, rule.column
    if prop is None or column is None:
        return None
    given = arguments(quality, "validValues", "pattern")
    # ODCS 3.0 had the list on the rule itself.
    values = given.get("validValues", quality.valid_values)
    pattern = given.get("pattern")
    made = of_quality(_CHECK, rule.object, quality, rule.shown)
    if values is None and pattern is None:
        raise Unusable("it needs the argument 'validValues' or 'pattern'")
    if pattern is not None and not isinstance(pattern, str):
        raise Unusable("the argument 'pattern' must be text")
    parts = []
    if values is not None:
        parts.append(one_of(made, prop, column, listed(values, "validValues")))
    if pattern is not None:
        parts.append(matching(made, column, pattern))
    if len(parts) == 1 or any(part.refused for part in parts):
        return next((part for part in parts if part.refused), parts[0])
    breaks = any_of(*(part.breaks for part in parts if part.breaks is not None))
    return asking(parts[0], RowTest(breaks, "are invalid"))


CHECK = CheckKind(_CHECK, __doc__, rule=clause)
