"""The Spark side and the delivery side: metrics, checks, plan, measurement; evidence, cycles, budgets.

The check is imported when it is asked for: deliveries are watched where the extra for Spark is not installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dq.dataquality.object_check import check
    from dq.dataquality.report import Report, Violated
    from dq.dataquality.request import Request

__all__ = ["Report", "Request", "Violated", "check"]

_HOMES = {
    "Report": "dq.dataquality.report",
    "Request": "dq.dataquality.request",
    "Violated": "dq.dataquality.report",
    "check": "dq.dataquality.object_check",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dq.dataquality' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
