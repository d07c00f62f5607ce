"""Quality rule with SQL that dq does not run.

Why: SQL in contracts may come from anyone, but runs with the permissions and on the machines of the checker.
So a query may only read its own object, use pure functions, and stay within cost limits. Other queries are
never run, so the rule would never be checked.

Bad:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} a CROSS JOIN {object} b", mustBe: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} a JOIN {object} b ON a.id = b.id", mustBe: 0}

How to fix: Follow the hint of the message. docs/how-to/check-data.md lists the allowed SQL, and alternatives
for the rest.
"""

from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    refused_queries,
    refused_scopes,
    violation,
)


def check(contract: Contract, context: Context) -> Violations:
    for quality, wrong in refused_queries(contract, context):
        if wrong.reads:
            yield violation(quality, "query", f"the query is refused: {wrong.reason}.", wrong.hint)
    for terms, wrong in refused_scopes(context):
        yield violation(terms, "where", f"the predicate is refused: {wrong.reason}.", wrong.hint)


RULE = Rule(
    "sql-refused",
    Severity.WARNING,
    __doc__,
    check,
    after=("sql-without-query", "sql-not-read-only", "placeholder-unknown"),
)
