"""A quality rule of the type sql has no query.

Why: There is nothing to run, and the promise is never checked.

Bad:
    schema:
      - name: orders
        quality:
          - {type: sql, mustBe: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount < 0", mustBe: 0}

Mend: Add `query`: one SELECT that gives one number.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        if quality.type == "sql" and not (quality.query or "").strip():
            message = "a rule of the type 'sql' needs a query."
            yield absence(quality, message, "Add 'query: SELECT …'.", "query")


RULE = Rule("sql-without-query", Severity.ERROR, __doc__, check)
