"""What differs between two versions of a contract: facts, no verdicts."""

from dq.contracts.diff.element import Action, Change, Element, Kind, Value
from dq.contracts.diff.facts import between, changes
from dq.contracts.diff.normalize import normalise

__all__ = ["Action", "Change", "Element", "Kind", "Value", "between", "changes", "normalise"]
