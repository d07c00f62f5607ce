"""The contract has no object.

Why: Without a schema nothing is promised of the data, and there is nothing to register or to check.

Bad:
    schema: []

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}

Mend: Describe the tables under `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, absence


def check(contract: Contract, _context: Context) -> Iterator[Fault]:
    if not contract.objects:
        yield absence(contract, "the contract describes no object.", "Add 'schema: [{name: …}]'.", "schema")


RULE = Rule("missing-schema", Severity.WARNING, __doc__, check, wish=True)
