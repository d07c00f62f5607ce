"""What differs between two versions of a contract: facts, no verdicts.

Nothing is imported before it is asked for: the gate needs `level` alone, and starts faster without the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dq.contracts.diff.element import Change, ElementKind, FlatElement, Motion, Value
    from dq.contracts.diff.facts import between, changes
    from dq.contracts.diff.normalize import normalise

__all__ = ["Change", "ElementKind", "FlatElement", "Motion", "Value", "between", "changes", "normalise"]

_HOMES = {
    **dict.fromkeys(("Change", "ElementKind", "FlatElement", "Motion", "Value"), "element"),
    **dict.fromkeys(("between", "changes"), "facts"),
    "normalise": "normalize",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dq.contracts.diff' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dq.contracts.diff.{_HOMES[name]}"), name)
