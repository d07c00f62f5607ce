"""The waivers of a registry's policy that end soon."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from dq.operations.gate import policy_of, written
from dq.portal.generation.state import WaiverEnd
from dq.validators.lint import rules_of

SOON = timedelta(days=30)


def ending(root: Path, today: date) -> list[WaiverEnd]:
    """Those that end within 30 days, and those that have ended; the first to end first.

    Raises UsageError for a policy that cannot be understood, and Unreadable for one that cannot be read.
    """
    policy = written(root, None)
    if policy is None:
        return []
    found = [one for one in policy_of(policy, rules_of()).waivers if one.expires <= today + SOON]
    return [
        WaiverEnd(f"{one.rule} in {one.contract}", one.expires.isoformat(), one.by, one.reason)
        for one in sorted(found, key=lambda one: (one.expires, one.contract, one.rule))
    ]
