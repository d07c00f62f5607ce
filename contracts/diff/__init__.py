"""What differs between two versions of a contract: facts, no verdicts."""

from dq.contracts.diff.element import Change, ElementKind, FlatElement, Motion, Value
from dq.contracts.diff.facts import between, changes
from dq.contracts.diff.normalize import normalise

__all__ = ["Change", "ElementKind", "FlatElement", "Motion", "Value", "between", "changes", "normalise"]
