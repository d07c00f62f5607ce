"""Whom a change of a contract breaks: the judgement of what `contracts.diff` finds."""

from dq.validators.compat.classification.model import Bump, Effect, Level, Mode, Verdict
from dq.validators.compat.classified_change import AffectedConsumer, Comparison, Judged, Waiver
from dq.validators.compat.comparison import DiffTerms, diff
from dq.validators.compat.findings import findings
from dq.validators.compat.registry import History, compare
from dq.validators.compat.rules import RULES

__all__ = [
    "RULES",
    "AffectedConsumer",
    "Bump",
    "Comparison",
    "DiffTerms",
    "Effect",
    "History",
    "Judged",
    "Level",
    "Mode",
    "Verdict",
    "Waiver",
    "compare",
    "diff",
    "findings",
]
