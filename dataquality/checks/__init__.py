"""SHELF: one file per check kind."""

from __future__ import annotations

import functools
import sys

from dq.contracts import install
from dq.dataquality.clauses.kind import CheckKind, CheckKinds


@functools.cache
def built_in() -> CheckKinds:
    """Return the built-in check kinds, by id."""
    return install.load_plugins(sys.modules[__name__], "CHECK", CheckKind)
