"""Invalid contract id.

Why: The id is part of paths, topics and table names, and the history of the contract is stored under it.

Bad:
    id: sales/orders v1

Good:
    id: orders

How to fix: Use letters, digits, `-`, `_`, `.` and `:`, starting with a letter, a digit or `_`.
"""

import re

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

_LONGEST = 255
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,254}")
_STRANGE = re.compile(r"[^A-Za-z0-9._:-]")


def check(contract: Contract, _context: Context) -> Violations:
    if not _ID.fullmatch(contract.id):
        shortened = contract.id if len(contract.id) <= 60 else contract.id[:60] + "…"
        yield violation(contract, "id", f"id {shortened!r} {_reason(contract.id)}.", "Choose a permanent id.")


def _reason(id_: str) -> str:
    if not id_:
        return "is empty"
    if len(id_) > _LONGEST:
        return f"has {len(id_):,} characters; the limit is {_LONGEST}"
    strange = _STRANGE.search(id_)
    if strange is not None:
        return f"contains {strange[0]!r}; only ASCII letters, digits, '-', '_', '.' and ':' are allowed"
    return f"starts with {id_[0]!r}, but must start with a letter, a digit or '_'"


RULE = Rule("id-form", Severity.WARNING, __doc__, check)
