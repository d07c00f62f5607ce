"""The people and teams that may approve the use of a contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from dq.contracts.model import Contract, Team

APPROVING_ROLES = ("owner", "steward", "approver")
_SEPARATOR = re.compile(r"[,;\n]")


def approvers(contract: Contract, start_date: date) -> list[str]:
    """Return the names that may approve a subscription that begins on `start_date`, each once, in order.

    These are the team's name, its members whose role is one of `APPROVING_ROLES`, by username and name, and
    the approvers of the contract's and its servers' roles. A member who left before `start_date` is none.
    """
    return list(dict.fromkeys(name for text in _names(contract, start_date) if (name := text.strip())))


def is_approver(name: str, contract: Contract, start_date: date) -> bool:
    """Return whether the name, in any case, may approve a subscription that begins on `start_date`."""
    return name.strip().casefold() in {known.casefold() for known in approvers(contract, start_date)}


def _names(contract: Contract, start_date: date) -> Iterator[str]:
    if isinstance(contract.team, Team):
        yield contract.team.name or ""
    for member in contract.members():
        title = (member.role or "").lower()
        has_left = bool(member.date_out) and str(member.date_out)[:10] < start_date.isoformat()
        if not has_left and any(word in title for word in APPROVING_ROLES):
            yield from (member.username, member.name or "")
    for role in (*contract.roles, *(role for server in contract.servers for role in server.roles)):
        for text in (role.first_level_approvers, role.second_level_approvers):
            yield from _SEPARATOR.split(text or "")
