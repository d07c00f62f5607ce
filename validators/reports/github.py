"""Findings as annotations on the lines of a pull request, by the workflow commands of GitHub Actions.

Escaping as in the toolkit (actions/toolkit, packages/core/src/command.ts). GitHub shows ten annotations of
each level per step and drops the rest without a word, so the tenth says where the rest are.
"""

from __future__ import annotations

from collections import Counter

from dq.contracts.escaping import github_data, github_property
from dq.contracts.outcome import Finding, Severity, one_line
from dq.validators.lint import From, Linted, ReportFormat, Screen, gravest_first, said, told

SHOWN = 10
_FILES_NAMED = 5
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}


def render(linted: Linted, _screen: Screen) -> str:
    """At most ten lines of each level, the gravest first, and a closing line for the log."""
    by_level: dict[str, list[Finding]] = {level: [] for level in _LEVELS.values()}
    for finding in gravest_first(linted.findings):
        by_level[_LEVELS[finding.severity]].append(finding)
    rows = [row for level, findings in by_level.items() for row in _rows(level, findings)]
    closing = f"dq: {said(len(linted.files), 'contract')}, {', '.join(told(linted)) or 'no findings'}."
    return "\n".join([*rows, closing]) + "\n"


def _rows(level: str, findings: list[Finding]) -> list[str]:
    if len(findings) <= SHOWN:
        return [_annotation(level, finding) for finding in findings]
    shown, rest = findings[: SHOWN - 1], findings[SHOWN - 1 :]
    return [*(_annotation(level, finding) for finding in shown), _rest(level, rest)]


def _annotation(level: str, finding: Finding) -> str:
    at = finding.at
    return _command(
        level,
        {"file": at.file, "line": str(at.line), "col": str(at.column), "title": finding.rule},
        f"{one_line(finding.message)}\n{one_line(finding.mend)}".rstrip(),
    )


def _rest(level: str, findings: list[Finding]) -> str:
    """One annotation, without a line of its own, for those that GitHub would not show."""
    files = Counter(finding.at.file for finding in findings)
    named = [f"{one_line(file)} ({number})" for file, number in files.most_common(_FILES_NAMED)]
    if len(files) > _FILES_NAMED:
        named.append(f"and {len(files) - _FILES_NAMED} more files")
    message = f"In {', '.join(named)}. Run 'dq validate' to see all of them."
    return _command(level, {"title": f"{said(len(findings), level)} more"}, message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    written = ",".join(f"{key}={github_property(value)}" for key, value in properties.items())
    return f"::{level} {written}::{github_data(message)}"


REPORT = ReportFormat("github", render, From.REPOSITORY, steers=True)
