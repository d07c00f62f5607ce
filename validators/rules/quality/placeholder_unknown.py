"""Unknown placeholder in a query, or one that is not available on this level.

Why: ODCS has `{object}` and, in rules of a property, `{property}`. Anything else is passed to the engine
unchanged, and the query fails.

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

How to fix: Write `{object}` for the table and `{property}` for the column.
"""

import re

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, nearest, violation

_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")
_ALIASES = {
    "table": "object",
    "model": "object",
    "schema": "object",
    "dataset": "object",
    "column": "property",
    "field": "property",
}


def check(_contract: Contract, context: Context) -> Violations:
    for clause in context.walk.clauses:
        placeholders = ("object",) if clause.property is None else ("object", "property")
        for match in _PLACEHOLDER.finditer(clause.quality.query or ""):
            name = match.group(1)
            # The examples of ODCS's own schema write ${table} and ${column}.
            has_dollar = match.string[: match.start()].endswith("$")
            if name in placeholders or (
                has_dollar and name in ("table", "column") and _ALIASES[name] in placeholders
            ):
                continue
            if name == "property":
                message = "{property} is not available in a rule of an object."
                yield violation(
                    clause.quality, "query", message, "Name the column, or move the rule to the property."
                )
                break
            similar = _ALIASES.get(name) or nearest(name, placeholders)
            hint = f"Write {{{similar if similar in placeholders else 'object'}}}."
            yield violation(clause.quality, "query", f"unknown placeholder {{{name}}}.", hint)
            break


RULE = Rule("placeholder-unknown", Severity.WARNING, __doc__, check)
