"""The contract names no team.

Why: A promise without someone who keeps it is none; nobody can be asked, and nobody is told of a breach.

Bad:
    team: {members: []}

Good:
    team: {name: sales-data, members: [{username: ana@example.com, role: owner}]}

Mend: Add `team` with a name, or with its members.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, Team
from dq.contracts.shared.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, absence


def check(contract: Contract, _context: Context) -> Iterator[Fault]:
    named = contract.team.name if isinstance(contract.team, Team) else None
    if not named and not contract.members():
        yield absence(contract, "the contract names no team.", "Add 'team: {name: …}'.", "team")


RULE = Rule("missing-owner", Severity.WARNING, __doc__, check, wish=True)
