"""What a report format is: one file on the shelf `reports/`, from findings to a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from dq.contracts import shelf
from dq.contracts.outcome import Finding, Severity
from dq.validators import reports
from dq.validators.lint import Linted


@dataclass(frozen=True, slots=True)
class Screen:
    """What the reader's screen can do; formats for machines take no notice of it."""

    color: bool = False
    width: int = 100


@dataclass(frozen=True, slots=True)
class Report:
    """One format. `render` gives the whole text, which ends with a line break."""

    id: str
    render: Callable[[Linted, Screen], str]


def reports_of(package: ModuleType = reports) -> dict[str, Report]:
    """The formats on a shelf by id; without an argument, the ones that ship."""
    return shelf.load(package, "REPORT", Report)


def counts(findings: tuple[Finding, ...]) -> Mapping[Severity, int]:
    """How many findings there are of each severity, worst first; zeros included."""
    made = dict.fromkeys(reversed(Severity), 0)
    for finding in findings:
        made[finding.severity] += 1
    return made
