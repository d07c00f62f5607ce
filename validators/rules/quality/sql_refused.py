"""A quality rule's SQL is not of the kind that may run.

Why: What contracts ask of the data is written by strangers, and runs with the rights and on the machines of
the checker. So a query reads its own object alone, with functions that only compute, within bounds of what it
costs. What goes beyond is never run, and the promise would never be checked.

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

Mend: Write what the message says. docs/how-to/check-data.md tells what SQL may be used, and what to write
instead of the rest.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, refused, refused_scopes


def check(contract: Contract, context: Context) -> Faults:
    for quality, wrong in refused(contract, context):
        if wrong.reads:
            yield fault(quality, "query", f"the query is refused: {wrong.reason}.", wrong.instead)
    for terms, wrong in refused_scopes(context):
        yield fault(terms, "where", f"the predicate is refused: {wrong.reason}.", wrong.instead)


RULE = Rule(
    "sql-refused",
    Severity.WARNING,
    __doc__,
    check,
    after=("sql-without-query", "sql-not-read-only", "placeholder-unknown"),
)
