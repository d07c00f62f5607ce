"""Findings as annotations on the lines of a pull request, by the workflow commands of GitHub Actions.

Escaping as in the toolkit (actions/toolkit, packages/core/src/command.ts). GitHub shows ten annotations of
each level per step and silently drops the rest, so the tenth lists the files with further findings.
"""

from __future__ import annotations

from collections import Counter

from dq.contracts.escaping import github_data, github_property
from dq.contracts.outcome import Finding, Severity, one_line
from dq.validators.lint import (
    LintResult,
    PathBase,
    ReportFormat,
    TerminalOptions,
    by_severity,
    count_text,
    count_texts,
    linted_text,
)

MAX_ANNOTATIONS = 10
_FILES_NAMED = 5
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}


def render(result: LintResult, _terminal: TerminalOptions) -> str:
    """Render at most ten lines per level, most severe first, and a closing line for the log."""
    by_level: dict[str, list[Finding]] = {level: [] for level in _LEVELS.values()}
    for finding in by_severity(result.findings):
        by_level[_LEVELS[finding.severity]].append(finding)
    rows = [row for level, findings in by_level.items() for row in _rows(level, findings)]
    closing = f"dq: {linted_text(result)}, {', '.join(count_texts(result)) or 'no findings'}."
    return "\n".join([*rows, closing]) + "\n"


def _rows(level: str, findings: list[Finding]) -> list[str]:
    if len(findings) <= MAX_ANNOTATIONS:
        return [_annotation(level, finding) for finding in findings]
    head, remaining = findings[: MAX_ANNOTATIONS - 1], findings[MAX_ANNOTATIONS - 1 :]
    return [*(_annotation(level, finding) for finding in head), _remainder(level, remaining)]


def _annotation(level: str, finding: Finding) -> str:
    location = finding.at
    return _command(
        level,
        {
            "file": location.file,
            "line": str(location.line),
            "col": str(location.column),
            "title": finding.rule,
        },
        f"{one_line(finding.message)}\n{one_line(finding.hint)}".rstrip(),
    )


def _remainder(level: str, findings: list[Finding]) -> str:
    """Return one annotation, without a line number, for the findings that GitHub would not show."""
    files = Counter(finding.at.file for finding in findings)
    names = [f"{one_line(file)} ({number})" for file, number in files.most_common(_FILES_NAMED)]
    if len(files) > _FILES_NAMED:
        names.append(f"and {len(files) - _FILES_NAMED} more files")
    message = f"In {', '.join(names)}. Run 'dq validate' to see all of them."
    return _command(level, {"title": f"{count_text(len(findings), level)} more"}, message)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    attributes = ",".join(f"{key}={github_property(value)}" for key, value in properties.items())
    return f"::{level} {attributes}::{github_data(message)}"


REPORT = ReportFormat("github", render, PathBase.REPOSITORY, emits_commands=True)
