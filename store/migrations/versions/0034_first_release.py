"""The schema of the first release.

The numbers before it were schemas of development versions, which nobody migrates from.

Revision ID: 0034
"""

from __future__ import annotations

from dq.store.migrations.first_release import alerts, catalogs, checks, deliveries, publications

revision = "0034"
down_revision = None


def upgrade() -> None:
    """Make the tables of all rooms."""
    alerts.make()
    deliveries.make()
    checks.make()
    catalogs.make()
    publications.make()
