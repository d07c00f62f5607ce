"""SQL quality rule without a query.

Why: There is nothing to run, so the rule is never checked.

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

How to fix: Add `query`: one SELECT that returns one number.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        if quality.type == "sql" and not (quality.query or "").strip():
            message = "a rule of type 'sql' needs a query."
            yield missing_key(quality, message, "Add 'query: SELECT …'.", "query")


RULE = Rule("sql-without-query", Severity.ERROR, __doc__, check)
