"""Whom a change of a contract breaks: the judgement of what `contracts.diff` finds."""

from dq.validators.compat.door import DiffTerms, diff
from dq.validators.compat.findings import findings
from dq.validators.compat.judged import Comparison, Judged
from dq.validators.compat.judgement.words import Bump, Effect, Level, Mode, Verdict
from dq.validators.compat.registry import History, compare
from dq.validators.compat.rules import RULES
from dq.validators.compat.subscribers import AffectedConsumer
from dq.validators.compat.waive import Waiver

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
