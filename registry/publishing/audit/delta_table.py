"""Delta has no branches, and a shallow clone has a log of its own: no single commit makes it the table.

To write into the table and restore it when the check fails would show bad rows meanwhile. So it is refused.
Source: https://docs.delta.io (clone, restore); protocol of Delta 4.0.
"""

from __future__ import annotations

from dq.contracts.shared.errors import UsageError


def refused(table: str) -> UsageError:
    """Why a Delta table cannot be published so, and what can be done instead."""
    return UsageError(
        f"{table} is a Delta table, and Delta cannot stage: a clone cannot become the table in one commit, "
        "and a restore comes after readers saw the rows.",
        "Check the frame before you write it: dq.check(contract, frame).raise_for_status().",
    )
