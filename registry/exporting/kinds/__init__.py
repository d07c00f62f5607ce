"""The shelf of forms that a contract's schema can be written in: one file each."""

from __future__ import annotations

import sys

from dq.contracts.shared import install
from dq.registry.exporting.export import ExportKind


def load() -> dict[str, ExportKind]:
    """Every kind on the shelf by its id."""
    return install.load(sys.modules[__name__], "KIND", ExportKind)
