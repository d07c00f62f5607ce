"""SHELF: one file per format of a report, and where they are found."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from dq.contracts import install
from dq.contracts.outcome import UsageError, suggestion
from dq.validators.lint import ReportFormat


def reports_of() -> dict[str, ReportFormat]:
    """The formats on the shelf by id."""
    return install.load(sys.modules[__name__], "REPORT", ReportFormat)


def names() -> list[str]:
    """The formats on the shelf, found without importing them."""
    return sorted(one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_"))


def report(name: str) -> ReportFormat:
    """One of the formats that ship, without importing the others. Raises UsageError where there is none."""
    if name not in names():
        mend = suggestion(name, names(), f"Choose one of {', '.join(names())}.")
        raise UsageError(f"there is no report format {name!r}.", mend)
    made: ReportFormat = importlib.import_module(f"{__name__}.{name}").REPORT
    return made
