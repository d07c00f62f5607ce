"""A pattern is not one that ECMA-262 and Java read alike.

Why: ODCS says that patterns are those of ECMA-262, and Spark matches with Java's. What only one of them
knows fails at night on the cluster, or means something else there.

Bad:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            logicalTypeOptions: {pattern: "^O-[0-9]{6"}

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            logicalTypeOptions: {pattern: "^O-[0-9]{6}$"}

Mend: Correct the position that is named. Escape signs that are meant as themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts import pattern
from dq.contracts.model import Contract
from dq.contracts.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, fault


def check(_contract: Contract, context: Context) -> Iterator[Fault]:
    for column in context.walk.columns:
        options = column.property.logical_type_options
        if options is None or options.pattern is None:
            continue
        reason = pattern.refused(options.pattern)
        if reason is not None:
            message = f"pattern {_short(options.pattern)!r}: {reason}."
            yield fault(options, "pattern", message, "Write what ECMA-262 and Java both read.")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


RULE = Rule("pattern-invalid", Severity.ERROR, __doc__, check)
