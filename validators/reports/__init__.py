"""SHELF: one file per report format, and functions to find them."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from dq.contracts import install
from dq.contracts.outcome import UsageError, suggestion
from dq.validators.lint import ReportFormat


def load_reports() -> dict[str, ReportFormat]:
    """Load the report formats by id."""
    return install.load_plugins(sys.modules[__name__], "REPORT", ReportFormat)


def names() -> list[str]:
    """Return the ids of the report formats, without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load_report(name: str) -> ReportFormat:
    """Load one report format, without importing the others. Raises UsageError for an unknown name."""
    if name not in names():
        hint = suggestion(name, names(), f"Choose one of {', '.join(names())}.")
        raise UsageError(f"unknown report format {name!r}.", hint)
    report_format: ReportFormat = importlib.import_module(f"{__name__}.{name}").REPORT
    return report_format
