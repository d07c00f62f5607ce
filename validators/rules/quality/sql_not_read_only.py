"""Query that is not a single read-only statement.

Why: A query from a pull request runs with the permissions of the checker. A second statement, a write or a
call into Java could change data or do other damage.

Bad:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "DELETE FROM orders WHERE amount < 0", mustBe: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount < 0", mustBe: 0}

How to fix: Write one SELECT, or WITH … SELECT, that returns one number. `dq check` validates the query again
before it runs anything.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, refused_queries, violation


def check(contract: Contract, context: Context) -> Violations:
    for quality, wrong in refused_queries(contract, context):
        if not wrong.reads:
            yield violation(quality, "query", f"the query cannot run: {wrong.reason}.", wrong.hint)


RULE = Rule("sql-not-read-only", Severity.ERROR, __doc__, check, after=("sql-without-query",))
