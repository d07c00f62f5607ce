"""The contract's id holds signs that an identity must not have.

Why: The id is part of paths, topics and table names, and the history of the contract hangs on it.

Bad:
    id: sales/orders v1

Good:
    id: orders

Mend: Write letters, digits, `-`, `_`, `.` and `:`, beginning with a letter, a digit or `_`.
"""

import re

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

_LONGEST = 255
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:-]{0,254}")
_STRANGE = re.compile(r"[^A-Za-z0-9._:-]")


def check(contract: Contract, _context: Context) -> Faults:
    if not _ID.fullmatch(contract.id):
        written = contract.id if len(contract.id) <= 60 else contract.id[:60] + "…"
        yield fault(
            contract, "id", f"id {written!r} {_why(contract.id)}.", "Choose an id that is kept for good."
        )


def _why(id_: str) -> str:
    if not id_:
        return "is empty"
    if len(id_) > _LONGEST:
        return f"has {len(id_):,} characters, more than {_LONGEST}"
    strange = _STRANGE.search(id_)
    if strange is not None:
        return f"has {strange[0]!r}, which is no letter of ASCII, no digit and none of '-', '_', '.' and ':'"
    return f"begins with {id_[0]!r}, and not with a letter, a digit or '_'"


RULE = Rule("id-form", Severity.WARNING, __doc__, check)
