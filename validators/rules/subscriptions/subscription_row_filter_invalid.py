"""The row filter of a subscription cannot be applied.

Why: Where the data is shared through a catalog, a filter that the catalog does not understand cannot be
granted, and without it the consumer would see every row.

Bad:
    rowFilter: lower(country) = 'de'

Good:
    rowFilter: country IN ('DE', 'AT')

Mend: Compare columns of one object with literals by `=`, `<>`, `<`, `<=`, `>`, `>=`, `BETWEEN`, `IN`, `LIKE`
and `IS NULL`, joined by `AND`, `OR` and `NOT`. Texts stand in single quotes, with a quote inside doubled
(`'it''s'`); double quotes, backslashes and comments are refused, because engines read them in different
ways. A column whose name is a keyword stands in back quotes. A subscription with a row filter is about a
single object.
"""

from dq.contracts.subscriptions import covered
from dq.validators.rule import (
    Faults,
    Rule,
    Severity,
    Subscribed,
    Subscription,
    fault,
    of_subscription,
    suggestion,
)

_KEY = "rowFilter"


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    if one.row_filter is None:
        return
    # Imported here: the parser of SQL takes time to start, and few subscriptions filter rows.
    from dq.contracts.sql.guard import Refused, guarded_filter

    found = guarded_filter(one.row_filter)
    if isinstance(found, Refused):
        yield fault(one, _KEY, f"the row filter is refused: {found.reason}.", found.instead)
        return
    contract = among.contract(one)
    objects = covered(one, contract) if contract is not None else []
    if len(objects) > 1:
        names = ", ".join(part.object.name for part in objects)
        message = f"one row filter cannot hold for several objects: {names}."
        yield fault(one, _KEY, message, "Name the columns of one of them; write a file for each.")
        return
    for part in objects:
        known = {prop.column.lower() for prop in part.object.properties}
        strange = next((name for name in found.columns if name.lower() not in known), None)
        if strange is not None:
            mend = suggestion(strange, sorted(known), "Write a column of the object as the data has it.")
            yield fault(one, _KEY, f"{part.object.name!r} has no column {strange!r}.", mend)


RULE: Rule = of_subscription("subscription-row-filter-invalid", Severity.ERROR, __doc__, subscribed)
