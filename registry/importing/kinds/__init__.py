"""The shelf of sources that a contract can be made from: one file each."""

from __future__ import annotations

import sys

from dq.contracts import install
from dq.registry.importing import ImportKind


def load() -> dict[str, ImportKind]:
    """Every kind on the shelf by its id."""
    return install.load(sys.modules[__name__], "KIND", ImportKind)
