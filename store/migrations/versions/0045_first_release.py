"""The schema of the first release: a new store gets it from the tables as they are declared.

Earlier numbers were schemas of development versions; no migration starts there.

Revision ID: 0045
"""

from __future__ import annotations

revision = "0045"
down_revision = None
