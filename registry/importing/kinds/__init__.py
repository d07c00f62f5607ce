"""Plug-ins for the sources that a contract can be imported from, one module each."""

from __future__ import annotations

import sys

from dq.contracts import install
from dq.registry.importing import ImportKind


def load() -> dict[str, ImportKind]:
    """Return all import kinds by id."""
    return install.load_plugins(sys.modules[__name__], "KIND", ImportKind)
