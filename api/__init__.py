"""dq from Python: `import dq`, then `dq.check("orders.odcs.yaml", frame).raise_for_status()`.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

import importlib

# As typing has it: under `python -m dq`, a typing.py of the working folder would come first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dq.contracts.shared.errors import DqError
    from dq.dataquality.api import check
    from dq.dataquality.report import Report, Violated

__all__ = ["DqError", "Report", "Violated", "check"]

_HOMES = {
    "DqError": "dq.contracts.shared.errors",
    "Report": "dq.dataquality.report",
    "Violated": "dq.dataquality.report",
    "check": "dq.dataquality.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dq' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
