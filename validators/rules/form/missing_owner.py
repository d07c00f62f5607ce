"""The contract names no team.

Why: A promise without someone who keeps it is none; nobody can be asked, and nobody is told of a breach.

Bad:
    team: {members: []}

Good:
    team: {name: sales-data, members: [{username: ana@example.com, role: owner}]}

Mend: Add `team` with a name, or with its members.
"""

from dq.contracts.model import Team
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(contract: Contract, _context: Context) -> Faults:
    named = contract.team.name if isinstance(contract.team, Team) else None
    if not named and not contract.members():
        yield absence(contract, "the contract names no team.", "Add 'team: {name: …}'.", "team")


RULE = Rule("missing-owner", Severity.WARNING, __doc__, check, wish=True)
