"""A query holds a placeholder that is not filled, or not on this level.

Why: ODCS knows `{object}` and, in rules of a property, `{property}`. Anything else reaches the engine as it
stands, and the query fails.

Bad:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {table} WHERE amount < 0", mustBe: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount < 0", mustBe: 0}

Mend: Write `{object}` for the table and `{property}` for the column.
"""

import re

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest

_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
_MEANT = {
    "table": "object",
    "model": "object",
    "schema": "object",
    "dataset": "object",
    "column": "property",
    "field": "property",
}


def check(_contract: Contract, context: Context) -> Faults:
    for clause in context.walk.clauses:
        known = ("object",) if clause.property is None else ("object", "property")
        for found in _PLACEHOLDER.finditer(clause.quality.query or ""):
            name = found.group(1)
            # The examples of ODCS's own schema write ${table} and ${column}.
            dollar = found.string[: found.start()].endswith("$")
            if name in known or (dollar and name in ("table", "column") and _MEANT[name] in known):
                continue
            if name == "property":
                message = "{property} has no meaning in a rule of an object."
                yield fault(
                    clause.quality, "query", message, "Name the column, or move the rule to the property."
                )
                break
            hint = _MEANT.get(name) or nearest(name, known)
            mend = f"Write {{{hint if hint in known else 'object'}}}."
            yield fault(clause.quality, "query", f"{{{name}}} is not a placeholder that is filled.", mend)
            break


RULE = Rule("placeholder-unknown", Severity.WARNING, __doc__, check)
