"""Invalid row filter of a subscription.

Why: If the data is shared through a catalog, a filter that the catalog does not support cannot be granted,
and without it the consumer would see every row.

Bad:
    rowFilter: lower(country) = 'de'

Good:
    rowFilter: country IN ('DE', 'AT')

How to fix: Compare columns of one object with literals using `=`, `<>`, `<`, `<=`, `>`, `>=`, `BETWEEN`,
`IN`, `LIKE` and `IS NULL`, combined with `AND`, `OR` and `NOT`. Put strings in single quotes, and double a
quote inside (`'it''s'`); double quotes, backslashes and comments are rejected, because engines read them
differently. Put a column whose name is a keyword in backticks. A subscription with a row filter covers a
single object.
"""

from dq.contracts.subscriptions import covered_objects
from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    subscription_rule,
    suggestion,
    violation,
)

_KEY = "rowFilter"


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    if subscription.row_filter is None:
        return
    # Imported here: the parser of SQL takes time to start, and few subscriptions filter rows.
    from dq.contracts.sql.guard import RejectedSql, validate_row_filter

    result = validate_row_filter(subscription.row_filter)
    if isinstance(result, RejectedSql):
        yield violation(subscription, _KEY, f"the row filter is refused: {result.reason}.", result.hint)
        return
    contract = context.contract(subscription)
    objects = covered_objects(subscription, contract) if contract is not None else []
    if len(objects) > 1:
        names = ", ".join(part.object.name for part in objects)
        message = f"a row filter cannot apply to several objects: {names}."
        yield violation(
            subscription, _KEY, message, "List the columns of one of them; write a separate file for each."
        )
        return
    for part in objects:
        column_names = {prop.column.lower() for prop in part.object.properties}
        strange = next((name for name in result.columns if name.lower() not in column_names), None)
        if strange is not None:
            hint = suggestion(
                strange, sorted(column_names), "Use a column of the object, by its physical name."
            )
            yield violation(subscription, _KEY, f"{part.object.name!r} has no column {strange!r}.", hint)


RULE: Rule = subscription_rule("subscription-row-filter-invalid", Severity.ERROR, __doc__, check)
