"""Findings as Markdown: the summary of a CI run, or the one comment on a pull request that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.outcome import Finding, Severity
from dq.validators.lint import From, Linted, ReportFormat, Screen, gravest_first, said, told

# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq validate -->"
SHOWN = 20
# A comment on GitHub holds 65,536 characters; the rest is left for what stands around the findings.
ROOM = 50_000
_HEADER = ("", "where", "rule", "what is wrong", "how to mend it")
_MARKS = {Severity.CRITICAL: "🛑", Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.INFO: "ℹ️"}


def render(linted: Linted, _screen: Screen) -> str:
    """A heading with the counts, a table of the gravest findings, and the rest folded."""
    return summary(linted)


def summary(linted: Linted, sections: Sequence[str] = ()) -> str:
    """The same, with further sections of Markdown, such as the changes, between heading and findings."""
    rows = [_row(finding) for finding in gravest_first(linted.findings)]
    fitting = _fitting(rows)
    parts = [MARKER, _heading(linted), *sections]
    if rows:
        parts.append(table(_HEADER, fitting[:SHOWN]))
    if len(fitting) > SHOWN:
        more = said(len(fitting) - SHOWN, "finding").replace(" ", " more ", 1)
        folded = table(_HEADER, fitting[SHOWN:])
        parts.append(f"<details><summary>{more}</summary>\n\n{folded}\n\n</details>")
    if len(fitting) < len(rows):
        left = said(len(rows) - len(fitting), "finding")
        parts.append(f"{left} did not fit here; `dq validate` lists all of them.")
    if rows:
        parts.append("`dq explain RULE` tells more about one.")
    return "\n\n".join(parts) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already, see `markdown_text` and `markdown_code`."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _heading(linted: Linted) -> str:
    contracts = said(len(linted.files), "contract")
    found = ", ".join(told(linted))
    summed = f"{found} in {contracts}" if found else f"{contracts}, no findings"
    return f"## Data contracts: {summed}"


def _row(finding: Finding) -> list[str]:
    at = finding.at
    where = markdown_code(f"{at.file}:{at.line}")
    return [
        f"{_MARKS[finding.severity]} {finding.severity}",
        where,
        markdown_code(finding.rule),
        markdown_text(finding.message),
        markdown_text(finding.mend),
    ]


def _fitting(rows: list[list[str]]) -> list[list[str]]:
    room = ROOM
    for index, row in enumerate(rows):
        room -= sum(len(cell) + 3 for cell in row)
        if room < 0:
            return rows[:index]
    return rows


REPORT = ReportFormat("markdown", render, From.REPOSITORY)
