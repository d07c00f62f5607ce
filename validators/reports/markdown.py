"""Findings as Markdown: the summary of a CI run, or the comment on a pull request that dq keeps updating."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.outcome import Finding, Severity
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

# First line of the comment, by which the next run finds it.
MARKER = "<!-- dq validate -->"
MAX_ROWS = 20
# A GitHub comment is limited to 65,536 characters; the rest is reserved for text around the findings.
MAX_CHARACTERS = 50_000
_HEADER = ("", "where", "rule", "finding", "how to fix it")
_MARKS = {Severity.CRITICAL: "🛑", Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.INFO: "ℹ️"}


def render(result: LintResult, _terminal: TerminalOptions) -> str:
    """Render a heading with the counts, a table of the most severe findings, and the rest collapsed."""
    return summary(result)


def summary(result: LintResult, sections: Sequence[str] = ()) -> str:
    """Render like `render`, with further Markdown sections between heading and findings, e.g. the changes."""
    rows = [_row(finding) for finding in by_severity(result.findings)]
    fitting = _fitting(rows)
    parts = [MARKER, _heading(result), *sections]
    if rows:
        parts.append(table(_HEADER, fitting[:MAX_ROWS]))
    if len(fitting) > MAX_ROWS:
        label = count_text(len(fitting) - MAX_ROWS, "finding").replace(" ", " more ", 1)
        folded = table(_HEADER, fitting[MAX_ROWS:])
        parts.append(f"<details><summary>{label}</summary>\n\n{folded}\n\n</details>")
    if len(fitting) < len(rows):
        omitted = count_text(len(rows) - len(fitting), "finding")
        parts.append(f"{omitted} did not fit here; run `dq validate` to see all of them.")
    if rows:
        parts.append("Run `dq explain RULE` for details of a rule.")
    return "\n\n".join(parts) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells must already be Markdown, see `markdown_text` and `markdown_code`."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _heading(result: LintResult) -> str:
    files, counts = linted_text(result), ", ".join(count_texts(result))
    heading = f"{counts} in {files}" if counts else f"{files}, no findings"
    return f"## Data contracts: {heading}"


def _row(finding: Finding) -> list[str]:
    location = finding.at
    place = markdown_code(f"{location.file}:{location.line}")
    return [
        f"{_MARKS[finding.severity]} {finding.severity}",
        place,
        markdown_code(finding.rule),
        markdown_text(finding.message),
        markdown_text(finding.hint),
    ]


def _fitting(rows: list[list[str]]) -> list[list[str]]:
    room = MAX_CHARACTERS
    for index, row in enumerate(rows):
        room -= sum(len(cell) + 3 for cell in row)
        if room < 0:
            return rows[:index]
    return rows


REPORT = ReportFormat("markdown", render, PathBase.REPOSITORY)
