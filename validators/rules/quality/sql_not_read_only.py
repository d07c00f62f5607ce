"""A quality rule's query is not one statement that only reads.

Why: The query of a pull request runs with the rights of the checker. A second statement, a write or a call
into Java would change data, or more, under its name.

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

Mend: Write one SELECT, or WITH … SELECT, that gives one number. The check of the data asks the same guard
once more, before it runs anything.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, refused


def check(contract: Contract, context: Context) -> Faults:
    for quality, wrong in refused(contract, context):
        if not wrong.reads:
            yield fault(quality, "query", f"the query cannot run: {wrong.reason}.", wrong.instead)


RULE = Rule("sql-not-read-only", Severity.ERROR, __doc__, check, after=("sql-without-query",))
