"""The schema of the first release: a new store gets it from the tables as they are declared.

Earlier numbers were schemas of development versions; no migration starts there.

Revision ID: 0044
"""

from __future__ import annotations

revision = "0044"
down_revision = None
