"""SHELF: one file per check kind."""

from __future__ import annotations

import functools
import sys

from dq.contracts import install
from dq.dataquality.clauses.kind import CheckKind, Shelf


@functools.cache
def built_in() -> Shelf:
    """Every check kind that comes with dq, by its id."""
    return install.load(sys.modules[__name__], "CHECK", CheckKind)
