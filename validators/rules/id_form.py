"""The contract's id holds signs that an identity must not have.

Why: The id is part of paths, topics and table names, and the history of the contract hangs on it.

Bad:
    id: sales/orders v1

Good:
    id: orders

Mend: Write letters, digits, `-`, `_`, `.` and `:`, beginning with a letter or digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, fault

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")


def check(contract: Contract, _context: Context) -> Iterator[Fault]:
    if not _ID.fullmatch(contract.id):
        written = contract.id if len(contract.id) <= 60 else contract.id[:60] + "…"
        message = f"id {written!r} is not letters, digits, '-', '_', '.' and ':', at most 255."
        yield fault(contract, "id", message, "Choose an id once, and keep it for good.")


RULE = Rule("id-form", Severity.ERROR, __doc__, check)
