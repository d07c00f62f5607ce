"""Contract without a team.

Why: Without an owner, consumers have no contact, and a breach alerts no one.

Bad:
    team: {members: []}

Good:
    team: {name: sales-data, members: [{username: ana@example.com, role: owner}]}

How to fix: Add `team` with a name or members.
"""

from dq.contracts.model import Team
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(contract: Contract, _context: Context) -> Violations:
    team_name = contract.team.name if isinstance(contract.team, Team) else None
    if not team_name and not contract.members():
        yield missing_key(contract, "the contract has no team.", "Add 'team: {name: …}'.", "team")


RULE = Rule("missing-owner", Severity.WARNING, __doc__, check, opt_in=True)
