"""Numbers, dates and timestamps are within `minimum`, `maximum`, `exclusiveMinimum` and `exclusiveMaximum`.

Why: A negative price or a date in 2206 spoils every sum and every report of a day.
Bad: `logicalTypeOptions: {minimum: 0}` and a row with -1.
Good: Rows with 0 and 5.
Nulls: NULL passes. NaN is never within bounds; the infinities are compared as numbers. A column of floats
is compared with the float nearest to the bound. A bound that does not fit into 38 digits together with the
column's decimals is an error, since Spark would round one of them or overflow. A timestamp without a zone
is read in `defaultTimezone`, UTC by default.
How to fix: Correct the value at its source, or the bound in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.types import physical_type
from dq.dataquality.clauses.clause import Clause, PropertyKeys, RowTest, refuse, with_test
from dq.dataquality.clauses.kind import property_check
from dq.dataquality.model.predicate import FLOATS, Compare, IsNaN, Operator, Path, Predicate, any_of
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.sql_values import display_text, literal, logical_type_of

# Key -> (attribute, operator of a violation, allowed values, complaint).
_BOUNDS: dict[str, tuple[str, Operator, str, str]] = {
    "minimum": ("minimum", "<", "at least {}", "are less than {}"),
    "maximum": ("maximum", ">", "at most {}", "are more than {}"),
    "exclusiveMinimum": ("exclusive_minimum", "<=", "more than {}", "are not more than {}"),
    "exclusiveMaximum": ("exclusive_maximum", ">=", "less than {}", "are not less than {}"),
}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    options = keys.options
    if options is None:
        return
    for key, (attribute, *_words) in _BOUNDS.items():
        bound = getattr(options, attribute)
        if bound is not None:
            yield _clause(keys, key, bound)


def _clause(keys: PropertyKeys, key: str, bound: object) -> Clause:
    _, comparison, allowed, complaint = _BOUNDS[key]
    clause = keys.option(key, allowed.format(display_text(bound)))
    try:
        limit = literal(keys.property, bound)
    except Unusable as error:
        return refuse(clause, str(error))
    promised = physical_type(keys.property)
    floating = promised.name in FLOATS if promised else logical_type_of(keys.property) == "number"

    def breaks(value: Path) -> Predicate:
        outside = Compare(value, comparison, limit)
        # NaN is greater than every number, so it would satisfy a minimum.
        return any_of(outside, IsNaN(value)) if floating else outside

    return with_test(clause, RowTest(keys.column.where(breaks), complaint.format(display_text(bound))))


CHECK = property_check("bounds", __doc__, clauses)
