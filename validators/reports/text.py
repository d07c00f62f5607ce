"""Findings for a reader at a terminal: by file, with the line that each is about."""

from __future__ import annotations

import textwrap
import unicodedata
from itertools import groupby

from dq.contracts.outcome import Finding, Severity, inert, one_line
from dq.validators.lint import From, Linted, ReportFormat, Screen, counts, lines, said

_COLORS = {Severity.CRITICAL: "35;1", Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.INFO: "36"}
_BOLD, _DIM = "1", "2"
_INDENT = " " * 4


def render(linted: Linted, screen: Screen) -> str:
    """A block per file, a finding with its line and mend, and a closing line with the counts.

    Nothing that a contract says steers the terminal, or the runner that logs it.
    """
    parts: list[str] = []
    for file, findings in groupby(linted.findings, key=lambda finding: finding.at.file):
        source = lines(linted.sources.get(file, b""))
        parts.append(screen.paint(one_line(file), _BOLD))
        for finding in findings:
            parts += [_block(finding, source, screen), ""]
    parts.append(_closing(linted, screen))
    # Only now is it known where a line begins.
    return inert("\n".join(parts)) + "\n"


def _block(finding: Finding, source: list[str], screen: Screen) -> str:
    spot = f"{finding.at.line}:{finding.at.column}"
    head = f"  {spot} {finding.severity} {finding.rule}: {one_line(finding.message)}"
    first, *rest = _wrapped(head, screen.width, "")
    painted = screen.paint(finding.severity.value, _COLORS[finding.severity])
    first = first.replace(f"{spot} {finding.severity}", f"{spot} {painted}", 1)
    mend = _wrapped(one_line(finding.mend), screen.width, _INDENT)
    return "\n".join([first, *rest, *_source(finding, source, screen), *mend])


def _wrapped(text: str, width: int, first_indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _source(finding: Finding, source: list[str], screen: Screen) -> list[str]:
    """The line and a caret under the place, cut to the screen; nothing where a line would say nothing."""
    at = finding.at
    if at.line > len(source) or not source[at.line - 1].strip() or (at.line, at.column) == (1, 1):
        return []
    gutter = f"{_INDENT}{at.line} | "
    room = max(20, screen.width - len(gutter) - 1)
    written = source[at.line - 1]
    # A character that is shown as an escape takes more room than one; a tab is told from a blank.
    line, column = _shown(written), len(_shown(written[: at.column - 1]))
    start = max(0, column - room + 10) if column >= room else 0
    cut = ("…" if start else "") + line[start : start + room]
    before = line[start:column]
    caret = " " * (_cells(before) + (1 if start else 0)) + "^"
    blank = " " * (len(gutter) - 2) + "| "
    return [screen.paint(gutter + cut, _DIM), screen.paint(blank, _DIM) + caret]


def _cells(text: str) -> int:
    """How many cells a terminal takes for it: wide characters two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) != 0 for one in text)


def _closing(linted: Linted, screen: Screen) -> str:
    files = said(len(linted.files), "contract")
    found = [
        screen.paint(said(number, severity), _COLORS[severity])
        for severity, number in counts(linted.findings).items()
        if number
    ]
    if not found:
        return f"{files}, no findings."
    return f"{files}: {', '.join(found)}."


def _shown(text: str) -> str:
    return one_line(text.replace("\t", "→"))


REPORT = ReportFormat("text", render, From.HERE)
