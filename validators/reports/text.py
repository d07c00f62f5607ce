"""Findings for a reader at a terminal: by file, with the line that each is about."""

from __future__ import annotations

import textwrap
import unicodedata
from itertools import groupby

from dq.contracts.outcome import Finding, Severity, escape_ci_commands, one_line
from dq.validators.lint import (
    LintResult,
    PathBase,
    ReportFormat,
    TerminalOptions,
    count_by_severity,
    count_text,
    lines,
    linted_text,
)

_COLORS = {Severity.CRITICAL: "35;1", Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.INFO: "36"}
_BOLD, _DIM = "1", "2"
_INDENT = " " * 4


def render(result: LintResult, terminal: TerminalOptions) -> str:
    """Render a block per file, each finding with its source line and hint, and a closing line with the
    counts.

    Texts from a contract are escaped so that they cannot control the terminal or a CI runner.
    """
    parts: list[str] = []
    for file, findings in groupby(result.findings, key=lambda finding: finding.at.file):
        source = lines(result.sources.get(file, b""))
        parts.append(terminal.paint(one_line(file), _BOLD))
        for finding in findings:
            parts += [_block(finding, source, terminal), ""]
    parts.append(_closing(result, terminal))
    # Escaped last, because only now is the start of each line known.
    return escape_ci_commands("\n".join(parts)) + "\n"


def _block(finding: Finding, source: list[str], terminal: TerminalOptions) -> str:
    spot = f"{finding.at.line}:{finding.at.column}"
    head = f"  {spot} {finding.severity} {finding.rule}: {one_line(finding.message)}"
    first, *continuation = _wrapped(head, terminal.width, "")
    painted = terminal.paint(finding.severity.value, _COLORS[finding.severity])
    first = first.replace(f"{spot} {finding.severity}", f"{spot} {painted}", 1)
    hint = _wrapped(one_line(finding.hint), terminal.width, _INDENT)
    return "\n".join([first, *continuation, *_source(finding, source, terminal), *hint])


def _wrapped(text: str, width: int, first_indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _source(finding: Finding, source: list[str], terminal: TerminalOptions) -> list[str]:
    """Return the source line and a caret below the column, cut to the width; empty if the line is not
    useful.
    """
    location = finding.at
    if (
        location.line > len(source)
        or not source[location.line - 1].strip()
        or (location.line, location.column) == (1, 1)
    ):
        return []
    gutter = f"{_INDENT}{location.line} | "
    room = max(20, terminal.width - len(gutter) - 1)
    source_line = source[location.line - 1]
    # An escaped character is wider than one cell; a tab is shown as an arrow.
    line, column = _printable(source_line), len(_printable(source_line[: location.column - 1]))
    start = max(0, column - room + 10) if column >= room else 0
    cut = ("…" if start else "") + line[start : start + room]
    before = line[start:column]
    caret = " " * (_cells(before) + (1 if start else 0)) + "^"
    blank = " " * (len(gutter) - 2) + "| "
    return [terminal.paint(gutter + cut, _DIM), terminal.paint(blank, _DIM) + caret]


def _cells(text: str) -> int:
    """Return the width of a text in terminal cells: two for wide characters, none for combining ones."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)


def _closing(result: LintResult, terminal: TerminalOptions) -> str:
    files = linted_text(result)
    parts = [
        terminal.paint(count_text(number, severity), _COLORS[severity])
        for severity, number in count_by_severity(result.findings).items()
        if number
    ]
    if not parts:
        return f"{files}, no findings."
    return f"{files}: {', '.join(parts)}."


def _printable(text: str) -> str:
    return one_line(text.replace("\t", "→"))


REPORT = ReportFormat("text", render, PathBase.WORKING_FOLDER)
