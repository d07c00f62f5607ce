"""The Spark side and the delivery side: metrics, checks, plan, measurement; evidence, cycles, budgets."""

from dq.dataquality.report import Report, Violated
from dq.dataquality.suite import check

__all__ = ["Report", "Violated", "check"]
